"""Columns in all libraries, without copies where the layout allows it."""

from __future__ import annotations

import concurrent.futures
import pathlib
import re
import struct
from typing import Any

import crafted
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import CORPUS, real_ulogs

import rovelog as rl


def address(values: Any) -> int:
    found: int = values.__array_interface__["data"][0]
    return found


def polars_address(column: pl.Series) -> int:
    """Returns the address of the numbers of a column. Fails if polars would have to copy them."""
    return address(column.to_numpy(allow_copy=False))


def test_polars_pyarrow_and_numpy_share_one_memory(real_log: rl.Log) -> None:
    table = real_log["vehicle_attitude"].table()
    ours = table.numpy()
    arrow = pa.table(table)
    frame = pl.DataFrame(table)
    for name in ("t_ns", "timestamp", "quat_reset_counter"):
        assert arrow[name].num_chunks == 1
        assert arrow[name].chunk(0).buffers()[1].address == address(ours[name])
        assert polars_address(frame[name]) == address(ours[name])
        assert not ours[name].flags.writeable
    quaternion = arrow["q"].chunk(0)
    assert quaternion.type == pa.list_(pa.field("item", pa.float32(), nullable=False), 4)
    assert quaternion.values.buffers()[1].address == address(ours["q"])
    assert ours["q"].shape == (len(table), 4)
    # Both interfaces of numpy give a view of the same memory.
    assert address(table.numpy()["q"]) == address(ours["q"])


def test_memory_outlives_its_log(real: pathlib.Path) -> None:
    with rl.open(real) as log:
        topic = log["vehicle_attitude"]
        columns = topic.numpy()
        want = columns["q"].copy()
    del log
    assert np.array_equal(columns["q"], want, equal_nan=True)
    assert np.array_equal(topic.numpy()["q"], want, equal_nan=True)


@pytest.mark.parametrize("path", real_ulogs())
def test_all_libraries_get_the_same_columns(path: pathlib.Path) -> None:
    log = rl.open(path)
    for topic in log.topics.values():
        if topic.count == 0 or not topic.fields:
            continue
        table = topic.to_arrow()
        assert table.num_rows == topic.count
        streamed = pa.RecordBatchReader.from_stream(topic).read_all()
        assert streamed.combine_chunks().equals(table) or str(streamed) == str(table)
        batches = pa.concat_tables([pa.table(batch) for batch in topic.batches()])
        assert batches.num_rows == topic.count
        arrays = topic.numpy()
        for name in ("t_ns", *(field.name for field in topic.fields if field.type.startswith(("int", "uint", "float")))):
            column = table[name].combine_chunks()
            flat = column.flatten() if hasattr(column, "flatten") and pa.types.is_fixed_size_list(column.type) else column
            values = flat.to_numpy(zero_copy_only=False).reshape(np.asarray(arrays[name]).shape)
            if column.null_count == 0:
                assert np.array_equal(values, arrays[name], equal_nan=values.dtype.kind == "f"), (topic.name, name)
        frame = topic.to_pandas()
        assert len(frame) == topic.count


def test_each_access_starts_a_new_stream(real_log: rl.Log) -> None:
    topic = real_log["vehicle_local_position"]
    table = topic.table()
    for source in (topic, table):
        # DuckDB reads a variable twice per query: first the schema, then the data.
        for _ in range(2):
            rows, mean = duckdb.sql("SELECT count(*), avg(vx) FROM source").fetchall()[0]
            assert rows == topic.count
            assert mean == pytest.approx(float(np.mean(topic.numpy()["vx"], dtype=np.float64)))
        assert pl.DataFrame(source).equals(pl.DataFrame(source))


def test_types_are_preserved(real_log: rl.Log) -> None:
    frame = real_log["vehicle_attitude"].to_polars()
    assert frame.schema["t_ns"] == pl.Int64
    assert frame.schema["time"] == pl.Datetime("ns", "UTC")
    assert frame.schema["q"] == pl.Array(pl.Float32, 4)
    assert str(frame["time"][0]) == str(real_log.utc(frame["t_ns"][0]))


def test_a_requested_schema_is_used_if_it_is_lossless(real_log: rl.Log) -> None:
    topic = real_log["vehicle_local_position"].select("vx")
    ours = pa.schema(topic)
    wide = pa.schema([ours.field(0), ours.field(1), pa.field("vx", pa.float64(), nullable=False)])
    assert pa.RecordBatchReader.from_stream(topic, schema=wide).read_all().schema.field(2).type == pa.float64()
    narrow = pa.schema([pa.field("t_ns", pa.int8()), ours.field(1), ours.field(2)])
    capsule = topic.__arrow_c_stream__(narrow.__arrow_c_schema__())

    class Source:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return capsule

    assert pa.RecordBatchReader.from_stream(Source()).schema.field(0).type == pa.int64()


