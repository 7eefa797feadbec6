"""Compares tables that `rovelog export` writes with pyulog, value by value.

usage: export_tables.py ROVELOG REAL

CSV in pyulog's dialect must have the bytes that ulog2csv writes. Parquet and Arrow files are read with pyarrow, polars
and duckdb.
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow
import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet
from pyulog.ulog2csv import convert_ulog2csv

import pyulog_columns
from pyulog_columns import FEWER

# Arrow type of each type of pyulog.
ARROW = {
    "int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16", "uint16_t": "uint16", "int32_t": "int32",
    "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "float": "float", "double": "double", "bool": "bool",
}


def export(binary, log, folder, *options):
    """Exports a log. The exit code 3 means that some data is missing. This is a failure only if the
    output cannot represent a value, and not if the log is damaged.
    """
    done = subprocess.run([binary, "export", "-q", log, "-o", folder, *options], capture_output=True, check=False, timeout=600)
    said = done.stderr.decode()
    assert done.returncode in (0, 3), f"{log}: exit {done.returncode}: {said}"
    assert "carried" not in said and "field" not in said, f"{log}: {said}"


def is_part(part, whole):
    lines = iter(whole)
    return all(line in lines for line in part)


def compare_csv(binary, log):
    """Compares file names and bytes. Returns the number of compared lines."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        export(binary, log, ours, "--to", "csv", "--dialect", "pyulog")
        with contextlib.redirect_stdout(io.StringIO()):
            convert_ulog2csv(str(log), None, theirs, ",", None, None)
        names = sorted(os.listdir(theirs))
        if log.name not in FEWER:
            assert names == sorted(os.listdir(ours)), f"{log.name}: other files: {set(names) ^ set(os.listdir(ours))}"
        lines = 0
        for name in names:
            want, got = (Path(folder, name).read_bytes() for folder in (theirs, ours))
            lines += want.count(b"\n")
            if want == got:
                continue
            want, got = want.splitlines(), got.splitlines()
            if log.name in FEWER and is_part(want, got):
                continue
            at = next((i for i, pair in enumerate(zip(want, got)) if pair[0] != pair[1]), min(len(want), len(got)))
            shown = f"{str(want[at:at + 1])[:300]} but {str(got[at:at + 1])[:300]}"
            raise AssertionError(f"{name} line {at + 1}: {shown} ({len(want)}, {len(got)} lines)")
        return lines


def same(name, want, got):
    """Returns True if columns are equal bit for bit. Two NaN values are equal if they have the same
    bits.
    """
    want, got = np.ascontiguousarray(want), np.ascontiguousarray(got)
    assert want.shape == got.shape, f"{name}: {want.shape} but {got.shape}"
    assert want.dtype == got.dtype, f"{name}: {want.dtype} but {got.dtype}"
    assert want.tobytes() == got.tobytes(), f"{name}: values differ"


def numpy_of(column):
    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    assert column.null_count == 0
    return column.to_numpy(zero_copy_only=False)


