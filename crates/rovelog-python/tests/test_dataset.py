"""Topics as pyarrow datasets, compared with the whole table."""

from __future__ import annotations

import pathlib
import pickle
import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from conftest import CASES, CORPUS, case_log, real_file
from crafted import bag

import rovelog as rl
from rovelog import _dataset

duckdb = pytest.importorskip("duckdb", reason="SKIPPED: duckdb is not installed")
pl = pytest.importorskip("polars", reason="SKIPPED: polars is not installed")

T = pc.field("t_ns")


@pytest.fixture(scope="module")
def attitude() -> rl.Topic:
    return rl.open(real_file("ulog/sample.ulg"))["vehicle_attitude"]


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str] | None, Any]]:
    """Records the fields and the window of each scan."""
    found: list[tuple[list[str] | None, Any]] = []
    limited = _dataset._limited

    def recording(topic: rl.Topic, window: Any) -> rl.Topic:
        found.append((topic._fields, window))
        return limited(topic, window)

    monkeypatch.setattr(_dataset, "_limited", recording)
    return found


def test_scans_decode_what_they_need(attitude: rl.Topic, scans: list[Any]) -> None:
    whole, dataset = attitude.to_arrow(), attitude.dataset()
    middle, later = whole["t_ns"][600].as_py(), whole["t_ns"][900].as_py()
    for filter, window in (
        (None, (None, None)),
        (T >= middle, (middle, None)),
        ((T > middle) & (pc.field("rollspeed") > 0), (middle, None)),
        ((pc.field("yawspeed") > 0) & ((T < later) & (T >= middle)), (middle, later)),
        (T == middle, (middle, middle + 1)),
        ((T == middle) | (T == later), (middle, later + 1)),
        (T.isin([middle, later]), (middle, later + 1)),
        (~(T < middle), (middle, None)),
        ((T >= middle) | (pc.field("rollspeed") > 0), (None, None)),
        (pc.field("timestamp") >= middle // 1000, (None, None)),
    ):
        for columns in (None, ["q"], ["t_ns", "timestamp"], [], {"a": pc.field("rollspeed") + pc.field("yawspeed")}):
            scans.clear()
            found = dataset.to_table(columns=columns, filter=filter)  # type: ignore[arg-type]
            want = ds.InMemoryDataset(whole).to_table(columns=columns, filter=filter)  # type: ignore[arg-type]
            assert found.equals(want), (filter, columns)
            [(fields, decoded)] = scans
            assert decoded == window, filter
            named = f"{filter} {columns if columns is None or isinstance(columns, list) else columns['a']}"
            assert fields == (None if columns is None else [name for name in whole.column_names[1:] if name in named])
    assert dataset.count_rows() == len(whole) and dataset.count_rows(filter=T < middle) == 600
    assert dataset.head(5).equals(whole[:5]) and dataset.take([7, 3]).equals(whole.take([7, 3]))
    assert dataset.schema.equals(whole.schema, check_metadata=True)


def test_duckdb_passes_columns_and_conditions(attitude: rl.Topic, scans: list[Any]) -> None:
    dataset, whole = attitude.dataset(), attitude.to_arrow()
    middle = whole["t_ns"][600].as_py()
    query = f"SELECT max(rollspeed), count(*) FROM given WHERE t_ns >= {middle}"
    given: Any = whole
    want = duckdb.sql(query).fetchall()
    given = dataset
    assert duckdb.sql(query).fetchall() == want and want[0][1] == len(whole) - 600
    assert scans == [(["rollspeed"], (middle, None))]
    scans.clear()
    assert duckdb.sql("SELECT count(*) FROM given").fetchall() == [(len(whole),)] and given is dataset
    assert scans == [([], (None, None))]


def test_polars_passes_columns_and_conditions(attitude: rl.Topic, scans: list[Any]) -> None:
    frame = attitude.to_polars()
    middle = frame["t_ns"][600]
    condition = (pl.col("t_ns") >= middle) & (pl.col("yawspeed") > 0)
    found = pl.scan_pyarrow_dataset(attitude.dataset()).filter(condition).select("rollspeed").collect()
    assert found.equals(frame.filter(condition).select("rollspeed")) and len(found) > 0
    assert scans == [(["rollspeed", "yawspeed"], (middle, None))]


def test_parts_of_topics(attitude: rl.Topic) -> None:
    part = attitude.select("q[1]", "timestamp").between("+1s", "+20s")
    whole, dataset = part.to_arrow(), part.dataset()
    middle = whole["t_ns"][600].as_py()
    assert dataset.to_table().equals(whole) and dataset.schema.names == ["t_ns", "q[1]", "timestamp"]
    for filter in (T >= middle, T < middle, T >= 0, T < 0):
        assert dataset.to_table(["q[1]"], filter=filter).equals(whole.filter(filter).select(["q[1]"]))


def test_times_in_utc(scans: list[Any]) -> None:
    log = rl.open(real_file("rosbag12/indexed.bag"))
    topic = next(topic for topic in log.topics.values() if topic.count > 10)
    whole, dataset = topic.to_arrow(), topic.dataset()
    time, t_ns = whole["time"][len(whole) // 2], whole["t_ns"][len(whole) // 2].as_py()
    assert dataset.to_table(filter=pc.field("time") >= time).equals(whole.filter(pc.field("time") >= time))
    assert scans[-1][1] == (t_ns, None)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("rld/clock-step*.rld")), ids=lambda path: path.stem)
