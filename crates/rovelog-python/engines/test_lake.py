"""A lake is read by each engine, and as Delta tables."""

import glob
import json
import os
import pathlib
import signal
import subprocess
import sys

import crafted
import duckdb
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from conftest import ENGINE, ROOT
from crafted import flights
from deltalake import DeltaTable
from rovelog import _core, _engines
from rovelog import lake as lakes


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    sources = [str(ROOT / "corpus" / name) for name in ("ulog", "rld", "vel", "rosbag")]
    done = ingest(sources, folder)
    assert done.returncode == 3, done.stderr
    return folder


def ingest(sources, lake, *options):
    command = [sys.executable, "-m", "rovelog", "ingest", *sources, "-o", str(lake), "--pack-size", "2MB", *options]
    return subprocess.run(command, capture_output=True, text=True)


def tables(lake):
    """Returns the tables with their number of rows, from the footers of their files."""
    found = {}
    for path in glob.glob(f"{lake}/**/*.parquet", recursive=True):
        table = path.split("/month=")[0] if "/month=" in path else os.path.dirname(path)
        if "_delta_log" not in path:
            found[table] = found.get(table, 0) + pq.read_metadata(path).num_rows
    return found


def test_every_reader_finds_the_same_rows(spark, lake):
    found = tables(lake)
    assert len(found) > 50
    for number, (table, rows) in enumerate(sorted(found.items())):
        files = f"{table}/**/*.parquet"
        query = f"SELECT count(*), count(DISTINCT t_ns) FROM read_parquet('{files}', union_by_name=true)"
        if table.endswith("_logs"):
            query = f"SELECT count(*) FROM read_parquet('{files}')"
        assert duckdb.sql(query).fetchall()[0][0] == rows, table
        lazy = pl.scan_parquet(files, missing_columns="insert", extra_columns="ignore")
        assert lazy.select(pl.len()).collect().item() == rows, table
        assert ds.dataset(table, partitioning="hive").count_rows() == rows, table
        # Spark needs about a second per table.
        if number % 10 == 0 or table.endswith(("_logs", "_text")):
            assert spark.read.option("mergeSchema", "true").parquet(table).count() == rows, table


