"""Drop-in replacement for reading with rosbag: `from rovelog.compat.rosbag import Bag`. ROS is not
needed, and no code of the bag is run.

For bags of V1.2 and earlier, indexed, unindexed, crashed or damaged. To write bags, use
`rovelog.convert`.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from rovelog import _core, _source
from rovelog._bag import BagExtras
from rovelog._core import Duration, Time
from rovelog._errors import NotALogError, UnreadableError, UnsupportedError
from rovelog._source import Source
from rovelog._types import BagConnection, BagMaker
from rovelog.compat._text import text_of

ARRAY = re.compile(r"\[\d*\]$")


class ROSBagException(Exception):
    """Anything that the bag cannot do."""


class ROSBagFormatException(ROSBagException):
    """The file is no bag, or none that can be read."""


class Message:
    """A message: its fields are attributes, their names in `__slots__`, their types in `_slot_types`. `_type`, `_md5sum` and
    `_full_text` say what it is; its text is that of genpy."""

    __slots__: Any = ()
    _slot_types: Any = ()
    _type = ""
    _md5sum = ""
    _full_text = ""

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self._type == other._type and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return text_of(self, Message)


class BagMessage(NamedTuple):
    """What `read_messages` gives."""

    topic: str
    message: Any
    timestamp: Time


class BagMessageWithConnectionHeader(NamedTuple):
    """What `read_messages(return_connection_header=True)` gives."""

    topic: str
    message: Any
    timestamp: Time
    connection_header: dict[str, str]


class TopicTuple(NamedTuple):
    """What a bag has of a topic; `frequency` in Hz, by the median of the periods."""

    msg_type: str
    message_count: int
    connections: int
    frequency: float | None


class TypesAndTopicsTuple(NamedTuple):
    """Types with their md5 sums, and topics."""

    msg_types: dict[str, str]
    topics: dict[str, TopicTuple]


class _Connection(NamedTuple):
    name: str
    topic: str
    type: str
    md5: str
    definition: str
    messages: int
    maker: BagMaker
    undecoded: builtins.type
    """Of messages that no definition decodes: their bytes are in `raw`."""

    @property
    def header(self) -> dict[str, str]:
        return {"topic": self.topic, "type": self.type, "md5sum": self.md5, "message_definition": self.definition}


class Bag:
    """An old bag. `read_messages` returns (topic, message, timestamp) in time order."""

    def __init__(self, f: Source, mode: str = "r", **_: Any) -> None:
        if mode != "r":
            raise ROSBagException("this reads bags only: to write its messages for other tools: rovelog.convert")
        try:
            reader = _source.reader(f)
        except (NotALogError, UnreadableError, UnsupportedError) as error:
            raise ROSBagFormatException(str(error)) from error
        if reader.info()["format"] != "rosbag":
            raise ROSBagFormatException(f"this is not a ROS 1 bag: {reader.path}")
        self._open_reader: _core.Reader | None = reader
        self.filename = reader.path
        self._connections = []
        both = zip(reader.topics(), BagExtras(reader).connections, strict=True)
        for index, (topic, found) in enumerate(both):
            kind, md5, definition = found.type, found.md5sum, found.definition or ""
            maker = _maker(reader.fields(index), kind, md5, definition)
            undecoded = _maker([("raw", None, "uint8[]", None, None)], kind, md5, definition)[0]
            self._connections.append(
                _Connection(found.name, found.topic, kind, md5, definition, topic["count"], maker, undecoded)
            )

    @property
    def _reader(self) -> _core.Reader:
        if self._open_reader is None:
            raise ValueError("I/O operation on closed bag")
        return self._open_reader

    def read_messages(
        self,
        topics: str | Iterable[str] | None = None,
        start_time: Any = None,
        end_time: Any = None,
        connection_filter: Callable[..., bool] | None = None,
        raw: bool = False,
        return_connection_header: bool = False,
    ) -> Iterator[Any]:
        """Returns messages in time order. `start_time` and `end_time`, both inclusive, are Times or
        seconds; `raw` returns (type, bytes, md5 sum, position in the file, None) for each
        message; `connection_filter` is called with topic, type, md5 sum, definition and header.
        """
        chosen = self._chosen(topics, connection_filter)
        start, end = _nanos(start_time), _nanos(end_time)
        connections: list[BagConnection | None] = [
            {
                "topic": found.topic,
                "kind": found.type,
                "md5": found.md5,
                "maker": found.maker,
                "undecoded": found.undecoded,
                "header": found.header if return_connection_header else None,
            }
            if found in chosen
            else None
            for found in self._connections
        ]
        return _core.bag_messages(
            self._reader,
            connections,
            (start, None if end is None else end + 1),
            raw=raw,
            given=BagMessageWithConnectionHeader if return_connection_header else BagMessage,
        )

    def _chosen(
        self, topics: str | Iterable[str] | None, asked: Callable[..., bool] | None = None
    ) -> list[_Connection]:
        if isinstance(topics, str):
            topics = [topics]
        names = None if topics is None else {_canonical(topic) for topic in topics}
        return [
            found
            for found in self._connections
            if (names is None or _canonical(found.topic) in names)
            and (asked is None or asked(found.topic, found.type, found.md5, found.definition, found.header))
        ]

    def get_message_count(self, topic_filters: str | Iterable[str] | None = None) -> int:
        """The number of messages, of some topics or of all."""
        return sum(found.messages for found in self._chosen(topic_filters))

    def get_type_and_topic_info(self, topic_filters: str | Iterable[str] | None = None) -> TypesAndTopicsTuple:
        """The types with their md5 sums, and what there is of each topic."""
        types: dict[str, str] = {}
        topics: dict[str, TopicTuple] = {}
        times: dict[str, list[int]] = {}
        chosen = self._chosen(topic_filters)
        for found in chosen:
            types[found.type] = found.md5
        names = {found.name: found.topic for found in chosen}
        for record in self._reader.messages(list(names), (None, None), raw=True):
            times.setdefault(names[record.topic], []).append(record.t_ns or 0)
        for found in chosen:
            stamps = times.get(found.topic, [])
            connections = sum(other.topic == found.topic for other in chosen)
            topics[found.topic] = TopicTuple(found.type, len(stamps), connections, _frequency(stamps))
        return TypesAndTopicsTuple(types, topics)

    def get_start_time(self) -> float:
        """The lowest stamp, seconds."""
        return self._span(0)

    def get_end_time(self) -> float:
        """The highest stamp, seconds."""
        return self._span(1)

    def _span(self, end: int) -> float:
        info = self._reader.info()
        nanos = (info["start_ns"], info["end_ns"])[end]
        if nanos is None:
            raise ROSBagException("Bag contains no message")
        return Time(*divmod(nanos, 10**9)).to_sec()

    def close(self) -> None:
        """Releases the file."""
        self._open_reader = None

    def __enter__(self) -> Bag:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self.read_messages()


def _canonical(topic: str) -> str:
    return re.sub("/+", "/", topic).rstrip("/")


def _nanos(time: Any) -> int | None:
    if time is None:
        return None
    if hasattr(time, "to_nsec"):
        return int(time.to_nsec())
    return round(float(time) * 1e9)


def _frequency(stamps: list[int]) -> float | None:
    """Hz, by the median of the periods; None below two messages."""
    periods = sorted(b - a for a, b in zip(stamps, stamps[1:], strict=False))
    if not periods:
        return None
    middle = len(periods) // 2
    median = periods[middle] if len(periods) % 2 else (periods[middle - 1] + periods[middle]) / 2
    return 1e9 / median if median else None


def _maker(fields: list[Any], kind: str, md5: str, definition: str) -> BagMaker:
    """What messages of a type are made of; the class is made of names only, never of code."""
    names = [name for name, *_ in fields]
    facts: dict[str, Any] = {"_type": kind, "_md5sum": md5, "_full_text": definition, "_slot_types": [source for _, _, source, *_ in fields]}
    plain = all(name.isidentifier() and not name.startswith("__") and not hasattr(Message, name) for name in names)
    # Names that Python has no slots for are kept as any attribute is.
    facts["__slots__"] = names if plain else ("__dict__",)
    made = type(kind.rsplit("/", 1)[-1] or "Message", (Message,), facts)
    made.__slots__ = names  # type: ignore[attr-defined]
    return made, [(sys.intern(name), _nested(source, inner)) for name, _, source, _, inner in fields]


def _nested(source: str, inner: list[Any] | None) -> BagMaker | None:
    """What makes the messages in a field; none where a field has values."""
    element = ARRAY.sub("", source)
    return None if inner is None or element in ("time", "duration") else _maker(inner, element, "", "")
