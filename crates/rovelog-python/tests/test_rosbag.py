"""The drop-in for rosbag, compared with results of an independent scanner and decoder."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import crafted
import pytest
from conftest import CORPUS, REAL, over, real_file

import rovelog
from rovelog import RovelogError
from rovelog.compat.rosbag import Bag, Duration, Message, ROSBagException, ROSBagFormatException, ROSBagUnindexedException, Time
from rovelog.compat.rosbag import _messages
from rovelog.compat.rosbag._errors import SerializationError
from rovelog.compat.rosbag.bag import ROSBagEncryptException

EXPECTED = sorted(REAL.glob("rosbag12/expected/*.json"))


def bags() -> list[object]:
    """Returns the parameters for a test over all V1.2 bags."""
    return over(path for path in EXPECTED if json.loads(path.read_text())["version"] == "1.2")


def bag_of(expected: pathlib.Path) -> pathlib.Path:
    return expected.parent.parent / expected.stem


def same(want: Any, got: Any) -> bool:
    """Returns True if an expected value is equal to that of a message."""
    if isinstance(got, (Time, Duration)):
        return want == {"sec": got.secs, "nsec": got.nsecs}
    if isinstance(got, Message):
        return list(want) == got.__slots__ and all(same(want[name], getattr(got, name)) for name in want)
    if isinstance(want, dict) and "hex" in want:
        return bytes.fromhex(want["hex"]) == got
    if isinstance(want, dict) and "sha256" in want:
        if isinstance(got, bytes):
            return len(got) == want["len"] and hashlib.sha256(got).hexdigest() == want["sha256"]
        return len(got) == want["len"] and same(want["head"], got[: len(want["head"])])
    if isinstance(want, list):
        return len(want) == len(got) and all(itertools.starmap(same, zip(want, got, strict=True)))
    if isinstance(got, float):
        return float(want) == got or (math.isnan(float(want)) and math.isnan(got))
    return bool(want == got)


@pytest.mark.parametrize("expected", bags())
def test_every_bag(expected: pathlib.Path) -> None:
    truth = json.loads(expected.read_text())
    with Bag(bag_of(expected)) as bag:
        assert bag.get_message_count() == truth["messages"]
        stamps = [stamp for _, _, stamp in bag.read_messages()]
        assert stamps == sorted(stamps) and len(stamps) == truth["messages"]
        if truth["messages"]:
            assert stamps[0] == Time(*truth["min_time"]) and stamps[-1] == Time(*truth["max_time"])
            assert bag.get_start_time() == stamps[0].to_sec() and bag.get_end_time() == stamps[-1].to_sec()
        else:
            with pytest.raises(ROSBagException):
                bag.get_start_time()
        for topic in truth["topics"]:
            check_topic(bag, topic)


def check_topic(bag: Bag, truth: dict[str, Any]) -> None:
    """Returns the payloads and the first and last message of a topic."""
    only = {"connection_filter": lambda _topic, kind, md5, *_: (kind, md5) == (truth["type"], truth["md5"])}
    raw = list(bag.read_messages([truth["topic"]], raw=True, **only))
    assert len(raw) == truth["count"]
    assert {found.message[0] for found in raw} <= {truth["type"]}
    payloads = sorted((found.message[3], found.message[1]) for found in raw)
    assert hashlib.sha256(b"".join(data for _, data in payloads)).hexdigest() == truth["payload_sha256"]
    decoded = list(bag.read_messages([truth["topic"]], **only))
    places = {found.message[3]: at for at, found in enumerate(raw)}
    for end in ("first", "last"):
        want = truth[end]
        if want is None or want["value"] is None or truth["definition"]["from"] in ("layouts", "none"):
            continue
        found = decoded[places[want["offset"]]]
        assert found.timestamp == Time(*want["time"])
        assert same(want["value"], found.message), (truth["topic"], end)
        assert found.message._type == truth["type"] and found.message._md5sum == truth["md5"]
        assert len(found.message._slot_types) == len(found.message.__slots__)


def test_stamps() -> None:
    first, last = Time(3, 1), Time(5, 999_999_999)
    span = last - first
    assert repr(span) == "Duration(2, 999999998)" and (span.secs, span.nsecs) == (2, 999_999_998)
    assert first + span == last and last - span == first and span + first == last
    assert repr(-span) == "Duration(-3, 2)" and abs(-span) == span and span - span == Duration()
    assert repr(Time(1.5)) == "Time(1, 500000000)" and Time.from_sec(1.5) == Time(1.5) and str(Time(1.5)) == "1500000000"
    assert Time(0, 10**9) == Time(1) and hash(Time(0, 10**9)) == hash(Time(1))
    carried, before = Time(1, 2_500_000_000), Duration(0, -5)
    assert (carried.secs, carried.nsecs) == (3, 500_000_000)
    assert (before.secs, before.nsecs) == (-1, 999_999_995) and abs(before) == Duration(0, 5)
    assert first < last and first != last and Time(1) != Duration(1) and Time(1) != 1
    assert Time(7).__class__ is Time and span * 2 == 2 * span == Duration(5, 999_999_996) and Duration(4) / 2 == Duration(2)
    assert Duration(5) / Duration(2) == 2.5 and Duration(5) // Duration(2) == 2 and Duration(5) % 2 == Duration(1)
    assert divmod(Duration(-5), 2) == (Duration(-3), Duration(1)) and Duration(3) * 0.5 == Duration(1.5)
    assert not Time() and Time().is_zero() and first
    assert copy.deepcopy(last) == last and pickle.loads(pickle.dumps(span)) == span
    # Times in messages have the stored values.
    carried.set(1, 2_500_000_000)
    stored = pickle.loads(pickle.dumps(carried))
    assert (stored.secs, stored.nsecs) == (1, 2_500_000_000)
    last.secs = 7
    assert last.to_sec() == 7.999999999 and last.to_nsec() == 7_999_999_999
    # As in genpy, nanoseconds are truncated.
    assert Time(10, 5e8) == Time(10.5) and Time(3, 0.9) == Time(3) and Duration(0, -1.9) == Duration(0, -1)
    assert Time(1.5, 0.0) == Time(1.5) and Time(secs=True, nsecs=1.0) == Time(1, 1)
    assert Time.__slots__ == ["secs", "nsecs"] and Duration(1)._slot_types == ["int32", "int32"]
    wrong: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: Time(1.5, 1), ValueError),
        (lambda: Time(1.5, 0.5), ValueError),
        (lambda: Time(1, math.inf), ValueError),
        (lambda: Time(math.nan), ValueError),
        (lambda: Time("1"), TypeError),  # type: ignore[arg-type]
        (lambda: Time(-1), TypeError),
        (lambda: Time(0, -1), TypeError),
        (lambda: Time.from_sec(-0.5), TypeError),
        (lambda: Time(1) - Duration(2), TypeError),
        (lambda: Time(1) + Duration(-2), TypeError),
        (lambda: first < span, TypeError),  # type: ignore[operator]
        (lambda: first + last, TypeError),  # type: ignore[operator]
        (lambda: span - first, TypeError),  # type: ignore[operator]
        (lambda: span / 0, ZeroDivisionError),
        (lambda: Time(10**15).to_nsec(), OverflowError),
    ]
    for make, error in wrong:
        with pytest.raises(error):
            make()


class Stamp(Time):
    """A time that a script derives. Its arguments differ from those of `Time`."""

    def __init__(self, text: str) -> None:
        super().__init__(*map(int, text.split(".")))


class Span(Duration):
    pass


def test_derived_stamps() -> None:
    stamp = Stamp("5.7")
    assert isinstance(stamp, Time) and stamp == Time(5, 7) and hash(stamp) == hash(Time(5, 7))
    for again in (copy.copy(stamp), copy.deepcopy(stamp), pickle.loads(pickle.dumps(stamp))):
        assert type(again) is Stamp and again == stamp
    assert type(stamp - Time(1)) is Duration and stamp - Time(1) == Duration(4, 7)
    span = Span(3, 500_000_000)
    results = [span + span, span - Duration(1), -span, abs(span), span * 2, 0.5 * span, span / 2, span // 2, span % 2, Span.from_sec(1.5)]
    assert {type(found) for found in results} == {Span} and results[-1] == Duration(1.5)
    assert type(Time(1) + span) is Time and [type(found) for found in divmod(span, 2)] == [Span, Span]
    with pytest.raises(TypeError, match="negative"):
        Stamp("-1.0")


@pytest.mark.parametrize("path", sorted(CORPUS.glob("rosbag/*.bag")), ids=lambda path: path.stem)
def test_messages_are_the_payloads(path: pathlib.Path) -> None:
    """Each payload becomes a message, or bytes if the definition cannot decode it, or an error for
    this message alone.
    """
    try:
        bag = Bag(path, allow_unindexed=True)
    except ROSBagEncryptException:
        assert "encrypted" in path.stem
        return
    except (ROSBagFormatException, RovelogError):
        # The native reader rejects the same bags.
        with pytest.raises(RovelogError):
            rovelog.open(path)
        return
    messages = bag.read_messages()
    # As in rosbag, later minor versions are read. The native reader rejects them.
    later = path.stem == "version-2.1"
    records = rovelog.open(path.read_bytes().replace(b"V2.1", b"V2.0", 1) if later else path).messages()
    for topic, (_, payload, *_), stamp in bag.read_messages(raw=True):
        try:
            found = next(messages)
        except RovelogError as error:
            assert topic in str(error)
            with pytest.raises(RovelogError):
                next(records)
            continue
        record = next(records)
        assert (found.topic, found.timestamp) == (topic, stamp)
        assert found.message.__slots__ == list(record.fields())
        assert all(alike(record[name], getattr(found.message, name)) for name in found.message.__slots__)
        if path.stem == "definition-missing":
            assert found.message.__slots__ == ["raw"]
        if found.message.__slots__ == ["raw"]:
            assert found.message.raw == payload


def alike(record: Any, message: Any) -> bool:
    """Returns True if a value of a record is equal to that of the drop-in."""
    if isinstance(message, bytes) and isinstance(record, str):
        # As in rosbag, the drop-in returns bytes for texts that are not UTF-8.
        return message.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace") == record
    if isinstance(message, (Time, Duration)):
        return bool(record == {"sec": message.secs, "nsec": message.nsecs})
    if isinstance(message, Message):
        return all(alike(record[name], getattr(message, name)) for name in message.__slots__)
    if isinstance(message, (list, tuple)):
        return len(record) == len(message) and all(map(alike, record, message))
    return bool(record == message) or (record != record and message != message)


def test_filters() -> None:
    # rosbag fails on the indexed bag and ignores the filters on the others.
    for name in ("indexed.bag", "unindexed.bag", "crashed_indexpos0.bag"):
        bag = Bag(real_file(f"rosbag12/{name}"))
        topic = max(bag.get_type_and_topic_info().topics.items(), key=lambda item: item[1].message_count)[0]
        every = [stamp for _, _, stamp in bag.read_messages(topic)]
        start, end = every[2], every[-3]
        some = [(found, stamp) for found, _, stamp in bag.read_messages(topics=topic, start_time=start, end_time=end)]
        assert {found for found, _ in some} == {topic}
        assert [stamp for _, stamp in some] == [stamp for stamp in every if start <= stamp <= end]
        info = bag.get_type_and_topic_info(topic).topics[topic]
        assert info.message_count == len(every) == bag.get_message_count(topic)
        header = next(bag.read_messages(topic, return_connection_header=True)).connection_header
        assert header["topic"] == topic and header["message_definition"]
        bag.close()
        with pytest.raises(ValueError, match="closed"):
            next(bag.read_messages())


def publishers(bag: Bag, **options: Any) -> list[tuple[str, str | None, str | None]]:
    """Returns text, publisher and `latching` of the messages of a bag with texts."""
    found = bag.read_messages(return_connection_header=True, **options)
    return [(row.message.data, row.connection_header.get("callerid"), row.connection_header.get("latching")) for row in found]


def test_connection_headers(tmp_path: pathlib.Path) -> None:
    """Each message has the header of its publisher, also if other nodes publish the same topic."""
    with Bag(CORPUS / "rosbag/v2.0+two-publishers.bag") as bag:
        assert publishers(bag) == [("a", "/a", "1"), ("m1", "/b", "0"), ("m2", "/b", "0"), ("a", "/a", "1")]
        header = next(bag.read_messages(return_connection_header=True)).connection_header
        stored = bag._connections.values()
        assert any(header is info.header for info in stored) and header["type"] == "std_msgs/String"

        def latched(*facts: Any) -> bool:
            return bool(facts[-1]["latching"] == "1")

        assert [message.data for _, message, _ in bag.read_messages(connection_filter=latched)] == ["a", "a"]
        assert publishers(bag, connection_filter=latched) == [("a", "/a", "1")] * 2
        assert not list(bag.read_messages(connection_filter=lambda *_: False))
        assert len(list(bag.read_messages(connection_filter=lambda *_: True))) == 4
    # Without an index, the bag has no list of connections.
    data = bytearray((CORPUS / "rosbag/v2.0+two-publishers.bag").read_bytes())
    at = data.index(b"index_pos=") + len(b"index_pos=")
    data[at : at + 8] = bytes(8)
    with Bag(bytes(data), allow_unindexed=True) as bag:
        assert publishers(bag) == [("a", "/a", "1"), ("m1", "/b", "0"), ("m2", "/b", "0"), ("a", "/a", "1")]
    latched_12 = [("m0", "/a", "1"), ("m1", "/b", "1"), ("m2", "/a", "1"), ("not latched", None, None)]
    with Bag(CORPUS / "rosbag/latched+two-publishers.bag") as bag:
        assert publishers(bag) == latched_12
        with Bag(tmp_path / "copy.bag", "w", version=102) as out:
            for topic, message, time, header in bag.read_messages(return_connection_header=True):
                out.write(topic, message, time, connection_header=header)
    with Bag(tmp_path / "copy.bag") as bag:
        assert publishers(bag) == latched_12


def test_a_zero_time_is_no_limit() -> None:
    with Bag(CORPUS / "rosbag/recorded.bag") as bag:
        count = len(list(bag))
        for zero in (Time(), 0, 0.0):
            assert len(list(bag.read_messages(start_time=zero, end_time=zero))) == count > 0
        assert not list(bag.read_messages(end_time=Time(0, 1)))


CONSTANTS = """\
int32 MINUS=-1  # one
float64 HALF=0.5
bool YES=True
bool NO=0
string TEXT= it's # all text
int8 from=3
int8 INVALID=zero
int8 value=4
int8 serialize=5
int8 __init__=6
int8 value
pkg/Status status
===
MSG: pkg/Status
uint8 OK=1
uint8 status
"""


def test_constants(tmp_path: pathlib.Path) -> None:
    with Bag(CORPUS / "rosbag/types-constants.bag") as bag:
        message = next(iter(bag)).message
    assert (message.A, message.S) == (-1, "a # b") == (type(message).A, type(message).S)
    assert pickle.loads(pickle.dumps(message)).A == -1 and message.__slots__ == ["x"]
    with Bag(crafted.bag(tmp_path / "a.bag", "pkg/All", CONSTANTS, [b"\x07\x01"])) as bag:
        message = next(iter(bag)).message
    assert (message.MINUS, message.HALF, message.TEXT, message.from_) == (-1, 0.5, "it's # all text", 3)
    assert message.YES is True and message.NO is False and message.status.status == message.status.OK == 1
    # Names that the class needs for itself, and invalid values, are left out.
    assert message.value == 7 and callable(message.serialize) and not hasattr(message, "INVALID")
    assert type(message)(value=8).value == 8


def test_types_are_checked() -> None:
    with Bag(CORPUS / "rosbag/types-nested.bag") as bag:
        message = next(iter(bag)).message
    assert message._get_types() == message._slot_types and message._has_header
    message._check_types()
    with pytest.raises(SerializationError, match="why"):
        message._check_types(ValueError("why"))
    message.one.a = -1
    with pytest.raises(SerializationError, match="field one must be of type pkg/Leaf"):
        message._check_types()


def test_errors(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.bag").write_bytes(b"#ROSBAG V2.1\n" + bytes(100))
    with pytest.raises(ROSBagUnindexedException):
        Bag(tmp_path / "a.bag")
    with pytest.raises(ROSBagException, match="bag"):
        Bag(CORPUS / "ulog/one-topic.ulg")
    with pytest.raises(FileNotFoundError):
        Bag(tmp_path / "no.bag")
    (tmp_path / "empty.bag").touch()
    with pytest.raises(ROSBagException, match="empty"):
        Bag(tmp_path / "empty.bag")


def test_types_with_too_many_classes_are_not_decoded() -> None:
    """Each type has two fields of the previous type, so the tree doubles with each of them."""

    def types(levels: int) -> list[Any]:
        fields = [[], *([("a", f"p/T{level}", level), ("b", f"p/T{level}", level)] for level in range(levels - 1))]
        return [{"name": f"p/T{i}", "md5": str(i), "text": "", "fields": of, "constants": []} for i, of in enumerate(fields)]

    assert _messages.spec_of(types(10), "p/Any", "", "") is not None
    assert _messages.spec_of(types(60), "p/Any", "", "") is None
    assert _messages.spec_of([], "p/Any", "", "") is None
