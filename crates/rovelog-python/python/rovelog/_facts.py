"""Small immutable records: what a log says about itself, and what was made of it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Outside(NamedTuple):
    """Records of a topic whose times lie far outside of those of all others.

    topic           the topic's name
    records         how many there are
    first_ns        the first of their times, ns of the log's clock
    last_ns         the last of them
    distance_ns     ns from the data to the nearest of them; negative before the data
    offset          the first byte of one of them
    """

    topic: str
    records: int
    first_ns: int
    last_ns: int
    distance_ns: int
    offset: int


class Info(NamedTuple):
    """The summary of a log. Times are integers, nanoseconds of the log's own clock.

    format          id of the format: `ulog`
    format_name     its name: `ULog`
    version         its version
    dialect         what wrote the log, where that is evident: `px4`
    size            bytes of the file
    state           `complete`, `truncated` or `damaged`
    clock           what times count from: `unix`, `boot` or `log_start`
    start_ns        the beginning, ns of the log's clock
    end_ns          the end, ns of the log's clock
    utc_offset_ns   Unix time minus log time, ns; None where nothing in the log tells
    utc_rule        how that was found: `gps`
    utc_evidence    what it rests on, in words
    records         records on all topics
    problems        how many things were noticed in the bytes
    lost_bytes      bytes that could not be read
    lost            their ranges: (first byte, byte behind the last)
    missing_records   records that the log counts and that are not in the file
    left_out_records  valid records that reading leaves out and `rovelog.recover` keeps
    loss            what is lost, missing or left out, in words; None if nothing is
    details         what only this format has: key -> (line for people, value)
    data_start_ns   where the data starts, without the records in `outside`
    data_end_ns     the time of the last record of the data, without those in `outside`
    outside         records whose times lie far outside of those of all others, by topic
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
    utc_rule: str | None
    utc_evidence: str | None
    records: int
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
        """From start to end, ns."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def data_duration_ns(self) -> int | None:
        """From the start to the end of the data, ns."""
        start, end = self.data_start_ns, self.data_end_ns
        return None if start is None or end is None else end - start


class Field(NamedTuple):
    """A field of a topic.

    name            its name
    type            its type, in Arrow's words: `float32[4]`, `uint64`, `text`
    source_type     its type as the log spells it: `float[4]`
    unit            its unit, where the format gives one
    fields          the fields inside, where it has some
    """

    name: str
    type: str
    source_type: str
    unit: str | None
    fields: list[Field] | None


class Problem(NamedTuple):
    """Something that was noticed in the bytes of a log.

    code            stable, for machines: `E-ULOG-002`
    name            stable, for people: `cut`
    severity        `note`, `repaired`, `left_out` or `data_lost`
    start           first byte it is about
    end             the byte behind the last
    message         the particulars
    meaning         what this kind of problem means
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
            return "rovelog.recover(log, out) writes a sound log of all that is left"
        return "nothing: no data is missing"


class Text(NamedTuple):
    """A line of the log's console.

    t_ns            when, ns of the log's clock
    level           0 emergency to 7 debug, as in syslog
    level_name      `warning`
    source          who printed it
    text            the line
    offset          its first byte in the file
    """

    t_ns: int | None
    level: int
    level_name: str
    source: str | None
    text: str
    offset: int


class Recovered(NamedTuple):
    """What became of the bytes of a damaged log; kept, lost and stale bytes together are its length.

    records         records of the recovered log
    kept_bytes      bytes that it has of the damaged one
    lost_bytes      bytes that no reader can use
    lost            their ranges: (first byte, byte behind the last)
    missing_records records that the log counts and that are not in it
    stale_bytes     sound bytes left out because they are of another time
    stale_records   records in them
    unchanged       whether the log was sound, so that the recovered one is a copy
    """

    records: int
    kept_bytes: int
    lost_bytes: int
    lost: list[tuple[int, int]]
    missing_records: int
    stale_bytes: int
    stale_records: int
    unchanged: bool


class Sliced(NamedTuple):
    """What the part of a log holds.

    records         its records
    others          what else has a time: texts, dropouts, changes of parameters
    topics          how many topics it has
    bytes           its length
    """

    records: int
    others: int
    topics: int
    bytes: int
