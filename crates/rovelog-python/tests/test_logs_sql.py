"""SQL queries over many logs return the rows of each log, with the path in the column `log`."""

from __future__ import annotations

import pathlib

import crafted
import duckdb
import pytest

import rovelog as rl


def test_the_tables_have_the_rows_of_all_logs(real: pathlib.Path) -> None:
    logs = rl.logs(real, real.parent / "sample.ulg")
    query = """
        SELECT a.log, a.t_ns, b.t_ns FROM vehicle_attitude a ASOF JOIN sensor_combined b
        ON a.log = b.log AND a.t_ns >= b.t_ns WHERE a.t_ns > ? ORDER BY ALL
    """
    expected = []
    for path, log in zip(logs.paths, logs):
        expected += [(path, *row) for row in log.sql(query.replace("a.log = b.log AND", "").replace("a.log,", ""), [10**10]).fetchall()]
    assert logs.sql(query, [10**10]).fetchall() == sorted(expected)
    assert len({row[0] for row in expected}) == 2


def test_different_columns_of_logs_are_widened(tmp_path: pathlib.Path) -> None:
    short = crafted.topic(1, "t", "int16_t x;float[2] v;", crafted.rows("h2f", (1, 1.0, 2.0), (2, 3.0, 4.0)))
    wide = crafted.topic(1, "T", "int32_t x;float[3] v;int8_t log;", crafted.rows("i3fb", (100_000, 1.0, 2.0, 3.0, 7)))
    a, b = (str(crafted.ulog(tmp_path / name, topic)) for name, topic in (("a.ulg", short), ("b.ulg", wide)))
    (tmp_path / "c.ulg").write_bytes(b"no log")
    logs = rl.logs(tmp_path)
    with pytest.warns(rl.UnreadLogWarning, match=r"c\.ulg") as caught:
        rows = logs.sql("SELECT log, x, v, log_ FROM t ORDER BY ALL")
    assert [warning.filename for warning in caught] == [__file__] and list(logs.failed) == [str(tmp_path / "c.ulg")]
    assert list(map(str, rows.types)) == ["VARCHAR", "INTEGER", "FLOAT[]", "TINYINT"]
    assert rows.fetchall() == [(a, 1, [1.0, 2.0], None), (a, 2, [3.0, 4.0], None), (b, 100_000, [1.0, 2.0, 3.0], 7)]
    text = crafted.topic(1, "t", "char[4] x;", crafted.rows("4s", (b"ab",)))
    with pytest.raises(rl.UnsupportedError, match="column x of topic t"):
        rl.logs(a, crafted.ulog(tmp_path / "d.ulg", text)).sql("FROM t")
    with pytest.raises(duckdb.CatalogException, match="missing"):
        rl.logs(a).sql("FROM missing")


def test_the_options_of_the_logs_apply(tmp_path: pathlib.Path) -> None:
    path = crafted.ulog(tmp_path / "a.ulg", crafted.topic(1, "t", "float x;", crafted.rows("f", (1.0,))))
    [(time,)] = rl.logs(path, utc_start=10**18).sql("SELECT epoch_ns(time) FROM t").fetchall()
    # The row is 1 ms after the start.
    assert time == 10**18 + 10**6
