"""Metadata of logs and results of operations, as named tuples."""

from __future__ import annotations

from typing import Any, NamedTuple


class Outside(NamedTuple):
    """Records of a topic with times far outside the time range of all others.

    topic           name of the topic
    records         number of records
    first_ns        first time, ns on the log clock
    last_ns         last time, ns on the log clock
    distance_ns     ns from the data to the nearest of these records; negative before the data
    offset          offset of the first byte of one of these records
    """

    topic: str
    records: int
    first_ns: int
    last_ns: int
    distance_ns: int
    offset: int


class Info(NamedTuple):
    """Summary of a log. Times are integers, nanoseconds on the log clock.

    format          id of the format: `ulog`
    format_name     name of the format: `ULog`
    version         version of the format
    dialect         writer of the log, if known: `px4`
    size            size of the file in bytes
    state           `complete`, `truncated`, `damaged`, or `not_checked` if parts of a remote log
                    were not read
    clock           `unix`, `boot` or `log_start`
    start_ns        start, ns on the log clock
    end_ns          end, ns on the log clock
    utc_offset_ns   Unix time minus log time at the start, ns; None without UTC
    utc_knots       points (log time, Unix time minus log time), ns, for a clock that drifts; the
                    difference
                    is linear between two points, and constant if the list is empty
    utc_rule        name of the rule that determined UTC: `gps`
    utc_evidence    evidence for UTC, as text
    records         number of records on all topics
    unread          number of bytes of a remote log that were not read
    at_least        True if counts and times cover only the parts of a remote log that were read
    problems        number of diagnostics
    lost_bytes      number of bytes that could not be read
    lost            ranges of these bytes: (offset of the first byte, offset after the last byte)
    missing_records   number of records that the log counts, but that are missing from the file
    left_out_records  number of valid records that reading leaves out and `rovelog.recover` keeps
    loss            description of everything lost, missing or left out; None if the log is complete
    details         format-specific details: key -> (text, value)
    data_start_ns   start of the data, ns on the log clock; ignores the records in `outside`
    data_end_ns     end of the data, ns on the log clock; ignores the records in `outside`
    outside         records with times far outside the time range of all others, by topic
    """

    format: str
    format_name: str
    version: str
    dialect: str | None
    size: int
    state: str
    clock: str | None
    start_ns: int | None
    end_ns: int | None
    utc_offset_ns: int | None
    utc_knots: list[tuple[int, int]]
    utc_rule: str | None
    utc_evidence: str | None
    records: int
    unread: int
    at_least: bool
    problems: int
    lost_bytes: int
    lost: list[tuple[int, int]]
    missing_records: int
    left_out_records: int
    loss: str | None
    details: dict[str, tuple[str | None, Any]]
    data_start_ns: int | None
    data_end_ns: int | None
    outside: list[Outside]

    @property
    def duration_ns(self) -> int | None:
        """Duration from `start_ns` to `end_ns`, ns."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def data_duration_ns(self) -> int | None:
        """Duration from `data_start_ns` to `data_end_ns`, ns."""
        start, end = self.data_start_ns, self.data_end_ns
        return None if start is None or end is None else end - start


def info_from(facts: dict[str, Any]) -> Info:
    """Returns the summary from the dict that `Reader.info` returns."""
    facts["outside"] = [Outside(*outside) for outside in facts["outside"]]
    return Info(**facts)


class Field(NamedTuple):
    """A field of a topic.

    name            name of the field
    type            type in Arrow terms: `float32[4]`, `uint64`, `text`
    source_type     type as written in the log: `float[4]`
    unit            unit of the values; None if the format does not store units
    fields          nested fields; None if the field has none
    """

    name: str
    type: str
    source_type: str
    unit: str | None
    fields: list[Field] | None


class TopicHealth(NamedTuple):
    """Timing of a topic. An interval is the time from one record to the next one in the file.

    topic           name of the topic
    count           number of records with a time
    steady          True if the topic has a constant rate: at least ten intervals, and four of five
                    intervals are close to the period
    nominal_hz      rate in Hz, computed from the period; None if the topic is not steady
    period_ns       median of the positive intervals
    shortest_ns     shortest positive interval
    longest_ns      longest interval
    jitter_ns       standard deviation of the positive intervals, without gaps
    gaps            number of gaps of a steady topic; a gap is an interval of more than three
                    periods
    confirmed       number of gaps confirmed by a dropout, lost bytes, or gaps of other topics
    missing         number of records that would fill the confirmed gaps
    longest_gaps    up to 16 gaps, longest first: (time of the record before the gap, length), ns
    falling         number of records that are earlier than the record before
    repeated        number of records with the same time as the record before
    silent_ns       ns from the last record to the end of the data, if a steady topic stops early
    stuck           True if the topic has at least ten records, all with the same time
    """

    topic: str
    count: int  # type: ignore[assignment]
    steady: bool
    nominal_hz: float | None
    period_ns: int | None
    shortest_ns: int | None
    longest_ns: int | None
    jitter_ns: float | None
    gaps: int
    confirmed: int
    missing: int
    longest_gaps: list[tuple[int, int]]
    falling: int
    repeated: int
    silent_ns: int | None
    stuck: bool


class Problem(NamedTuple):
    """A diagnostic of a log.

    code            stable code: `E-ULOG-002`
    name            stable name: `cut`
    severity        `note`, `repaired`, `left_out` or `data_lost`
    start           offset of the first affected byte
    end             offset after the last affected byte
    message         details of this occurrence
    meaning         meaning of this kind of problem
    """

    code: str
    name: str
    severity: str
    start: int
    end: int
    message: str
    meaning: str

    @property
    def fix(self) -> str:
        """Advice on how to repair the log."""
        if self.severity in ("left_out", "data_lost"):
            return "rovelog.recover(log, out) writes every intact record to a new log"
        return "nothing: no data is missing"


class Text(NamedTuple):
    """A console message.

    t_ns            time, ns on the log clock
    level           severity from 0 (emergency) to 7 (debug), as in syslog
    level_name      name of the level: `warning`
    source          name of the sender; None if unknown
    text            text of the message
    offset          offset of the first byte of the message in the file
    """

    t_ns: int | None
    level: int
    level_name: str
    source: str | None
    text: str
    offset: int


class Recovered(NamedTuple):
    """Result of a recovery. Kept, lost and stale bytes add up to the size of the damaged log.

    records         number of records of the recovered log
    kept_bytes      number of bytes copied to the new log
    lost_bytes      number of bytes that could not be read
    lost            ranges of these bytes: (offset of the first byte, offset after the last byte)
    missing_records number of records that the log counts, but that are missing from the file
    stale_bytes     number of valid bytes left out because they are stale: old data from a damaged
                    memory card
    stale_records   number of records in the stale bytes
    left_out        descriptions of readable content that the new log cannot contain
    unchanged       True if the log was undamaged, so that the new log is a copy
    """

    records: int
    kept_bytes: int
    lost_bytes: int
    lost: list[tuple[int, int]]
    missing_records: int
    stale_bytes: int
    stale_records: int
    left_out: list[str]
    unchanged: bool


class Sliced(NamedTuple):
    """Result of a slice.

    records         number of records
    others          number of console messages, dropouts and parameter changes
    topics          number of topics
    bytes           size of the new log in bytes
    """

    records: int
    others: int
    topics: int
    bytes: int
