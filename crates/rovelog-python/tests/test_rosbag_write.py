"""Bags written by the drop-in for rosbag are read again, and by rosbag itself if it is
installed.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
import multiprocessing
import pathlib
import pickle
import subprocess
import sys
import types
from typing import Any

import crafted
import pytest
from conftest import CORPUS, REAL, is_altered, over, real_file

import rovelog
from rovelog.compat.rosbag import Bag, Compression, Duration, Message, ROSBagException, ROSBagUnindexedException, Time, bag

BAGS = sorted(REAL.glob("rosbag12/*.bag")) + sorted(REAL.glob("rosbag20/real_*.bag"))
BAGS = [path for path in BAGS if not is_altered(path)]
COMPRESSIONS = [Compression.NONE, Compression.BZ2]


def rows(path: pathlib.Path) -> list[tuple[Any, ...]]:
    with Bag(path, allow_unindexed=True) as read:
        return [(topic, message[0], message[1], message[2], time) for topic, message, time in read.read_messages(raw=True)]


def sources() -> list[object]:
    """Returns the parameters for a test over all readable bags."""
    found = []
    for path in BAGS:
        try:
            Bag(path, allow_unindexed=True)
        except (ROSBagException, rovelog.RovelogError):
            continue
        found.append(path)
    return over(found)


def copied(source: pathlib.Path, target: pathlib.Path, **options: Any) -> None:
    with Bag(source, allow_unindexed=True) as read, Bag(target, "w", **options) as out:
        for topic, message, time, header in read.read_messages(raw=True, return_connection_header=True):
            out.write(topic, message, time, raw=True, connection_header=header)


def unsorted(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(found, key=lambda row: (row[4].to_nsec(), *row[:4]))


def test_losses_in_a_damaged_bag_are_reported(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "damaged.bag"
    definition = {"topic": "/a", "type": "std_msgs/UInt8", "md5sum": "7c8164229e7d2c17eb95e9231617fdee", "message_definition": "uint8 data"}
    with Bag(path, "w", compression="bz2", chunk_threshold=500) as out:
        for number in range(100):
            message = ("std_msgs/UInt8", bytes([number]), definition["md5sum"], None)
            out.write("/a", message, Time(number + 1, 0), raw=True, connection_header=definition)
    bytes_ = bytearray(path.read_bytes())
    bytes_[bytes_.find(b"BZh", len(bytes_) // 3) + 40] ^= 0xFF
    path.write_bytes(bytes_)
    with pytest.warns(rovelog.DataLossWarning, match="could not be read|missing"), Bag(path) as read:
        assert 50 < len(list(read.read_messages())) < 100
    run = [sys.executable, "-c", "from rovelog.compat.rosbag.rosbag_main import rosbagmain as main; import sys; main(sys.argv)"]
    for arguments in (["compress", str(path)], ["filter", str(path), str(tmp_path / "out.bag"), "True"]):
        done = subprocess.run([*run, *arguments], capture_output=True, text=True)
        assert (done.returncode, done.stderr.startswith("warning: ")) == (3, True), done.stderr
        path.write_bytes(bytes_)


@pytest.mark.parametrize("options", [{}, {"compression": "bz2", "chunk_threshold": 4096}, {"version": 102}], ids=["v2", "bz2", "v1.2"])
@pytest.mark.parametrize("path", sources())
def test_copies_are_equal(path: pathlib.Path, options: dict[str, Any], tmp_path: pathlib.Path) -> None:
    copied(path, tmp_path / "copy.bag", **options)
    # The order of messages with the same time depends on their connections.
    assert unsorted(rows(tmp_path / "copy.bag")) == unsorted(rows(path))
    again = rovelog.open(tmp_path / "copy.bag")
    assert again.state == "complete" and not [problem for problem in again.problems if problem.severity == "data_lost"]


READ = """
import sys, json, hashlib, rosbag
for path in sys.argv[1:]:
    with rosbag.Bag(path) as bag:
        rows = [(topic, m[0], hashlib.sha256(m[1]).hexdigest(), m[2], t.to_nsec()) for topic, m, t in bag.read_messages(raw=True)]
        print(json.dumps([str(bag).splitlines()[1:], bag._get_yaml_info().splitlines()[1:], rows]))
