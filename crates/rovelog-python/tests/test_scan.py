"""The lazy scan gives what an eager read gives, and reads no more than a query needs."""

from __future__ import annotations

import inspect
import pathlib

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import rovelog as rl
from rovelog import _scan


def test_a_scan_is_an_eager_read(real: pathlib.Path, real_log: rl.Log) -> None:
    lazy = rl.scan(real, "vehicle_local_position")
    eager = real_log["vehicle_local_position"].to_polars()
    assert_frame_equal(lazy.collect(), eager)
    query = lambda frame: frame.filter(pl.col("vx") > 0).select("t_ns", "vy").head(7)  # noqa: E731
    assert_frame_equal(query(lazy).collect(), query(eager))
    middle = eager["t_ns"][50]
    window = (pl.col("t_ns") >= middle) & (pl.lit(middle + 10**9) > pl.col("t_ns")) & (pl.col("vx") < 1)
    assert_frame_equal(lazy.filter(window).collect(), eager.filter(window))
    assert lazy.select(pl.len()).collect().item() == len(eager)


def test_many_logs(real: pathlib.Path) -> None:
    frame = rl.scan([real, real], "vehicle_local_position", path_column="path").collect()
    assert frame["path"].unique().to_list() == [str(real)]
    assert len(frame) == 2 * rl.open(real)["vehicle_local_position"].count


def test_every_kind_of_source(real: pathlib.Path) -> None:
    want = rl.scan(real, "vehicle_attitude").collect()
    with real.open("rb") as file:
        for source in (str(real), real.read_bytes(), file):
            lazy = rl.scan(source, "vehicle_attitude")
            for _ in range(2):
                assert_frame_equal(lazy.collect(), want)
    with pytest.raises(rl.TopicNotFound, match="vehicle_attitude"):
        rl.scan(real, "vehicle_atitude")
    assert rl.scan([real, real], "nothing").collect().is_empty()
    with pytest.raises(ValueError, match="no log to scan"):
        rl.scan([], "vehicle_attitude")


def test_predicates_become_windows() -> None:
    t = pl.col("t_ns")
    assert _scan.window((t > 5) & (pl.lit(9) >= t) & (pl.col("x") < 1.5)) == (6, 10)
    assert _scan.window((t == 7)) == (7, 8)
    assert _scan.window((t > 5) | (t < 2)) == (None, None)
    assert _scan.window(pl.col("x") > 5) == (None, None)
    assert _scan.window(None) == (None, None)


def test_the_hook_is_as_we_know_it() -> None:
    """The hook of polars is marked unstable: this fails when it changes, and `_scan.py` is the one place to mend."""
    names = list(inspect.signature(register_io_source).parameters)
    assert names[:4] == ["io_source", "schema", "validate_schema", "is_pure"]
