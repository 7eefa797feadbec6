"""Derived fields, `utc_start`, iteration over many logs, and comparison of signals."""

from __future__ import annotations

import datetime as dt
import json
import os
import pathlib
import pickle
import warnings

import numpy as np
import pytest
from conftest import CORPUS, command

import rovelog as rl


def test_derived_fields_are_columns_of_a_topic(real: pathlib.Path) -> None:
    log = rl.open(real)
    topic = log["vehicle_attitude"]
    assert topic.derived[:3] == ["q.roll", "q.pitch", "q.yaw"]
    q = topic["q"].astype(float)
    # scipy normalizes quaternions. Those of 32-bit floats have a length of almost 1.
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    np.testing.assert_allclose(topic["q.roll"], roll, atol=1e-12)
    np.testing.assert_allclose(topic["norm(q)"], np.linalg.norm(q, axis=1))
    part = topic.select("q[0..1]", "q.yaw", "double=2*q[3]")
    assert part.table().column_names[-4:] == ["q[0]", "q[1]", "q.yaw", "double"]
    np.testing.assert_array_equal(topic["double=2*q[3]"], 2 * q[:, 3])
    # The values are the same in one table, in batches, in a time window, and after a pickle.
    batches = np.concatenate([batch["q.yaw"] for batch in part.batches()])
    np.testing.assert_array_equal(part.table()["q.yaw"], batches)
    later = part.between("+1s", "+3s")
    assert 0 < len(later.table()) == len(later) < len(topic)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(later)).table()["double"], later.table()["double"])
    # The result of a selection can be selected again.
    assert part.select("double").table().column_names[-1] == "double"
    assert set(topic["q*"]) == {"q", "quat_reset_counter"}
    with pytest.raises(rl.FieldNotFound, match="no field nothing"):
        topic.select("nothing")
    with pytest.raises(rl.FieldNotFound, match="the units of"):
        topic.select("q.yaw + timestamp")


def test_derived_fields_are_those_of_the_command_line() -> None:
    path = CORPUS / "rld/v4.rld"
    topic = rl.open(path)["samples"]
    rows = [json.loads(line) for line in command("cat", path, "--fields", "I1,P=V1*I1", "-f", "ndjson").stdout.splitlines()]
    frame = topic.select("I1", "P=V1*I1").table().numpy()
    for name in ("I1", "P"):
        expected = [np.nan if row["data"][name] is None else row["data"][name] for row in rows]
        np.testing.assert_array_equal(frame[name], expected)


def test_a_clock_that_was_set_does_not_change_durations() -> None:
    path = CORPUS / "rld/clock-step-of-years.rld"
    log = rl.open(path)
    # The log has 30 rows at 1 kSPS. The clock was set before row 10.
    assert (log.info.clock, log.info.utc_rule, log.info.duration_ns) == ("boot", "block_times", 29 * 1_003_520)
    frame = log["samples"].to_polars()
    assert [frame["time"][row].year for row in (0, 9, 10, 29)] == [2023, 2023, 2030, 2030]
    assert log["samples"].between("+10ms", "+20ms").table().numpy()["t_ns"].size == 10
    set_at = dt.datetime(2030, 1, 1, tzinfo=dt.timezone.utc)
    assert (len(log["samples"].between(end=set_at)), len(log["samples"].between(start=set_at))) == (10, 20)
    assert log.start is not None and log.start.year == 2023
    end = log.utc(log.info.end_ns)
    assert end is not None and end.year == 2030
    boot = rl.open(CORPUS / "rld/v4.rld", time_base="boot")
    assert boot.info.clock == "boot" and boot.start == rl.open(CORPUS / "rld/v4.rld").start
    assert pickle.loads(pickle.dumps(boot)).info.clock == "boot"
    with pytest.raises(rl.UnsupportedError, match="only UTC"):
        rl.open(CORPUS / "rosbag/recorded.bag", time_base="boot")


def test_regular_times_are_not_many_more_than_records() -> None:
    log = rl.open(CORPUS / "rld/v4.rld")
    with pytest.raises(rl.UnsupportedError, match="rows for the times of this log, which has only 15 records") as error:
        log.align("samples", on="1ns", end="+1ms")
    assert "force=True" in str(error.value.next)
    assert len(log.align("samples", on="1us", end="+1ms")) == 1000
    assert len(log.align("samples", on="50ns", end="+1ms", force=True)) == 20_000