def test_delta_tables_have_the_same_rows(lake):
    changed = lakes.delta(lake)
    assert "_logs" in changed.versions and list(changed.versions)[-1] == "_logs"
    # One topic of the corpus is nested deeper than Delta can describe.
    assert all("nested" in why for why in changed.refused.values()) and len(changed.refused) < 3
    integers_and_floats = set()
    for table, rows in tables(lake).items():
        name = str(pathlib.Path(table).relative_to(lake))
        if name in changed.refused:
            continue
        try:
            found = pl.scan_delta(table).collect()
        except pl.exceptions.SchemaError:
            integers_and_floats.add(name)
            found = pl.scan_delta(table, use_pyarrow=True).collect()
        assert len(found) == rows, name
    assert "ulog/t" in integers_and_floats and len(integers_and_floats) < 5
    assert lakes.delta(lake).versions == {}, "a second call changes nothing"
    check = subprocess.run([sys.executable, "-m", "rovelog", "lake", "check", str(lake)], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize(
    ("old", "new", "plain"),
    [(("int16_t", "h"), ("int32_t", "i"), True), (("float", "f"), ("double", "d"), True), (("int16_t", "h"), ("float", "f"), False)],
)
def test_delta_tables_after_the_type_of_a_field_changed(old, new, plain, tmp_path):
    lake = tmp_path / "lake"
    for number, (kind, code) in enumerate((old, new)):
        log = crafted.ulog(tmp_path / f"{number}.ulg", crafted.topic(1, "t", f"{kind} x;", crafted.rows(code, (number,), (number,))))
        assert ingest([str(log)], lake).returncode == 0
        lakes.delta(lake)
    table = str(lake / "ulog/t")
    assert sorted(pl.scan_delta(table, use_pyarrow=not plain).collect()["x"]) == [0, 0, 1, 1]
    if not plain:
        with pytest.raises(pl.exceptions.SchemaError):
            pl.scan_delta(table).collect()


def test_a_table_with_booleans_and_numbers_is_no_delta_table(tmp_path):
    lake = tmp_path / "lake"
    for number, (kind, code) in enumerate((("bool", "?"), ("int8_t", "b"))):
        other = crafted.topic(2, "other", "float y;", crafted.rows("f", (1.0,)))
        log = crafted.ulog(tmp_path / f"{number}.ulg", crafted.topic(1, "t", f"{kind} x;", crafted.rows(code, (number,))), other)
        assert ingest([str(log)], lake).returncode == 0
        changed = lakes.delta(lake)
    assert changed.refused.keys() == {"ulog/t"} and "x" in changed.refused["ulog/t"]
    assert changed.versions.keys() == {"ulog/other", "_logs"}
    assert len(pl.scan_delta(str(lake / "ulog/other")).collect()) == 2


def test_delta_after_a_kill_has_each_file_once(lake, tmp_path):
    """Kills `delta` after each number of tables. The next call completes its work."""
    folder = tmp_path / "lake"
    half = sorted((ROOT / "corpus/ulog").glob("*.ulg"))
    ingest([str(path) for path in half[:60]], folder)
    script = (
        "import os, signal, sys, rovelog.lake as lake\n"
        "left = [int(sys.argv[2])]\n"
        "update = lake._update\n"
        "def counted(*args):\n"
        "    if left[0] == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    left[0] -= 1\n"
        "    return update(*args)\n"
        "lake._update = counted\n"
        "lake.delta(sys.argv[1])\n"
    )
    for count in (0, 1, 3):
        run = subprocess.run([sys.executable, "-c", script, str(folder), str(count)])
        assert run.returncode == -signal.SIGKILL
        # `_logs` is updated last, so no new log is visible yet.
        assert not DeltaTable.is_deltatable(str(folder / "_logs"))
    both = [subprocess.Popen([sys.executable, "-m", "rovelog.lake", str(folder)]) for _ in range(2)]
    assert {run.wait() for run in both} <= {0, 3}, "two at once; 3: a table that Delta cannot have"
    ingest([str(path) for path in half], folder)
    refused = {str(folder / name) for name in lakes.delta(folder).refused}
    for table, rows in tables(folder).items():
        if table in refused:
            continue
        paths = lakes._paths(DeltaTable(table))
        assert len(paths) == len(set(paths)) == len(glob.glob(f"{table}/**/*.parquet", recursive=True)), table
        assert pl.scan_delta(table).select(pl.len()).collect().item() == rows, table


@pytest.mark.skipif(ENGINE == "spark", reason="Spark reads Delta with a jar of its own")
def test_sail_reads_delta(spark, lake):
    lakes.delta(lake)
    for table, rows in tables(lake).items():
        if table.endswith(("_logs", "_text", "battery_status")):
            assert spark.read.format("delta").load(table).count() == rows, table


def test_a_vehicle_is_found(lake):
    rows = duckdb.sql(f"SELECT status, count(*) FROM '{lake}/_logs/*.parquet' GROUP BY ALL").fetchall()
    assert dict(rows).keys() == {"ok", "partial", "failed"}
    parameters = duckdb.sql(f"SELECT parameters FROM '{lake}/_logs/*.parquet' WHERE parameters <> '{{}}' LIMIT 1")
    assert json.loads(parameters.fetchall()[0][0])


SOURCES = [str(ROOT / "corpus" / name) for name in ("ulog", "rld", "vel", "rosbag")]


def names(lake):
    """Returns the names of the Parquet files, which are hashes of their content."""
    found = (path.relative_to(lake) for path in pathlib.Path(lake).rglob("*.parquet"))
    return {path.as_posix() for path in found if "_delta_log" not in path.parts}


def test_workers_of_an_engine_make_the_same_lake(spark, lake, tmp_path):
    rows = []
    done = lakes.ingest(SOURCES, tmp_path / "lake", spark, pack_bytes=2_000_000, tell=rows.append)
    assert names(tmp_path / "lake") == names(lake)
    assert len(rows) == done.ok + done.partial + done.failed and done.ok > 100
    again = lakes.ingest(SOURCES, tmp_path / "lake", spark, pack_bytes=2_000_000)
    assert again.files == 0 and again.known >= done.ok
    assert tables(tmp_path / "lake").values()


@pytest.mark.skipif(ENGINE == "sail", reason="Sail's workers are threads of this process")
def test_executors_that_are_killed_while_they_write_change_nothing(spark, lake, tmp_path, monkeypatch):
    """Kills a worker in three tasks, after the files of a pack are complete and before the driver
    knows them.
    """
    marks = tmp_path / "killed"
    marks.mkdir()

    def deadly(batches):
        import pyarrow as pa

        for batch in batches:
            for task in batch.column(0).to_pylist():
                answer = _core.lake_answer(task)
                if len(os.listdir(marks)) < 3:
                    (marks / str(os.getpid())).touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                yield pa.RecordBatch.from_pydict({"answer": [answer]})

    monkeypatch.setattr(_engines, "answers", deadly)
    lakes.ingest(SOURCES, tmp_path / "lake", spark, pack_bytes=2_000_000)
    assert len(list(marks.iterdir())) == 3, "three processes were killed"
    assert names(tmp_path / "lake") == names(lake)
    clean = [sys.executable, "-m", "rovelog", "lake", "clean", str(tmp_path / "lake")]
    assert subprocess.run(clean, capture_output=True).returncode == 0
    check = [sys.executable, "-m", "rovelog", "lake", "check", str(tmp_path / "lake")]
    assert subprocess.run(check, capture_output=True).returncode == 0


def test_the_guides_query_in_spark_sql(spark, tmp_path, monkeypatch):
    """Spark SQL gives the same result as the DuckDB query before it in the guide."""
    guide = (ROOT / "docs/guide/lake.md").read_text()
    flights(tmp_path / "flights")
    monkeypatch.chdir(tmp_path)
    done = ingest(["flights"], tmp_path / "lake")
    assert done.returncode == 0, done.stderr

    def snippet(engine):
        return guide.split(f"<!-- run: {engine} -->\n```")[1].split("\n", 1)[1].split("```")[0]

    found = {"spark": spark}
    exec(snippet("spark").replace('"lake/', f'"{tmp_path}/lake/'), found)
    rows = [tuple(row) for row in found["sag"].select("id", "lowest", "sag").collect()]
    expected = duckdb.sql(f"SELECT id, lowest, sag FROM ({snippet('duckdb').strip()})").fetchall()
    assert rows == expected
    assert [(round(lowest, 4), round(sag, 4)) for _, lowest, sag in rows] == [(13.5, 2.5), (15.0, 1.0)]
