"""Lakes and splits of many logs. `cargo xtask lake` tests the engines."""

from __future__ import annotations

import json
import pathlib
import re
import struct
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from conftest import CORPUS, ROOT, command
from crafted import VEHICLE, flight, flights, rows, topic, ulog

import rovelog as rl
from rovelog import _core


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with `flights/` of two vehicles, and the lake that contains them."""
    flights(tmp_path / "flights")
    monkeypatch.chdir(tmp_path)
    done = command("ingest", "flights", "-o", "lake")
    assert done.returncode == 0, done.stderr
    return tmp_path


def snippets(kind: str) -> list[str]:
    text = (ROOT / "docs/guide/lake.md").read_text(encoding="utf-8")
    found = re.findall(rf"<!-- run: {kind} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found
    return found


def test_the_guide_finds_the_sag_of_a_vehicle(place: pathlib.Path) -> None:
    for query in snippets("duckdb"):
        found = duckdb.sql(query).pl().rows()
        assert [(round(lowest, 4), round(sag, 4)) for _, _, lowest, sag in found] == [(13.5, 2.5), (15.0, 1.0)]
    for snippet in snippets("polars"):
        names: dict[str, Any] = {}
        exec(compile(snippet, "docs/guide/lake.md", "exec"), names)
        assert names["sag"]["sag"].round(4).to_list() == [2.5, 1.0]


def test_rows_of_the_lake_are_those_of_the_logs(place: pathlib.Path) -> None:
    query = "SELECT l.uri, b.seq, b.t_ns, b.voltage_v FROM 'lake/ulog/battery_status/**/*.parquet' b"
    rows_of = duckdb.sql(f"{query} JOIN 'lake/_logs/*.parquet' l ON l.id = b.log ORDER BY 1, 2").fetchall()
    expected = []
    for path in sorted(pathlib.Path("flights").iterdir()):
        with rl.open(path) as log:
            table = pa.table(log["battery_status"])
        for seq, row in enumerate(table.to_pylist()):
            expected.append((str(path), seq, row["t_ns"], row["voltage_v"]))
    assert rows_of == expected
    months = {path.parent.name for path in pathlib.Path("lake/ulog").rglob("*.parquet")}
    assert months == {"month=2025-05", "month=2026-05"}


def test_a_second_run_changes_nothing(place: pathlib.Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in pathlib.Path("lake").rglob("*.parquet")}
    done = command("ingest", "flights", "-o", "lake")
    assert done.returncode == 0 and "nothing to do: 4 already in the lake" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in pathlib.Path("lake").rglob("*.parquet")} == before


def test_a_wider_type_stays_in_the_table(place: pathlib.Path) -> None:
    doubles = rows("d", (16.0,), (15.0,))
    ulog(pathlib.Path("flights/new.ulg"), topic(1, "battery_status", "double voltage_v;", doubles))
    assert command("ingest", "flights", "-o", "lake").returncode == 0
    assert not pathlib.Path("lake/ulog/battery_status__2").exists()
    files = "lake/ulog/battery_status/**/*.parquet"
    found = duckdb.sql(f"SELECT voltage_v FROM read_parquet('{files}', union_by_name = true)")
    assert found.types == ["DOUBLE"]
    assert {(16.0,), (15.0,)} < set(found.fetchall())


TEXT = "ulog/battery_status__text"


def texts_of_a_battery(path: pathlib.Path) -> None:
    """Writes a log in which the voltage is a text."""
    ulog(path, topic(1, "battery_status", "char[4] voltage_v;", [struct.pack("<Q4s", 1000, b"full")]))


def tables_of(lake: str) -> dict[str, set[Any]]:
    """Checks the lake and returns the voltages in each table."""
    assert command("lake", "check", lake, "--content").returncode == 0
    tables = sorted(path.name for path in pathlib.Path(lake, "ulog").iterdir() if any(path.rglob("*.parquet")))
    of = {table: f"{lake}/ulog/{table}/**/*.parquet" for table in tables if table.startswith("battery_status")}
    return {
        table: set(duckdb.sql(f"SELECT voltage_v FROM read_parquet('{files}', union_by_name = true)").fetchall())
        for table, files in of.items()
    }


@pytest.mark.parametrize("order", [("flights", "texts"), ("texts", "flights"), ("flights texts",)])
def test_numbers_have_the_plain_name_in_any_order(place: pathlib.Path, order: tuple[str, ...]) -> None:
    pathlib.Path("texts").mkdir()
    texts_of_a_battery(pathlib.Path("texts/new.ulg"))
    said = ""
    for sources in order:
        done = command("ingest", *sources.split(), "-o", "split")
        assert done.returncode == 0, done.stderr
        said += done.stderr
    found = tables_of("split")
    assert found == {"battery_status": tables_of("lake")["battery_status"], "battery_status__text": {("full",)}}
    line = f"column voltage_v of topic battery_status has another type (text) in 1 log, so these rows are in the table {TEXT} instead of ulog/battery_status; read both tables"
    assert said.count(line) == 1
    tables = dict(duckdb.sql("SELECT uri, tables FROM 'split/_logs/*.parquet'").fetchall())
    assert json.loads(tables.pop("texts/new.ulg")) == {"battery_status": TEXT} and set(tables.values()) == {"{}"}
    # A second run changes nothing and prints nothing.
    again = command("ingest", "flights", "texts", "-o", "split")
    assert "nothing to do" in again.stderr and "another kind" not in again.stderr


def test_the_guide_reads_all_parts_of_a_topic(place: pathlib.Path) -> None:
    """Covers a log in which the voltage is a text, and a topic whose name is a prefix of another
    one.
    """
    flight(pathlib.Path("flights/text.ulg"), VEHICLE, 14.0, as_text=True)
    other = topic(1, "battery_status_old", "float voltage_v;", rows("f", (99.0,)))
    ulog(pathlib.Path("flights/old.ulg"), other)
    assert command("ingest", "flights", "-o", "lake").returncode == 0
    expected = [(13.5, 2.5), (14.0, 2.0), (15.0, 1.0)]
    for query in snippets("duckdb"):
        found = duckdb.sql(query).pl().rows()
        assert [(round(lowest, 4), round(sag, 4)) for _, _, lowest, sag in found] == expected
    for snippet in snippets("polars"):
        names: dict[str, Any] = {}
        exec(compile(snippet, "docs/guide/lake.md", "exec"), names)
        assert names["sag"]["sag"].round(4).to_list() == [sag for _, sag in expected]


def test_the_columns_of_all_logs_are_read() -> None:
    wanted = json.dumps({"topics": ["t"]})
    logs = _core.scale_find([str(CORPUS / "ulog")])
    assert len(logs) > 100
    good = [log for log in logs if pathlib.Path(log[0]).name.startswith("one-topic")]
    schema = pa.schema(_core.scale_schema(good, wanted))  # type: ignore[arg-type]
    counts = []
    for target in (1, 1 << 20):
        splits = _core.scale_divide(good, wanted, target)
        tables = [pa.table(_core.scale_read(split, schema)) for split in splits]
        counts.append(pa.concat_tables(tables).num_rows)
        assert all(table.schema == schema for table in tables)
    assert counts[0] == counts[1] > 0


def test_a_split_is_read_once_and_only_as_it_was_made() -> None:
    logs = _core.scale_find([str(CORPUS / "ulog/one-topic.ulg")])
    schema = pa.schema(_core.scale_schema(logs, "{}"))  # type: ignore[arg-type]
    (split,) = _core.scale_divide(logs, "{}", 1 << 20)
    read = _core.scale_read(split, schema)
    assert pa.table(read).num_rows > 0
    with pytest.raises(rl.RovelogError, match="were already read"):
        pa.table(read)
    with pytest.raises(rl.RovelogError, match="not a valid split"):
        _core.scale_read("{}", schema)
    with pytest.raises(rl.RovelogError, match="no such file"):
        _core.scale_find(["nowhere.ulg"])


def test_an_integer_above_63_bits_is_a_partial_log(tmp_path: pathlib.Path) -> None:
    big = [struct.pack("<QQ", 1000, (1 << 64) - 1), struct.pack("<QQ", 2000, 7)]
    ulog(tmp_path / "a.ulg", topic(1, "counter", "uint64_t n;", big))
    done = command("ingest", tmp_path / "a.ulg", "-o", tmp_path / "lake")
    assert done.returncode == 3
    logs = duckdb.sql(f"SELECT status, lost_values FROM '{tmp_path}/lake/_logs/*.parquet'").fetchall()
    assert logs == [("partial", 1)]


def test_a_lake_made_by_an_engine_ends_at_ctrl_c(tmp_path: pathlib.Path) -> None:
    for number in range(20):
        ulog(tmp_path / f"{number}.ulg", topic(1, "counter", "uint64_t n;", rows("Q", (number,))))

    def run(call: Any, tell: Any) -> list[Any]:
        lake = tmp_path / "lake"
        with pytest.raises(KeyboardInterrupt):
            _core.lake_ingest([str(tmp_path)], str(lake), call, (1, 1, False), tell)
        return duckdb.sql(f"SELECT status FROM '{lake}/_logs/*.parquet'").fetchall() if any(lake.glob("_logs/*")) else []

    def stop(_: object) -> str:
        calls.append(1)
        raise KeyboardInterrupt

    calls: list[int] = []
    assert run(stop, lambda row: None) == [] and len(calls) == 1
    calls.clear()
    assert set(run(_core.lake_answer, stop)) == {("ok",)} and len(calls) == 1
