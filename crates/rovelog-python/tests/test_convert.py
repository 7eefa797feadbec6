"""Conversions, compared with the values that pyarrow and mcap read from the outputs."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from conftest import CORPUS, another_thread_gets_on, command, stops_at_ctrl_c
from mcap.reader import make_reader

import rovelog as rl


def without_times(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in ("t_ns", "time") if name in table.column_names])


def as_text(column: pa.ChunkedArray) -> str:
    """Returns all values. NaNs become texts, so that they compare equal."""
    return repr(column.to_pylist())


def test_one_topic_as_parquet(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "attitude.parquet"
    log = rl.open(real)
    done = rl.convert(real, out, topics="vehicle_attitude", start="+1s", end="+31s")
    want = log["vehicle_attitude"].between("+1s", "+31s").to_arrow()
    got = pq.read_table(out)
    assert done == ("parquet", len(want), ["vehicle_attitude/0"], [str(out)], [])
    assert got["t_ns"].to_pylist() == want["t_ns"].to_pylist() and len(want) > 1000
    for name in without_times(want).column_names:
        assert as_text(got[name]) == as_text(want[name]), name
    facts = got.schema.metadata
    assert facts[b"rovelog.source_sha256"].decode() == hashlib.sha256(real.read_bytes()).hexdigest()
    assert facts[b"rovelog.source_name"].decode() == real.name


def test_a_folder_has_a_file_for_each_topic(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    log = rl.open(real.read_bytes())
    topics = {topic.name: topic for topic in log.topics.values() if topic.count}
    for kind in ("arrow", "csv"):
        folder = tmp_path / kind
        done = rl.convert(log, folder, kind=kind)
        assert done.kind == kind and done.records == sum(topic.count for topic in topics.values())
        assert done.topics == list(topics) and len(done.files) == len(topics)
        assert sorted(str(path) for path in folder.iterdir()) == sorted(done.files)
        for name, file in zip(done.topics, done.files, strict=True):
            if kind == "arrow":
                with pa.ipc.open_file(file) as reader:
                    got = reader.read_all()
                assert reader.schema.metadata[b"rovelog.source_sha256"].decode() == hashlib.sha256(real.read_bytes()).hexdigest()
                want = topics[name].to_arrow()
                for column in without_times(want).column_names:
                    assert as_text(got[column]) == as_text(want[column]), (name, column)
            else:
                assert len(pa.csv.read_csv(file)) == topics[name].count
        with pytest.raises(rl.WriteError, match="already"):
            rl.convert(log, folder, kind=kind)
        assert rl.convert(log, folder, kind=kind, force=True) == done


def test_mcap_has_every_record(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    log = rl.open(real)
    done = rl.convert(log, tmp_path / "flight.mcap")
    with open(tmp_path / "flight.mcap", "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        times: dict[str, list[int]] = {}
        for _, channel, message in reader.iter_messages(log_time_order=False):
            times.setdefault(channel.topic, []).append(message.log_time)
    assert done.records == sum(map(len, times.values()))
    assert done.topics == [topic.name for topic in log.topics.values() if topic.count]
    offset = log.info.utc_offset_ns or 0
    for name in done.topics:
        assert len(times[name]) == log[name].count
    assert times["vehicle_attitude/0"] == [m.t_ns + offset for m in log.messages("vehicle_attitude") if m.t_ns is not None]


def test_ndjson_has_the_values_of_the_records(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    log = rl.open(flight)
    done = rl.convert(log, tmp_path / "flight.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "flight.jsonl").read_text().splitlines()]
    assert done.kind == "ndjson" and done.records == len(lines) == log.records
    assert [(line["topic"], line["offset"]) for line in lines] == [(m.topic, m.offset) for m in log.messages()]


@pytest.mark.parametrize("name", ["rld/v4.rld", "vel/gps-degrees.vel", "vel/pose-wxyz.vel", "rosbag/types-nested.bag"])
def test_tables_of_other_formats(name: str, tmp_path: pathlib.Path) -> None:
    log = rl.open(CORPUS / name)
    done = rl.convert(log, tmp_path, kind="parquet")
    assert done.topics and not done.lost
    for topic, file in zip(done.topics, done.files, strict=True):
        want, got = log[topic].to_arrow(), pq.read_table(file)
        assert len(got) == len(want) == log[topic].count
        for column in without_times(want).column_names:
            assert as_text(got[column]) == as_text(want[column]), (topic, column)


def test_nested_times_keep_their_nanoseconds(tmp_path: pathlib.Path) -> None:
    log = rl.open(CORPUS / "rosbag/robot.bag")
    topic = next(topic for topic in log.topics.values() if topic.count and any(f.name == "header" for f in topic.fields))
    done = rl.convert(log, tmp_path / "flat.parquet", topics=topic.name, flatten=True)
    table = pq.read_table(done.files[0])
    stamps = [row["stamp"].value for row in topic.to_arrow()["header"]]
    assert table["header.stamp_ns"].to_pylist() == stamps and len(stamps) > 0


def test_parameters_from_before_the_window_are_kept(tmp_path: pathlib.Path) -> None:
    log = rl.open(CORPUS / "ulog/parameters+changes.ulg")
    rl.convert(log, tmp_path / "a.mcap", start="+10ms")
    with open(tmp_path / "a.mcap", "rb") as file:
        found = [(channel.topic, message.log_time) for _, channel, message in make_reader(file).iter_messages()]
    values = [time for topic, time in found if topic == "parameters"]
    assert len(values) >= len(log.params) > 0 and min(values) == min(time for _, time in found)


def test_messages_of_a_bag_keep_their_bytes(tmp_path: pathlib.Path) -> None:
    log = rl.open(CORPUS / "rosbag/recorded+two-topics.bag")
    done = rl.convert(log, tmp_path / "a.mcap")
    with open(tmp_path / "a.mcap", "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        found = [(c.topic, s.name if s else None, c.message_encoding, m.data) for s, c, m in reader.iter_messages() if c.message_encoding == "ros1"]
    kinds = {connection.topic: connection.type for connection in log.bag.connections}
    raw = log._reader.messages(None, (None, None), raw=True)
    assert found == [(m.topic, kinds[m.topic], "ros1", m.fields()) for m in raw] and done.records >= len(found) > 0


def test_other_threads_run_during_a_conversion(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    log = rl.open(real)
    with another_thread_gets_on():
        rl.convert(log, tmp_path / "a.mcap")


def test_outputs_are_identical_to_those_of_the_command(tmp_path: pathlib.Path) -> None:
    """The output of `convert` is identical to that of `rovelog export`, for each format and
    kind.
    """
    for name in ("rld/v4.rld", "vel/all-kinds.vel", "rosbag/recorded+two-topics.bag", "ulog/nested-types.ulg"):
        path = CORPUS / name
        for kind in ("mcap", "ndjson"):
            ours = tmp_path / f"ours.{kind}"
            rl.convert(path, ours, force=True)
            assert ours.read_bytes() == exported(path, tmp_path / f"theirs.{kind}"), (path.name, kind)


def test_losses_are_reported(tmp_path: pathlib.Path) -> None:
    path = CORPUS / "vel/images-of-three-sources.vel"
    with pytest.warns(rl.DataLossWarning, match="ImageM/-1, field data: .*CSV"):
        done = rl.convert(path, tmp_path / "images", kind="csv")
    assert {(left.topic, left.field) for left in done.lost} == {(f"ImageM/{source}", "data") for source in (-1, 0, 1)}


def test_errors_are_exceptions(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    several = CORPUS / "ulog/one-topic+multi-id.ulg"
    with pytest.raises(rl.UnsupportedError, match="the output format xlsx is unknown"):
        rl.convert(flight, tmp_path / "a.csv", kind="xlsx")
    with pytest.raises(rl.UnsupportedError, match="extension"):
        rl.convert(flight, tmp_path / "a")
    with pytest.raises(rl.UnsupportedError, match="nanoseconds"):
        rl.convert(flight, tmp_path / "a.parquet", time_unit="ns", profile="spark")
    with pytest.raises(rl.RovelogError, match="can contain only one topic"):
        rl.convert(several, tmp_path / "a.csv")
    with pytest.raises(rl.TopicNotFound):
        rl.convert(flight, tmp_path / "a.mcap", topics=["nothing"])
    with pytest.raises(rl.RovelogError, match="no records"):
        rl.convert(flight, tmp_path / "a.mcap", topics=[])
    with pytest.raises(rl.MissingFolderError, match="cannot write") as missing:
        rl.convert(flight, tmp_path / "no/a.mcap")
    assert missing.value.path == str(tmp_path / "no/a.mcap")
    with pytest.raises(rl.WriteError, match="a folder"):
        rl.convert(flight, tmp_path, kind="mcap", force=True)
    copy = tmp_path / "a.ulg"
    copy.write_bytes(flight.read_bytes())
    with pytest.raises(rl.WriteError, match="the output file is also the input file"):
        rl.convert(copy, copy, kind="mcap", force=True)
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(rl.RovelogError, match="must be a folder, but is a file"):
        rl.convert(flight, f"{tmp_path}/a.txt/", kind="csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "a.ulg"]


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
@pytest.mark.parametrize("work", ["rl.convert(log, sys.argv[2], force=True)", "log.recover(sys.argv[2], force=True)"])
def test_ctrl_c_leaves_no_part_behind(work: str, real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    stops_at_ctrl_c(work, real, tmp_path / "a.mcap")
    assert not list(tmp_path.glob("*.partial"))


def command_s_diff(*args: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(command("diff", *args, "-f", "json").stdout)
    return document


def test_diff_returns_the_document_of_the_command() -> None:
    a, b = (str(CORPUS / "ulog" / name) for name in ("parameters+changes.ulg", "default-parameters.ulg"))
    assert rl.diff(a, b) == command_s_diff(a, b)
    assert rl.diff(a, b)["params"] and rl.diff(a, a) == {**command_s_diff(a, a), "different": False}
    a, b = (str(CORPUS / "ulog" / name) for name in ("one-topic.ulg", "one-topic+multi-id.ulg"))
    with rl.open(a) as first:
        found = rl.diff(first, pathlib.Path(b), ignore_counts=True)
        # `convert` does not close a log that the caller has opened.
        assert first.records
    assert found == command_s_diff(a, b, "--ignore-counts")
    assert [topic["change"] for topic in found["topics"]] == ["added"] * len(found["topics"])


def test_an_old_bag_is_converted_to_v2(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "new.bag"
    done = rl.convert(CORPUS / "rosbag/recorded.bag", out)
    assert done == ("bag2", 5, ["/chatter"], [str(out)], [])
    assert out.read_bytes().startswith(b"#ROSBAG V2.0\n")
    assert rl.convert(CORPUS / "ulog/one-topic.ulg", tmp_path / "flight.bag").records == 11
    with pytest.raises(rl.UnsupportedError, match="RLD logs cannot be converted to ROS messages"):
        rl.convert(CORPUS / "rld/v4.rld", tmp_path / "no.bag")


def exported(path: pathlib.Path, out: pathlib.Path, *options: str) -> bytes:
    """Returns the output of the command."""
    done = command("export", path, "-o", out, "--force", *options)
    assert done.returncode in (0, 3), done.args
    return out.read_bytes()


OPTIONS: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg", "mcap", {"typed": False}, ["--no-typed"]),
    ("ulog/one-topic.ulg", "mcap", {"keep_ned": True}, ["--keep-ned"]),
    ("ulog/nested-types.ulg", "csv", {"topics": "tree", "delimiter": ";", "names": "dot"}, ["--topics", "tree", "--delimiter", ";", "--names", "dot"]),
    ("ulog/nested-types.ulg", "csv", {"topics": "tree", "dialect": "pyulog"}, ["--topics", "tree", "--dialect", "pyulog"]),
    ("ulog/nested-types.ulg", "arrow", {"topics": "tree", "flatten": True}, ["--topics", "tree", "--flatten"]),
    ("ulog/nested-types.ulg", "parquet", {"topics": "tree", "time_unit": "ns"}, ["--topics", "tree", "--time-unit", "ns"]),
    ("ulog/nested-types.ulg", "parquet", {"topics": "tree", "profile": "spark"}, ["--topics", "tree", "--profile", "spark"]),
    ("vel/images-of-three-sources.vel", "parquet", {"topics": "ImageM/0", "blobs": True}, ["--topics", "ImageM/0", "--blobs"]),
    ("vel/all-kinds.vel", "mcap", {"raw": True}, ["--raw"]),
    ("vel/velodyne-vlp16.vel", "mcap", {"model": "VLP-16"}, ["--model", "VLP-16"]),
    ("rld/rate-64000.rld", "mcap", {"full": True}, ["--full"]),
    ("rld/v4.rld", "csv", {"dialect": "rocketlogger"}, ["--dialect", "rocketlogger"]),
    ("rld/v2.rld", "csv", {"dialect": "rocketlogger-v2"}, ["--dialect", "rocketlogger-v2"]),
    ("rosbag/recorded.bag", "mcap", {"ros2": True}, ["--ros2"]),
    ("rosbag/definition-header-of-roslib.bag", "mcap", {"modernize": True}, ["--modernize"]),
    ("rosbag/recorded.bag", "bag", {"compression": "bz2"}, ["--compression", "bz2"]),
]


@pytest.mark.filterwarnings("ignore::rovelog.DataLossWarning")
@pytest.mark.parametrize(("name", "extension", "options", "words"), OPTIONS)
def test_options_are_those_of_the_command(name: str, extension: str, options: dict[str, Any], words: list[str], tmp_path: pathlib.Path) -> None:
    ours, theirs, plain = (tmp_path / f"{word}.{extension}" for word in ("ours", "theirs", "plain"))
    done = rl.convert(CORPUS / name, ours, **options)
    assert done.files == [str(ours)] and done.records > 0
    assert ours.read_bytes() == exported(CORPUS / name, theirs, *words)
    # Each option changes the bytes of the output, except these two, which have no effect on some
    # logs.
    if "keep_ned" not in options and "model" not in options:
        topics = {key: value for key, value in options.items() if key == "topics"}
        if not name.startswith("rld/v") or extension != "csv":
            rl.convert(CORPUS / name, plain, **topics)
            assert ours.read_bytes() != plain.read_bytes()


def test_a_calibration_makes_clouds(tmp_path: pathlib.Path) -> None:
    lasers = "".join(f"<item><px><id_>{i}</id_><vertCorrection_>{i / 3 - 20}</vertCorrection_></px></item>" for i in range(64))
    (tmp_path / "db.xml").write_text(f"<DB><points_>{lasers}</points_></DB>")
    path = CORPUS / "vel/velodyne-hdl64-s2.vel"
    with pytest.warns(rl.DataLossWarning, match="left out: the points of an HDL-64E"):
        assert rl.convert(path, tmp_path / "without.mcap").lost
    assert not rl.convert(path, tmp_path / "with.mcap", calibration=tmp_path / "db.xml").lost
    with pytest.raises(rl.RovelogError):
        rl.convert(path, tmp_path / "no.mcap", calibration=tmp_path / "none.xml")
    with pytest.raises(rl.UnsupportedError, match="the model nonsense is unknown"):
        rl.convert(path, tmp_path / "no.mcap", model="nonsense")
    assert not (tmp_path / "no.mcap").exists()


def test_options_that_do_not_apply_are_rejected(tmp_path: pathlib.Path) -> None:
    ulog, rld = CORPUS / "ulog/one-topic.ulg", CORPUS / "rld/v4.rld"
    elsewhere: list[tuple[str, dict[str, Any]]] = [
        ("csv", {"typed": False}),
        ("mcap", {"flatten": True}),
        ("csv", {"blobs": True}),
        ("mcap", {"compression": "bz2"}),
    ]
    for extension, option in elsewhere:
        with pytest.raises(rl.UnsupportedError, match="does not apply"):
            rl.convert(ulog, tmp_path / f"no.{extension}", **option)
    wrong: list[dict[str, Any]] = [{"dialect": "excel"}, {"names": "plain"}, {"delimiter": ";;"}, {"dialect": "rocketlogger"}]
    for option in wrong:
        with pytest.raises(rl.UnsupportedError):
            rl.convert(ulog, tmp_path / "no.csv", **option)
    with pytest.raises(rl.UnsupportedError, match="whole log"):
        rl.convert(rld, tmp_path / "no.csv", dialect="rocketlogger", topics="samples")
    assert not list(tmp_path.iterdir())