def test_text_that_is_not_utf_8_is_escaped_or_decoded() -> None:
    path = CORPUS / "rosbag/texts-cp1251.bag"
    escaped = [r"\xcf\xf0\xe8\xe2\xe5\xf2", r"C:\\\xf1\xf2\xee\xef", r"C:\xcf"]
    said = "2 texts of std_msgs/String.data are not UTF-8"
    for read in (
        lambda log: [message["data"] for message in log.messages()],
        lambda log: log["/a"].to_pandas()["data"].tolist(),
        lambda log: log["/a"].to_polars()["data"].to_list(),
        lambda log: log["/a"].to_arrow()["data"].to_pylist(),
    ):
        with pytest.warns(UnicodeWarning, match=said) as warned:
            assert read(rl.open(path)) == escaped
        assert len(warned) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decoded = rl.open(path, text_encoding="cp1251")
            assert read(decoded) == ["Привет", "C:\\стоп", r"C:\xcf"]
            assert read(pickle.loads(pickle.dumps(decoded)))[0] == "Привет"
    with pytest.warns(UnicodeWarning, match="3 texts of t.s are not UTF-8"):
        assert rl.open(CORPUS / "ulog/char-arrays.ulg")["t"].to_pandas()["s"].iloc[3] == r"caf\xe9 ol\xe9"
    with pytest.raises(rl.UnsupportedError, match="in text_encoding is not supported"):
        rl.open(path, text_encoding="utf-16")


def test_utc_start_sets_the_utc_of_a_log() -> None:
    path = CORPUS / "ulog/one-topic.ulg"
    given = "2026-05-20T12:01:05Z"
    moment = dt.datetime(2026, 5, 20, 12, 1, 5, tzinfo=dt.timezone.utc)
    assert rl.open(path).start is None
    for start in (given, moment, int(moment.timestamp()) * 10**9):
        log = rl.open(path, utc_start=start)
        assert log.start == moment and log.info.utc_rule == "utc_start"
        assert pickle.loads(pickle.dumps(log)).start == moment
    assert rl.open(path.read_bytes(), utc_start=given).start == moment
    with pytest.raises(rl.UnsupportedError, match="clock of the log is UTC"):
        rl.open(CORPUS / "rosbag/recorded.bag", utc_start=given)
    with pytest.raises(ValueError, match="is not a UTC time"):
        rl.open(path, utc_start="yesterday")


def test_times_keep_all_nine_decimals() -> None:
    path = CORPUS / "ulog/one-topic.ulg"
    log = rl.open(path, utc_start="2026-05-20T14:01:05.123456789+02:00")
    assert log.info.data_start_ns is not None and log.info.utc_offset_ns is not None
    start = log.info.data_start_ns + log.info.utc_offset_ns
    assert start == int(dt.datetime(2026, 5, 20, 12, 1, 5, tzinfo=dt.timezone.utc).timestamp()) * 10**9 + 123456789
    topic = next(topic for topic in log.topics.values() if topic.count > 1)
    since = [topic.between(f"2026-05-20T12:01:05.{digits}Z", None) for digits in ("123456789", "12345679")]
    kept = [len(rows.table().numpy()["t_ns"]) for rows in since]
    assert kept[0] == topic.count == kept[1] + 1


def test_an_unreadable_log_does_not_end_a_loop(tmp_path: pathlib.Path) -> None:
    good = CORPUS / "ulog/one-topic.ulg"
    for name in ("a.ulg", "c.ulg"):
        (tmp_path / name).write_bytes(good.read_bytes())
    (tmp_path / "b.ulg").write_bytes(b"no log")
    logs = rl.logs(tmp_path, good)
    assert len(logs) == 4
    with pytest.warns(rl.UnreadLogWarning, match=r"b\.ulg"):
        assert [log.name for log in logs] == ["a.ulg", "c.ulg", "one-topic.ulg"]
    assert [os.path.basename(path) for path in logs.failed] == ["b.ulg"]
    assert isinstance(next(iter(logs.failed.values())), rl.NotALogError)
    with pytest.warns(rl.UnreadLogWarning):
        counts = logs.map(lambda log: len(log["t"]))
    assert list(counts.values()) == [10, 10, 10] and str(good) in counts
    with pytest.warns(rl.UnreadLogWarning, match="no topic nothing"):
        seen: list[rl.Log] = []
        assert rl.logs(good).map(lambda log: seen.append(log) or log["nothing"]) == {}  # type: ignore[func-returns-value]
        assert repr(seen[0]) == "<rovelog.Log, closed>"
    with pytest.warns(rl.UnreadLogWarning, match="none"):
        assert list(rl.logs(tmp_path / "none.ulg")) == []
    with pytest.raises(rl.RovelogError, match="no log in this folder"):
        rl.logs(CORPUS / "expected")


def test_signals_of_two_logs_are_compared_as_by_the_command() -> None:
    a, b = (str(CORPUS / "ulog" / name) for name in ("one-topic.ulg", "one-topic+multi-id.ulg"))
    found = rl.diff(a, b, fields=["x", "double=2*x"], topics="t/0")
    run = command("diff", a, b, "--fields", "x,double=2*x", "--topics", "t/0", "-f", "json")
    assert found == json.loads(run.stdout)
    x, double = found["statistics"]
    assert (x["field"], double["field"]) == ("x", "double") and double["a"]["max"] == 2 * x["a"]["max"]
    assert rl.diff(a, b, stats=True)["statistics"]
    with pytest.raises(rl.FieldNotFound, match="no selected topic has a field zzz"):
        rl.diff(a, b, fields="zzz")
    with pytest.raises(rl.TopicNotFound, match="nothing"):
        rl.diff(a, b, topics="nothing")