"""


def by_rosbag(*paths: pathlib.Path) -> list[Any]:
    """Returns what the rosbag package of the distribution reads."""
    python = "/usr/bin/python3"
    if not pathlib.Path(python).exists() or subprocess.run([python, "-c", "import rosbag"], capture_output=True, env={}).returncode:
        pytest.skip("SKIPPED: python3-rosbag is not installed")
    done = subprocess.run([python, "-c", READ, *map(str, paths)], capture_output=True, text=True, env={}, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_rosbag_reads_them(tmp_path: pathlib.Path) -> None:
    """Checks that two bags have the same messages and the same description."""
    path = real_file("rosbag20/real_joints_2011.bag")
    copies = []
    for number, compression in enumerate(COMPRESSIONS):
        copies.append(tmp_path / f"{number}.bag")
        copied(path, copies[-1], compression=compression, chunk_threshold=10_000)
    whole, *found = by_rosbag(path, *copies)
    assert all(sorted(rows) == sorted(whole[2]) for _, _, rows in found) and len(whole[2]) > 100
    for copy_path, (text, facts, _) in zip([path, *copies], [whole, *found], strict=True):
        with Bag(copy_path) as read:
            assert str(read).splitlines()[1:] == text
            assert read._get_yaml_info().splitlines()[1:] == facts


@pytest.mark.parametrize("path", sources())
def test_bytes_to_messages_and_back(path: pathlib.Path) -> None:
    with Bag(path, allow_unindexed=True) as read:
        pairs = zip(read.read_messages(), read.read_messages(raw=True), strict=True)
        for (topic, message, _), (_, raw, _) in itertools.islice(pairs, 40):
            made = raw[4]
            if type(message) is not made:
                assert message.raw == raw[1]
                continue
            again = made()
            again.deserialize(raw[1])
            # `==` would fail for NaN, which is not equal to itself.
            assert repr(again) == repr(message), topic
            out = io.BytesIO()
            message.serialize(out)
            # Some payloads have bytes after their last field.
            assert raw[1].startswith(out.getvalue()), topic


def first(path: pathlib.Path) -> Message:
    with Bag(path) as read:
        return next(iter(read)).message


def _text(message: Message) -> str:
    return repr(message)


def test_messages_are_pickled() -> None:
    message = first(real_file("rosbag12/indexed.bag"))
    assert pickle.loads(pickle.dumps(message)) == message == copy.deepcopy(message)
    assert type(pickle.loads(pickle.dumps(message))) is type(message)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_text, [message]) == [repr(message)]
    # Bags share message classes, so that `isinstance` works.
    assert type(first(real_file("rosbag12/indexed.bag"))) is type(message)
    assert message._has_header and message._slot_types[0] == "std_msgs/Header" and message._connection_header is None


def test_messages_are_made_of_values() -> None:
    kind = type(first(real_file("rosbag12/indexed.bag")).header)
    made = kind(seq=7, stamp=Time(1, 2))
    assert (made.seq, made.stamp, made.frame_id) == (7, Time(1, 2), "") and kind(7, Time(1, 2), "") == made
    with pytest.raises(AttributeError):
        kind(nothing=1)
    with pytest.raises(TypeError):
        kind(1)


def test_nested_messages_are_written(tmp_path: pathlib.Path) -> None:
    """The types of fields have MD5 sums and definitions, so parts of a message can be written."""
    with Bag(CORPUS / "rosbag/types-nested.bag") as read:
        message = next(iter(read)).message
    with Bag(tmp_path / "parts.bag", "w") as out:
        out.write("/header", message.header, Time(1))
        out.write("/leaf", message.two, Time(2))
    with Bag(tmp_path / "parts.bag") as read:
        (_, header, _), (_, leaf, _) = read
        assert (header, leaf) == (message.header, message.two)
        types = read.get_type_and_topic_info().msg_types
        assert types == {"pkg/Leaf": message.one._md5sum, "std_msgs/Header": "2176decaecbce78abc3b96ef049fabed"}
    assert leaf._full_text == message.one._full_text == "uint16 a\nstring s\n"
    assert not rovelog.open(tmp_path / "parts.bag").problems
    line = "=" * 80
    definition = f"B b\n{line}\nMSG: pkg/B\nC[2] c\n{line}\nMSG: pkg/C\nint8 x"
    with Bag(crafted.bag(tmp_path / "a.bag", "pkg/A", definition, [b"\1\2"])) as read:
        message = next(iter(read)).message
    assert message._full_text == definition and message.b.c[1]._full_text == "int8 x"
    assert message.b._full_text == f"C[2] c\n{line}\nMSG: pkg/C\nint8 x"


def test_messages_without_a_definition(tmp_path: pathlib.Path) -> None:
    with Bag(CORPUS / "rosbag/definition-missing.bag") as read:
        ((topic, raw, time, header),) = itertools.islice(read.read_messages(raw=True, return_connection_header=True), 1)
        message = next(iter(read)).message
    with Bag(tmp_path / "a.bag", "w") as out:
        with pytest.raises(ROSBagException, match="no definition of its type"):
            out.write(topic, message, time)
        assert not out._chunks and out.get_message_count() == 0
        out.write("/raw", raw, time, raw=True)
        out.write(topic, message, time, connection_header=header)
    assert [row[2] for row in rows(tmp_path / "a.bag")] == [raw[1]] * 2


def test_write_read_append(tmp_path: pathlib.Path) -> None:
    message = first(real_file("rosbag12/indexed.bag")).header
    path = tmp_path / "a.bag"
    with Bag(path, "w", options={"compression": "bz2"}) as out:
        with pytest.raises(ROSBagException, match="no message"):
            out.get_start_time()
        for second in (3, 1, 2):
            out.write("/header", message, Time(second))
            # A message can be read immediately after it was written.
            assert len(list(out.read_messages())) == out.get_message_count() > 0
        assert (out.mode, out.version, out.compression) == ("w", 200, "bz2") and out.size > 4096
    with Bag(path, "a") as out:
        out.write("/header", message, Time(4))
        out.write("/other", message)
    with Bag(path) as read:
        assert [time for _, _, time in read.read_messages("/header")] == [Time(1), Time(2), Time(3), Time(4)]
        assert read.get_compression_info().compression == "bz2" and read.get_start_time() == 3.0
        assert read.get_type_and_topic_info("/header").topics["/header"].frequency == 1.0
        assert read._get_yaml_info("topics[0].messages") == "4"
        with pytest.raises(ROSBagException, match="reading"):
            read.write("/x", message)
    with pytest.raises(ValueError, match="closed"):
        read.write("/x", message)
    assert rovelog.open(path).state == "complete"


def test_reindex(tmp_path: pathlib.Path) -> None:
    """A bag that is truncated anywhere keeps every complete message after `reindex`, and rosbag can
    read it.
    """
    source, message = tmp_path / "whole.bag", first(real_file("rosbag12/indexed.bag")).header
    with Bag(source, "w", chunk_threshold=400) as out:
        for number in range(40):
            out.write(f"/{number % 3}", message, Time(number))
    data = source.read_bytes()
    cut, kept = tmp_path / "cut.bag", []
    for end in range(4200, len(data) - 100, 97):
        cut.write_bytes(data[:end])
        with pytest.raises(ROSBagUnindexedException):
            Bag(cut)
        with Bag(cut, "a", allow_unindexed=True) as out:
            assert all(isinstance(place, int) for place in out.reindex())
        with Bag(cut) as read:
            kept.append(read.get_message_count())
            assert [time.secs for _, _, time in read] == list(range(kept[-1]))
        assert rovelog.open(cut).state == "complete"
    assert kept == sorted(kept) and kept[0] == 0 and kept[-1] == 40
    # Without a call of `reindex`, `close` creates the index.
    cut.write_bytes(data[:-500])
    Bag(cut, "a", allow_unindexed=True).close()
    assert len(by_rosbag(cut)[0][2]) == 40


def test_unsupported_chunks_are_not_truncated(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lz4.bag"
    data = bytearray(real_file("rosbag20/real_turtlesim_lz4.bag").read_bytes())
    at = data.index(b"index_pos=") + len(b"index_pos=")
    data[at : at + 8] = bytes(8)
    path.write_bytes(data)
    monkeypatch.setitem(sys.modules, "lz4", None)
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    with pytest.raises(ROSBagException, match="unsupported compression type: lz4"):
        Bag(path, "a", allow_unindexed=True).close()
    # Opening the bag writes its file header again.
    assert path.read_bytes()[4200:] == data[4200:]


def test_a_rejected_time_changes_nothing(tmp_path: pathlib.Path) -> None:
    message = first(real_file("rosbag12/indexed.bag")).header
    with Bag(tmp_path / "a.bag", "w") as out:
        out.write("/a", message, Time(5))
        with pytest.raises(Exception, match="out of range|format requires"):
            out.write("/a", message, Time(2**32))
        out.write("/a", message, Time(6))
    with Bag(tmp_path / "a.bag") as read:
        assert [time.secs for _, _, time in read] == [5, 6]


def test_arguments() -> None:
    for wrong in ({"mode": "z"}, {"compression": "zip"}, {"chunk_threshold": -1}, {"options": 5}, {"mode": "w", "version": 300}):
        with pytest.raises(ValueError):
            Bag("/nowhere/a.bag" if "version" not in wrong else io.BytesIO(b"x"), **wrong)  # type: ignore[arg-type]
    for nothing in ("", None):
        with pytest.raises(ValueError):
            Bag(nothing)  # type: ignore[arg-type]


def test_streams_and_later_versions() -> None:
    message = first(real_file("rosbag12/indexed.bag")).header

    class Kept(io.BytesIO):
        def close(self) -> None:
            self.data = self.getvalue()
            super().close()

    stream = Kept()
    with Bag(stream, "w") as out:
        out.write("/x", message, Time(5))
        # A later minor version may contain unknown records.
        bag._write_record(out._file, {"op": bag._pack_uint8(99)}, "anything")  # type: ignore[arg-type]
    data = stream.data.replace(b"V2.0", b"V2.1", 1)
    for source in (io.BytesIO(data), data):
        with Bag(source) as read:
            assert read.version == 201 and [time for *_, time in read] == [Time(5)]


def test_exceptions_are_pickled() -> None:
    for error in (ROSBagException("a"), bag.ROSBagFormatException("b"), ROSBagUnindexedException(), bag.ROSBagEncryptException("c")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and again.value == error.value == str(error)


def test_times_of_genpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a script uses genpy, times have its classes, and the classes of this package work with
    them.
    """

    class Stamp:
        def __init__(self, secs: int = 0, nsecs: int = 0) -> None:
            self.secs, self.nsecs = secs, nsecs

    genpy = types.ModuleType("genpy")
    genpy.Time = type("Time", (Stamp,), {})  # type: ignore[attr-defined]
    genpy.Duration = type("Duration", (Stamp,), {})  # type: ignore[attr-defined]
    assert Time(5) - genpy.Time(3) == Duration(2) and genpy.Time(5) - Time(3) == Duration(2)
    assert Time(5) + genpy.Duration(1) == Time(6) == genpy.Duration(1) + Time(5)
    assert Time(5) > genpy.Time(4, 9) and Time(5) == genpy.Time(5) and Time(5) != genpy.Duration(5)
    monkeypatch.setitem(sys.modules, "genpy", genpy)
    monkeypatch.delitem(sys.modules, "rospy", raising=False)
    with Bag(real_file("rosbag12/indexed.bag")) as read:
        found = next(iter(read))
    assert isinstance(found.timestamp, genpy.Time) and isinstance(found.message.header.stamp, genpy.Time)
    assert "secs: " in repr(found.message)


def test_the_command_line(tmp_path: pathlib.Path) -> None:
    def rosbag(*words: object) -> str:
        command = [sys.executable, "-m", "rovelog.compat.rosbag.rosbag_main", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    path, out = real_file("rosbag20/real_turtlesim_2014.bag"), tmp_path / "some.bag"
    said = rosbag("filter", path, out, "t.secs % 2 == 0 and m is not None and topic", "-p", "topic")
    kept = [row for row in rows(path) if row[4].secs % 2 == 0]
    assert unsorted(rows(out)) == unsorted(kept) and said.count("MATCH ") == len(rows(path))
    assert f"messages:    {len(kept)}" in rosbag("info", out)
    assert rosbag("info", "-y", "-k", "messages", out).strip() == str(len(kept))
    rosbag("compress", out)
    with Bag(out) as read:
        assert read.get_compression_info().compression == "bz2" and (tmp_path / "some.orig.bag").exists()
    rosbag("decompress", "-f", out)
    assert unsorted(rows(out)) == unsorted(kept)