def test_times_in_utc_after_the_clock_was_set(path: pathlib.Path) -> None:
    log = rl.open(path)
    topic = log["samples"].select()
    whole, dataset, utc = topic.to_arrow(), topic.dataset(), pc.field("time")
    assert log.info.utc_knots
    for at in whole["time"]:
        for filter in (utc >= at, utc < at, utc == at):
            assert dataset.to_table(filter=filter).equals(whole.filter(filter)), filter


def test_a_field_named_time_is_the_column_time(tmp_path: pathlib.Path) -> None:
    payloads = [struct.pack("<di", at + 0.5, at) for at in range(10)]
    path = bag(tmp_path / "time.bag", "test_msgs/Timed", "float64 time\nint32 x", payloads)
    topic = rl.open(path)["/t"]
    whole, dataset = topic.to_arrow(), topic.dataset()
    assert whole.column_names == ["t_ns", "time", "x"] and whole["time"].to_pylist() == [at + 0.5 for at in range(10)]
    assert topic.select("x").to_arrow().column_names == ["t_ns", "x"]
    assert topic.select("x=x*2").to_arrow().column_names == ["t_ns", "x"]
    filter = pc.field("time") > 3
    for columns in (None, ["time", "x"], ["x"], ["time"], ["t_ns"]):
        want = whole if columns is None else whole.select(columns)
        assert dataset.to_table(columns=columns).equals(want), columns
        assert dataset.to_table(columns=columns, filter=filter).equals(want[3:]), columns
        read = pa.RecordBatchReader.from_stream(topic, schema=want.schema).read_all()
        assert read.equals(want), columns


def test_functions_that_bypass_the_scanner(attitude: rl.Topic, tmp_path: pathlib.Path) -> None:
    """Functions of Arrow that bypass the scanner of the dataset."""
    whole, dataset = attitude.to_arrow(), attitude.dataset()
    filter = T >= whole["t_ns"][600].as_py()
    assert ds.Scanner.from_dataset(dataset, columns=["q"], filter=filter).to_table().equals(whole.filter(filter).select(["q"]))
    assert pa.concat_tables([whole, whole]).equals(ds.dataset([dataset, dataset]).to_table())
    assert [len(fragment.to_table()) for fragment in dataset.get_fragments()] == [len(whole)]
    falling = dataset.sort_by([("t_ns", "descending")]).to_table()
    assert falling["t_ns"].equals(whole.sort_by([("t_ns", "descending")])["t_ns"])
    left = attitude.select("rollspeed").dataset()
    joined = left.join(attitude.select("yawspeed").dataset(), "t_ns", join_type="inner").to_table()
    assert joined.num_rows == len(whole) and joined.column_names == ["t_ns", "rollspeed", "yawspeed"]
    ds.write_dataset(dataset, tmp_path, format="parquet")
    assert ds.dataset(tmp_path).to_table().equals(whole)


def test_readers_do_not_share_a_position(attitude: rl.Topic) -> None:
    (fragment,) = attitude.dataset().get_fragments()
    first, second = fragment.open(), fragment.open()
    assert first.read(6) == second.read(6) == b"ARROW1"


def test_filters_add_up_and_pickle(attitude: rl.Topic, scans: list[Any]) -> None:
    whole = attitude.to_arrow()
    middle, later = whole["t_ns"][600].as_py(), whole["t_ns"][900].as_py()
    dataset = attitude.dataset().filter(T >= middle).filter(T < later)
    for given in (dataset, pickle.loads(pickle.dumps(dataset))):
        assert given.to_table().equals(whole[600:900])
        assert given.to_table(filter=pc.field("rollspeed") > 0).equals(whole[600:900].filter(pc.field("rollspeed") > 0))
    assert {window for _, window in scans} == {(middle, later)}
    again = pickle.loads(pickle.dumps(attitude.dataset()))
    assert again.to_table().equals(whole)


def test_rows_out_of_order_and_without_times() -> None:
    """Windows never exclude a matching row, in all corpus cases with rows out of order or without
    times.
    """
    odd = {"no time": 0, "falling": 0}
    for case in CASES:
        try:
            log = rl.open(case_log(case))
        except rl.RovelogError:
            continue
        for topic in log.topics.values():
            try:
                whole = topic.select().to_arrow()
            except rl.UnreadableError:
                continue
            times = whole["t_ns"]
            if times.null_count == 0 and times.to_pylist() == sorted(times.to_pylist()):
                continue
            odd["no time" if times.null_count else "falling"] += 1
            dataset = topic.select().dataset()
            for at in {0, *times.drop_null().to_pylist()}:
                for filter in (T >= at, T < at, T == at, (T > at) | T.is_null()):
                    assert dataset.to_table(filter=filter).equals(whole.filter(filter)), (case, topic.name, filter)
            assert dataset.to_table(filter=T.is_null()).num_rows == times.null_count
    assert min(odd.values()) > 3, odd


def test_sql_queries_the_topics_of_a_log() -> None:
    log = rl.open(real_file("ulog/sample.ulg"))
    attitude = log["vehicle_attitude"]
    rows = log.sql("SELECT count(*), max(t_ns) FROM Vehicle_Attitude WHERE t_ns > ?", [attitude.first_ns]).fetchall()
    assert rows == [(len(attitude) - 1, attitude.last_ns)]
    query = """
        SELECT a.t_ns, o.noutputs FROM vehicle_attitude a ASOF LEFT JOIN actuator_outputs o ON a.t_ns >= o.t_ns
        ORDER BY a.t_ns
    """
    aligned = log.align(["actuator_outputs"], on="vehicle_attitude")
    assert log.sql(query).fetchall() == aligned.select("t_ns", "actuator_outputs.noutputs").rows()
    with pytest.raises(duckdb.CatalogException, match="missing"):
        log.sql("FROM missing").fetchall()