def test_parts_of_fields(real_log: rl.Log) -> None:
    topic = real_log["vehicle_attitude"]
    part = topic.select("q[3]", "q[0]", "quat_reset_counter")
    frame = part.to_polars()
    assert frame.columns == ["t_ns", "time", "q[3]", "q[0]", "quat_reset_counter"]
    whole = topic.numpy()
    assert np.array_equal(frame["q[3]"].to_numpy(), whole["q"][:, 3])
    assert list(topic.numpy(fields=["q"])) == list(topic.table().numpy(fields=["q"])) == ["t_ns", "time", "q"]
    for columns in (topic, topic.table()):
        with pytest.raises(rl.FieldNotFound):
            columns.numpy(fields=["nothing"])
    with pytest.raises(rl.FieldNotFound) as caught:
        topic.select("quat_reset")
    assert "quat_reset_counter" in caught.value.suggestions
    for name in ("q[9]", "q[x]", "q["):
        with pytest.raises(rl.FieldNotFound, match=f"has no field {re.escape(name)}") as missing:
            topic.select(name)
        assert missing.value.path == str(real_log.path) and missing.value.suggestions == ["q"]


def test_windows(real_log: rl.Log) -> None:
    topic = real_log["vehicle_attitude"]
    times = topic.numpy()["t_ns"]
    start, end = int(times[10]), int(times[20])
    assert topic.between(start, end).to_polars()["t_ns"].to_list() == times[10:20].tolist()
    assert real_log.start is not None and real_log.start_ns is not None
    utc = real_log.utc(start)
    assert utc is not None
    assert len(topic.between(utc, None).table()) == int((times >= start).sum())
    late = topic.between("+10s").table().numpy()["t_ns"]
    assert np.array_equal(late, times[times >= real_log.start_ns + 10 * 10**9])
    assert len(topic.between(0, 0).table()) == 0
    with pytest.raises(ValueError, match="is not a valid time"):
        topic.between("tomorrow")


def test_pandas_is_flat(real_log: rl.Log) -> None:
    frame = real_log["vehicle_attitude"].to_pandas(index="time")
    assert {"q[0]", "q[3]", "quat_reset_counter"} <= set(frame.columns)
    assert isinstance(frame.index, pd.DatetimeIndex)
    assert str(frame.index.tz) == "UTC"


def test_many_threads_read_one_log(real_log: rl.Log) -> None:
    topics = [topic for topic in real_log.topics.values() if topic.count]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda topic: len(topic.table()), topics * 3))
    assert rows == [topic.count for topic in topics] * 3


def test_nulls_are_not_zeros(flight: pathlib.Path) -> None:
    corpus = flight.parent
    columns = rl.open(corpus / "timestamp-out-of-range.ulg")["t"].numpy()
    assert isinstance(columns["t_ns"], np.ma.MaskedArray)
    assert columns["t_ns"].mask.any()


def test_arrays_of_texts_and_of_structs_have_their_shape(tmp_path: pathlib.Path) -> None:
    def text(value: bytes) -> bytes:
        return struct.pack("<I", len(value)) + value

    definition = "string[2] names\nP[2] ps\n" + "=" * 80 + "\nMSG: p/P\nstring n\nuint8[] v\n"
    payloads = [
        text(b"a") + text(b"bb") + text(b"n0") + text(b"\1\2") + text(b"n1") + text(b""),
        text(b"c") + text(b"dd") + text(b"n2") + text(b"\3") + text(b"n3") + text(b"\4\5"),
    ]
    topic = rl.open(crafted.bag(tmp_path / "a.bag", "p/M", definition, payloads))["/t"]
    names, inner = topic["names"], topic.numpy()
    assert names.tolist() == [["a", "bb"], ["c", "dd"]] and len(topic) == len(names)
    assert inner["ps.n"].tolist() == [["n0", "n1"], ["n2", "n3"]] and inner["ps.v"].shape == (2, 2)
    frame = topic.to_pandas()
    assert frame["names[1]"].tolist() == ["bb", "dd"] and frame["ps[0].n"].tolist() == ["n0", "n2"]


def test_integers_with_nulls_stay_integers_in_pandas(tmp_path: pathlib.Path) -> None:
    log = rl.open(CORPUS / "ulog/timestamp-u16-out-of-range.ulg")
    topic = next(topic for topic in log.topics.values() if topic.to_arrow()["t_ns"].null_count)
    times = topic.to_arrow()["t_ns"].to_pylist()
    found = topic.to_pandas()["t_ns"]
    assert found.dtype == "Int64" and [None if pd.isna(at) else int(at) for at in found] == times