def leaves(name, column):
    """Returns flat names and columns, as pyulog has them."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if pyarrow.types.is_struct(column.type):
        for i, field in enumerate(column.type):
            yield from leaves(f"{name}.{field.name}", column.field(i))
    elif pyarrow.types.is_fixed_size_list(column.type):
        values, size = column.flatten(), column.type.list_size
        for i in range(size):
            yield from leaves(f"{name}[{i}]", values.take(pyarrow.array(range(i, len(values), size), pyarrow.int64())))
    else:
        yield name, column


def series(log):
    """Returns pyulog's topics by rovelog's file names."""
    return {f"{log.stem}_{data.name.replace('/', '_')}_{data.multi_id}": data for data in pyulog_columns.read(log).data_list}


def compare_table(log, name, table, data):
    """Compares one topic, read by pyarrow, with pyulog's columns. Returns the number of values."""
    names = table.column_names
    assert names[:2] == ["t_ns", "time"], names
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert metadata["rovelog.format"] == "ulog" and metadata["rovelog.source_name"] == log.name
    assert metadata["rovelog.topic"] == data.name and metadata["rovelog.instance"] == str(data.multi_id)
    assert len(metadata["rovelog.source_sha256"]) == 64
    flat = dict(leaf for column in names[2:] for leaf in leaves(column, table[column]))
    timestamp = numpy_of(flat["timestamp"])
    t_ns = numpy_of(table["t_ns"])
    same(f"{name} t_ns", timestamp.astype(np.int64) * 1000, t_ns)
    zone = table.schema.field("time").type.tz
    assert (zone == "UTC") == (metadata["rovelog.time_base"] == "utc"), zone
    offset = int(metadata.get("rovelog.utc_offset_ns", "0")) if zone == "UTC" else 0
    unit = 1000 if table.schema.field("time").type.unit == "us" else 1
    time = table["time"].cast(pyarrow.int64())
    same(f"{name} time", (t_ns + offset) // unit, numpy_of(time))
    fields = {field.field_name: field.type_str for field in pyulog_columns.shown(data)}
    # An array of characters is a text.
    chars = {name.split("[")[0] for name, kind in fields.items() if kind == "char"}
    fields = {(name.split("[")[0] if kind == "char" else name): kind for name, kind in fields.items()}
    assert list(flat) == list(fields), f"{name}: other fields: {set(flat) ^ set(fields)}"
    order = pyulog_columns.ordered(data.data["timestamp"])
    places = pyulog_columns.rows_of(data.data["timestamp"][order], timestamp)
    for field, kind in fields.items():
        if field in chars:
            assert flat[field].type == pyarrow.string(), f"{name}.{field}"
            texts = pyulog_columns.texts_of(data, field)
            want = [texts[i] for i in order]
            assert [flat[field][int(place)].as_py() for place in places] == want, f"{name}.{field}"
            continue
        assert str(flat[field].type) == ARROW[kind], f"{name}.{field}: {flat[field].type}"
        want = data.data[field][order]
        want = want.astype(bool) if kind == "bool" else want
        same(f"{name}.{field}", want, numpy_of(flat[field])[places])
    return len(fields) * len(timestamp)


def compare_tables(binary, log):
    values = 0
    topics = series(log)
    with tempfile.TemporaryDirectory() as folder:
        export(binary, log, f"{folder}/p", "--to", "parquet")
        export(binary, log, f"{folder}/a", "--to", "arrow")
        export(binary, log, f"{folder}/f", "--to", "parquet", "--flatten", "--profile", "spark", "--time-unit", "ns")
        found = sorted(path.stem for path in Path(folder, "p").iterdir())
        assert log.name in FEWER or found == sorted(topics), f"{log.name}: {set(found) ^ set(topics)}"
        for name, data in topics.items():
            parquet, arrow, flat = f"{folder}/p/{name}.parquet", f"{folder}/a/{name}.arrow", f"{folder}/f/{name}.parquet"
            table = pyarrow.parquet.read_table(parquet)
            values += compare_table(log, name, table, data)
            values += compare_table(log, name, pyarrow.ipc.open_file(arrow).read_all(), data)
            check_sorted(name, parquet, table)
            # polars and duckdb share no code with pyarrow. They must read the same values.
            frame = polars.read_parquet(parquet)
            assert frame.to_arrow().cast(table.schema.remove_metadata()).equals(table.replace_schema_metadata(None)) or nan_equal(frame, table), name
            frame = polars.read_ipc(arrow)
            assert frame["t_ns"].equals(polars.from_arrow(table["t_ns"])), name
            compare_duckdb(name, parquet, table)
            spark = pyarrow.parquet.read_schema(flat)
            assert not any(pyarrow.types.is_nested(field.type) or field.type == pyarrow.uint64() for field in spark), name
            assert spark.field("time").type.unit == "ns", name
    return values


def check_sorted(name, path, table):
    """Checks that the declared sort order is true, and that the file has statistics."""
    group = pyarrow.parquet.ParquetFile(path).metadata.row_group(0)
    times = numpy_of(table["t_ns"])
    ascending = bool(np.all(times[1:] >= times[:-1]))
    assert (len(group.sorting_columns) == 1) <= ascending, f"{name}: claims an order that it does not have"
    assert group.column(0).statistics.min == times[: group.num_rows].min(), name


def nan_equal(frame, table):
    """Compares tables column by column as bits, because tables with NaN are never equal."""
    again = frame.to_arrow()
    for column in table.column_names:
        for (name, want), (_, got) in zip(leaves(column, table[column]), leaves(column, again[column])):
            if pyarrow.types.is_string(want.type):
                assert want.to_pylist() == got.to_pylist(), name
                continue
            want, got = numpy_of(want), numpy_of(got)
            same(name, want, got.astype(want.dtype))
    return True


def compare_duckdb(name, path, table):
    result = duckdb.sql(f"select * from read_parquet('{path}')")
    assert result.columns == table.column_names, name
    rows = duckdb.sql(f"select count(*), min(t_ns), max(t_ns), sum(timestamp::hugeint) from read_parquet('{path}')").fetchall()[0]
    times, timestamps = table["t_ns"], table["timestamp"]
    want = (table.num_rows, pyarrow.compute.min(times).as_py(), pyarrow.compute.max(times).as_py(), sum(timestamps.to_pylist()))
    assert rows == want, f"{name}: {rows} but {want}"
    for column in table.column_names:
        kind = table.schema.field(column).type
        if pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind):
            got = duckdb.sql(f'select "{column}" from read_parquet(\'{path}\')').fetchnumpy()[column]
            assert not np.ma.is_masked(got), f"{name}.{column}"
            same(f"{name}.{column} in duckdb", numpy_of(table[column]), np.asarray(got))


def main():
    binary, real = sys.argv[1], Path(sys.argv[2])
    failures = 0
    logs = sorted((real / "ulog").glob("*.ulg"))
    assert logs, f"{real} has no ULog"
    for log in logs:
        try:
            lines, values = compare_csv(binary, log), compare_tables(binary, log)
            print(f"{log.name}: {lines} lines of CSV, {values} values in Parquet and Arrow")
        except AssertionError as error:
            print(f"{log.name}: {error}")
            failures += 1
    sys.exit(1 if failures else 0)


main()
