"""Immutable records with the metadata of logs and the results of operations."""

from __future__ import annotations

from typing import Any, NamedTuple


class Outside(NamedTuple):
    """Records of a topic with times far outside the time range of all others.

    topic           name of the topic
    records         number of records
    first_ns        first time, ns on the log clock
    last_ns         last time, ns on the log clock
    distance_ns     ns from the data to the nearest record; negative before the data
    offset          offset of the first byte of one of them
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
    size            bytes of the file
    state           `complete`, `truncated`, `damaged`, or `not_checked`: parts of a remote log were not read
    clock           `unix`, `boot` or `log_start`
    start_ns        start, ns on the log clock
    end_ns          end, ns on the log clock
    utc_offset_ns   Unix time minus log time at the start, ns; None without UTC
    utc_knots       (log time, Unix time minus log time), ns; linear between them, and empty if the difference is constant
    utc_rule        rule that determined it: `gps`
    utc_evidence    evidence for it, as text
    records         number of records on all topics
    unread          bytes of a remote log that were not read
    at_least        whether counts and times are those of the parts that were read
    problems        number of diagnostics
    lost_bytes      bytes that could not be read
    lost            their ranges: (first byte, byte after the last)
    missing_records   records counted by the log that are missing from the file
    left_out_records  valid records that reading leaves out and `rovelog.recover` keeps
    loss            what is lost, missing or left out, as text; None if nothing is
    details         format-specific details: key -> (text, value)
    data_start_ns   start of the data, without the records in `outside`
    data_end_ns     end of the data, without the records in `outside`
    outside         records with times far outside of all others, by topic
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
        """Duration from start to end, ns."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def data_duration_ns(self) -> int | None:
        """Duration of the data, ns."""
        start, end = self.data_start_ns, self.data_end_ns
        return None if start is None or end is None else end - start


class Field(NamedTuple):
    """A field of a topic.

    name            name
    type            type in Arrow terms: `float32[4]`, `uint64`, `text`
    source_type     type as written in the log: `float[4]`
    unit            unit, if the format has one
    fields          nested fields, if any
    """

    name: str
    type: str
    source_type: str
    unit: str | None
    fields: list[Field] | None


class TopicHealth(NamedTuple):
    """Health of the times of a topic: intervals are those from one record to the next in the file.

    topic           name of the topic
    count           number of records with a time
    steady          whether it has a rate: ten intervals or more, four of five near the period
    nominal_hz      rate that the period means; None if it is not steady
    period_ns       median of the intervals above zero
    shortest_ns     shortest interval above zero
    longest_ns      longest interval
    jitter_ns       standard deviation of the intervals above zero without the gaps
    gaps            number of gaps: intervals of more than three periods, of a steady topic
    confirmed       number of gaps that a dropout, lost bytes or gaps of other topics confirm
    missing         records that would fill the confirmed gaps
    longest_gaps    up to 16 gaps, longest first: time of the record before, and length, in ns
    falling         records that are earlier than the one before
    repeated        records with the time of the one before
    silent_ns       ns from the last record to the end of the data, if a steady topic stops
    stuck           whether ten records or more all have one time
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
    start           first byte
    end             byte after the last
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
        """What can be done about it."""
        if self.severity in ("left_out", "data_lost"):
            return "rovelog.recover(log, out) writes every intact record to a new log"
        return "nothing: no data is missing"


class Text(NamedTuple):
    """A console message.

    t_ns            time, ns on the log clock
    level           0 emergency to 7 debug, as in syslog
    level_name      `warning`
    source          its sender
    text            its text
    offset          its first byte in the file
    """

    t_ns: int | None
    level: int
    level_name: str
    source: str | None
    text: str
    offset: int


class Recovered(NamedTuple):
    """Result of a recovery; kept, lost and stale bytes add up to the size of the damaged log.

    records         number of records of the recovered log
    kept_bytes      bytes that were copied
    lost_bytes      bytes that could not be read
    lost            their ranges: (first byte, byte after the last)
    missing_records records counted by the log that are missing from it
    stale_bytes     valid bytes left out because they are of another time
    stale_records   records in them
    left_out        content that is not lost, and that the new log does not have, in words
    unchanged       whether the log was undamaged, so that the new one is a copy
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
    bytes           size in bytes
    """

    records: int
    others: int
    topics: int
    bytes: int
