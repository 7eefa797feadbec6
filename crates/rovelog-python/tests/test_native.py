"""Logs, topics, columns and records as Python containers: pickling, indexing, alignment; images and
clouds as arrays.
"""

from __future__ import annotations

import builtins
import io
import multiprocessing
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from conftest import real_file

import rovelog as rl
from rovelog._optional import require


def same(a: Any, b: Any) -> bool:
    return bool(a.to_polars().equals(b.to_polars()))


def _facts(given: Any) -> Any:
    if isinstance(given, rl.Topic):
        return given.name, len(given), given.to_polars().hash_rows().sum()
    return repr(given), given.records, list(given.topics)


def test_pickled_by_path(flight: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(flight.parent)
    log = rl.open(flight.name, topics="t")
    topic = log["t"].select("timestamp").between("+0s", None)
    for given in (log, topic, topic.table()):
        assert len(pickle.dumps(given)) < 1000
    assert same(pickle.loads(pickle.dumps(topic)), topic) and same(pickle.loads(pickle.dumps(topic.table())), topic)
    again = pickle.loads(pickle.dumps(log))
    assert again.records == log.records and list(again.topics) == list(log.topics) and again.info == log.info
    monkeypatch.chdir("/")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        second = rl.open(flight)["t", 1]
        assert pool.map(_facts, [log, topic, second]) == [_facts(log), _facts(topic), _facts(second)]


def test_pickled_in_memory(flight: pathlib.Path) -> None:
    log = rl.open(flight.read_bytes())
    assert same(pickle.loads(pickle.dumps(log["t"])), log["t"])
    with open(flight, "rb") as file:
        log = rl.open(file)
    for given in (log, log["t"], log["t"].table()):
        with pytest.raises(rl.UnsupportedError, match="file object"):
            pickle.dumps(given)
    with pytest.raises(rl.UnsupportedError, match="to_arrow"):
        pickle.dumps(next(iter(log["t"].batches())))


def test_a_pickle_of_a_changed_log_opens_it_again(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight.read_bytes())
    data = pickle.dumps(rl.open(path)["t"])
    pickle.loads(data)
    path.unlink()
    with pytest.raises(rl.MissingFileError):
        pickle.loads(data)


def test_records_are_copied(real_log: rl.Log) -> None:
    for number, m in enumerate(real_log.messages()):
        again = pickle.loads(pickle.dumps(m))
        assert repr(again) == repr(m) and (again.topic, again.t_ns, again.seq, again.offset) == (m.topic, m.t_ns, m.seq, m.offset)
        assert list(again) == m.keys() == list(m) and len(m) == len(m.keys()) and m
        if number == 300:
            break
    bag = rl.open(real_file("rosbag12/type_zoo.bag"))
    assert all(repr(pickle.loads(pickle.dumps(m))) == repr(m) for m in bag.messages())


def test_records_have_get(real_log: rl.Log) -> None:
    m = next(iter(real_log["vehicle_attitude"]))
    assert m.get("q[0]") == m["q[0]"] and m.get("nothing") is None and m.get("nothing", 5) == 5


def test_topics_are_containers(real_log: rl.Log) -> None:
    attitude = real_log["vehicle_attitude"]
    assert len(attitude) == attitude.count == len(list(attitude)) == len(attitude["q"])
    part = attitude.between("+1s", "+2s")
    assert 0 < len(part) == len(part["timestamp"]) == len(list(part)) < len(attitude)
    assert attitude["q"].shape == (len(attitude), 4) and np.array_equal(attitude["q[1]"], attitude["q"][:, 1])
    assert np.array_equal(attitude.table()["q"], attitude["q"])
    with pytest.raises(rl.FieldNotFound):
        attitude["nothing"]
    assert attitude.between(0, 0) and len(attitude.between(0, 0)) == 0
    assert "q" in attitude._ipython_key_completions_() and "t_ns" in attitude.table()._ipython_key_completions_()
    assert "vehicle_attitude" in real_log._ipython_key_completions_() and len(real_log) == len(real_log.topics)
    assert "q" in next(iter(attitude))._ipython_key_completions_()


def test_fields_with_fields() -> None:
    log = rl.open(real_file("rosbag12/indexed.bag"))
    topic = next(topic for topic in log.topics.values() if topic.type == "sensor_msgs/LaserScan")
    assert set(topic["header"]) == {"seq", "stamp", "frame_id"} or "stamp.sec" in topic["header"]


def test_frames(real_log: rl.Log) -> None:
    frames = real_log.frames()
    assert frames["vehicle_attitude"].equals(real_log["vehicle_attitude"].to_polars()) and len(frames) > 20
    assert list(real_log.frames("vehicle_attitude", "pandas")) == ["vehicle_attitude"]
    with pytest.raises(rl.TopicNotFound):
        real_log.frames(["nothing"])


def test_align_with_the_values_of_polars(real_log: rl.Log) -> None:
    """Compares the alignment with a join in polars, for each method and with a tolerance."""
    base = real_log["vehicle_attitude"]
    for name in ("vehicle_gps_position", "sensor_combined", "battery_status"):
        right = real_log[name].to_polars().drop("time", strict=False).sort("t_ns")
        for how, strategy in (("previous", "backward"), ("nearest", "nearest")):
            for tolerance in (None, 30_000_000):
                got = real_log.align(name, on="vehicle_attitude", how=how, tolerance=tolerance)  # type: ignore[arg-type]
                left = base.to_polars().select("t_ns").sort("t_ns")
                want = left.join_asof(right, on="t_ns", strategy=strategy, tolerance=tolerance)  # type: ignore[arg-type]
                assert got.columns == ["t_ns", *(f"{name}.{column}" for column in right.columns if column != "t_ns")]
                timestamps = got[f"{name}.timestamp"], want["timestamp"]
                if how == "previous":
                    assert timestamps[0].equals(timestamps[1]), (name, tolerance)
                else:
                    # If two records have the same distance, either is correct.
                    far = [(stamp - left["t_ns"] // 1000).abs() for stamp in timestamps]
                    assert far[0].equals(far[1], null_equal=True) or (far[0] - far[1]).drop_nulls().abs().max() <= 1


def test_align_between_records(tmp_path: pathlib.Path, real_log: rl.Log) -> None:
    topic = real_log["sensor_combined"]
    times = topic.numpy()["t_ns"]
    middle = (times[:-1] + times[1:]) // 2
    got = real_log.align(topic.name, on=middle.tolist(), how="linear")
    gyro = topic.numpy("gyro_rad")["gyro_rad"].astype(float)
    plain = topic.numpy("accelerometer_timestamp_relative")["accelerometer_timestamp_relative"]
    found = got["sensor_combined.accelerometer_timestamp_relative"].to_numpy()
    share = (middle - times[:-1]) / (times[1:] - times[:-1])
    assert np.allclose(found, plain[:-1] + (plain[1:].astype(float) - plain[:-1]) * share)
    between = gyro[:-1] + (gyro[1:] - gyro[:-1]) * share[:, None]
    assert np.allclose(got["sensor_combined.gyro_rad"].to_numpy(), between, rtol=1e-12, atol=0)
    outside = real_log.align(topic.name, on=[int(times[0]) - 1, int(times[-1]) + 1], how="linear")
    assert outside["sensor_combined.accelerometer_integral_dt"].null_count() == 2


def test_align_on_a_grid(real_log: rl.Log) -> None:
    got = real_log.align(["vehicle_attitude", "battery_status"], on="100ms", start="+1s", end="+3s", tolerance="1s")
    assert got["t_ns"].diff().drop_nulls().unique().to_list() == [100_000_000] and len(got) == 20
    assert {"vehicle_attitude.q", "battery_status.voltage_v"} <= set(got.columns)
    assert len(real_log.align("vehicle_attitude", on=[])) == 0
    for wrong, error in (({"on": "nothing"}, rl.TopicNotFound), ({"on": "0s"}, ValueError), ({"on": "1s", "how": "next"}, rl.UnsupportedError)):
        with pytest.raises(error):
            real_log.align("vehicle_attitude", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        real_log.align("vehicle_attitude", on="1s", tolerance=-1)


def test_align_at_times_in_any_order(real_log: rl.Log) -> None:
    times = real_log["vehicle_attitude"].numpy()["t_ns"][:50]
    backwards = real_log.align("battery_status", on=times[::-1])
    assert backwards.reverse().equals(real_log.align("battery_status", on=times))


def test_signals(real_log: rl.Log) -> None:
    """Compares signals with computations in numpy over the same columns."""
    q = real_log["vehicle_attitude"].numpy("q")["q"].astype(float)
    got = real_log.signals("vehicle_attitude.q[0..3]", "n=norm(vehicle_attitude.q)", "deg(vehicle_attitude.q.yaw)")
    assert got.column_names[:2] == ["t_ns", "time"] and got.column_names[-2:] == ["n", "deg(vehicle_attitude.q.yaw)"]
    assert np.allclose(got["n"], np.linalg.norm(q, axis=1), rtol=1e-14)
    assert np.array_equal(got["vehicle_attitude.q[2]"], q[:, 2])
    units = [field.metadata[b"unit"] for field in got.to_arrow().schema if field.metadata]
    assert units[-1] == "°".encode()
    with pytest.raises(rl.FieldNotFound, match="no topic vehicle_atitude"):
        real_log.signals("vehicle_atitude.q")
    with pytest.raises(rl.FieldNotFound, match="the units of"):
        real_log.signals("battery_status.voltage_v + battery_status.current_a")


def test_events(real_log: rl.Log) -> None:
    columns = real_log["vehicle_attitude"].numpy()
    yaw = real_log.signals("vehicle_attitude.q.yaw")["vehicle_attitude.q.yaw"]
    middle = float(np.median(yaw))
    found = real_log.events(f"vehicle_attitude.q.yaw > {middle!r}")
    holds = yaw > middle
    starts = np.flatnonzero(holds & ~np.r_[False, holds[:-1]])
    assert [event.start_ns for event in found] == columns["t_ns"][starts].tolist()
    assert sum(event.rows for event in found) == holds.sum() and found[0].min > middle  # type: ignore[operator]
    longest = max(event.end_ns - event.start_ns for event in found)
    assert len(real_log.events(f"vehicle_attitude.q.yaw > {middle!r} for {longest}ns")) >= 1
    assert real_log.events(f"vehicle_attitude.q.yaw > {middle!r} for {longest + 1}ns") == []
    with pytest.raises(rl.FieldNotFound, match="not a condition"):
        real_log.events("vehicle_attitude.q.yaw")


def test_images_and_clouds() -> None:
    log = rl.open(real_file("rosbag20/real_image_points_2018.bag"))
    seen = set()
    for m in log.messages():
        if "encoding" in m:
            seen.add("image")
            pixels = rl.image(m)
            assert pixels.shape[:2] == (m["height"], m["width"]) and pixels.tobytes() == m["data"]
        elif "point_step" in m:
            seen.add("cloud")
            points = rl.cloud(m)
            assert points.size == m["width"] * m["height"] and points["x"].dtype.kind == "f" and points.tobytes() == m["data"]
    assert seen


def image(**changes: Any) -> dict[str, Any]:
    given = {"height": 2, "width": 3, "encoding": "mono8", "is_bigendian": 0, "step": 4, "data": bytes(range(8))}
    return {**given, **changes}


def test_images() -> None:
    assert rl.image(image()).tolist() == [[0, 1, 2], [4, 5, 6]]
    assert rl.image(image(data=bytes(range(7)))).tolist() == [[0, 1, 2], [4, 5, 6]]
    assert rl.image(image(encoding="mono16", width=2, is_bigendian=1)).tolist() == [[1, 0x203], [0x405, 0x607]]
    assert rl.image(image(encoding="bgr8", width=1)).tolist() == [[[0, 1, 2]], [[4, 5, 6]]]
    assert rl.image(image(encoding="32FC1", width=1, data=np.arange(2, dtype="<f4").tobytes())).tolist() == [[0.0], [1.0]]
    assert rl.image(image(encoding="8UC2", width=2)).shape == (2, 2, 2)
    for wrong in ({"data": b"123"}, {"step": 2}):
        with pytest.raises(ValueError, match="bytes"):
            rl.image(image(**wrong))
    with pytest.raises(rl.UnsupportedError, match="h264"):
        rl.image(image(encoding="h264"))


def test_clouds() -> None:
    fields = [{"name": "x", "offset": 0, "datatype": 7, "count": 1}, {"name": "n", "offset": 6, "datatype": 4, "count": 1}]
    data = b"".join(np.float32(number).tobytes() + b"--" + np.uint16(number).tobytes() for number in range(4))
    given = {"height": 1, "width": 4, "fields": fields, "is_bigendian": 0, "point_step": 8, "row_step": 32, "data": data}
    points = rl.cloud(given)
    assert points["x"].tolist() == [0, 1, 2, 3] == points["n"].tolist() and points.shape == (4,)
    assert rl.cloud({**given, "height": 2, "width": 2, "row_step": 16})["n"].tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="bytes"):
        rl.cloud({**given, "data": data[:-1]})


def test_energy_of_a_part() -> None:
    log = rl.open(real_file("rld/test_full.rld"))
    [whole] = log.rld.energy(power="V1*I1")
    assert log.rld.energy(power="V1*I1", start=0) == [whole]
    parts = [log.rld.energy(power="V1*I1", start=start, end=end)[0] for start, end in ((None, "+2s"), ("+2s", None))]
    assert sum(part.rows for part in parts) == whole.rows and all(0 < part.rows < whole.rows for part in parts)
    total = sum(part.energy["V1*I1"] or 0 for part in parts)
    assert abs(total - (whole.energy["V1*I1"] or 0)) < 1e-12
    windows = log.rld.energy("1s", power="V1*I1", start="+1s", end="+3s")
    assert sum(window.rows for window in windows) == log.rld.energy(power="V1*I1", start="+1s", end="+3s")[0].rows
    states = log.rld.energy(by="DI1", power="V1*I1", start="+1s", end="+3s")
    assert sum(state.rows for state in states) == sum(window.rows for window in windows)
    both = log.rld.energy("1s", by="DI1", power="V1*I1", start="+1s", end="+3s")
    assert sum(state.rows for state in both) == sum(window.rows for window in windows)
    assert log.rld.energy(power="V1*I1", start=0, end=0)[0].rows == 0


def test_scan_of_folders_and_patterns(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for name in ("a/1.ulg", "a/2.ulg", "a/b/3.ULG", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(flight.read_bytes())
    rows = len(rl.open(flight)["t"])

    def count(given: Any) -> dict[str, int]:
        found = rl.scan(given, "t", path_column="log").group_by("log").len().collect()
        return {pathlib.Path(name).name: number for name, number in found.iter_rows()}

    assert count(tmp_path) == {"1.ulg": rows, "2.ulg": rows, "3.ULG": rows}
    assert count(str(tmp_path / "a/*.ulg")) == {"1.ulg": rows, "2.ulg": rows}
    assert count([tmp_path / "a/b", str(tmp_path / "**/1.ulg")]) == {"1.ulg": rows, "3.ULG": rows}
    assert count(str(tmp_path / "a/[2-9].ulg")) == {"2.ulg": rows}
    assert [log.path for log in rl.logs(tmp_path / "a/[2-9].ulg")] == [str(tmp_path / "a/2.ulg")]
    for nothing in (str(tmp_path / "*.bag"), tmp_path / "a/c"):
        pathlib.Path(tmp_path / "a/c").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match="no (such file|log)"):
            rl.scan(nothing, "t")


def test_a_topic_is_lazy(real_log: rl.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries decode only what they need, also those of DuckDB."""
    attitude, asked = real_log["vehicle_attitude"], []
    batches = rl.Topic.batches

    def noted(topic: rl.Topic) -> Any:
        asked.append((topic._fields, topic._window))
        return batches(topic)

    monkeypatch.setattr(rl.Topic, "batches", noted)
    frame = attitude.lazy()
    assert frame.collect().equals(attitude.to_polars())
    middle = int(attitude.numpy()["t_ns"][600])
    asked.clear()
    kept = frame.filter(pl.col("t_ns") >= middle).select(pl.col("timestamp").max()).collect().item()
    assert kept == attitude["timestamp"].max() and asked == [(["timestamp"], (middle, None))]
    asked.clear()
    assert duckdb.sql("SELECT max(timestamp), count(*) FROM frame").fetchall() == [(kept, len(attitude))]
    assert asked == [(["timestamp"], (None, None))]
    asked.clear()
    assert duckdb.sql(f"SELECT count(*) FROM frame WHERE t_ns >= {middle}").fetchall() == [(len(attitude) - 600,)]
    assert asked == [([], (middle, None))]
    part = attitude.select("q[1]", "timestamp").between(None, "+2s")
    assert part.lazy().filter(pl.col("t_ns") >= 0).collect().equals(part.to_polars())
    assert attitude.between(middle, None).lazy().filter(pl.col("t_ns") < middle).collect().is_empty()


def test_a_requested_schema_selects_columns(real_log: rl.Log) -> None:
    topic = real_log["vehicle_attitude"]
    whole = pa.table(topic)
    for names in (["q", "t_ns"], ["timestamp"], ["time"], ["t_ns"]):
        wanted = pa.schema([whole.schema.field(name) for name in names])
        found = pa.RecordBatchReader.from_stream(topic, schema=wanted).read_all()
        assert found.column_names == names and found.equals(whole.select(names))
    part = topic.between("+1s", "+2s")
    found = pa.RecordBatchReader.from_stream(part, schema=pa.schema([whole.schema.field("timestamp")])).read_all()
    assert found.num_rows == len(part)
    wider = pa.schema([pa.field("delta_q_reset", pa.list_(pa.float32(), 4)), pa.field("quat_reset_counter", pa.float64())])
    assert pa.RecordBatchReader.from_stream(topic, schema=wider).read_all().column_names == wider.names
    # A requested schema with an unknown column is ignored, and all columns are returned.
    other = pa.schema([pa.field("nothing", pa.int8())])
    assert pa.RecordBatchReader.from_stream(topic, schema=other).read_all().num_columns == whole.num_columns


def test_convert_to_a_buffer(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for kind, topics in (("mcap", None), ("parquet", "t"), ("csv", "t")):
        out = io.BytesIO()
        done = rl.convert(flight, out, kind=kind, topics=topics)  # type: ignore[arg-type]
        rl.convert(flight, tmp_path / f"a.{kind}", topics=topics)
        assert out.getvalue() == (tmp_path / f"a.{kind}").read_bytes() and done.records > 0 and done.files == []
    with pytest.raises(rl.UnsupportedError, match="file object"):
        rl.convert(flight, io.BytesIO())
    with pytest.raises(rl.RovelogError, match="one topic"):
        rl.convert(flight, io.BytesIO(), kind="parquet")


WITHOUT = """
import sys
sys.modules[{name!r}] = None
import rovelog as rl
try:
    rl.open({path!r})["t"].{call}()
except ModuleNotFoundError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("name", "call", "extra"), [("polars", "to_polars", "polars"), ("pandas", "to_pandas", "pandas"), ("pyarrow", "to_arrow", "arrow")])
def test_a_missing_library_says_what_to_install(name: str, call: str, extra: str, flight: pathlib.Path) -> None:
    script = WITHOUT.format(name=name, path=str(flight), call=call)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith(f"MissingLibrary {name} is not installed") and f"rovelog[{extra}]" in done.stdout, done.stderr
    assert issubclass(rl.MissingLibrary, builtins.ModuleNotFoundError) and pl is not None


def test_a_missing_engine_says_what_to_install() -> None:
    with pytest.raises(rl.MissingLibrary, match="next: pip install no_engine$"):
        require("no_engine.sql")
