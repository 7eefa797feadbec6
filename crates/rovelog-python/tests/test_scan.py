"""A lazy scan returns the same values as an eager read, and decodes only what a query needs."""

from __future__ import annotations

import gzip
import inspect
import pathlib
import warnings
from collections.abc import Callable

import crafted
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import rovelog as rl
from rovelog import _lazyframe, _source


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


def test_a_filter_on_the_path_leaves_logs_closed(
    real: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{name}.ulg" for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(real.read_bytes())
    lazy = rl.scan(tmp_path, "vehicle_attitude", path_column="log")
    whole = lazy.collect()
    opened: list[str] = []
    open_reader = _source.open_reader

    def counting(source: str) -> object:
        opened.append(pathlib.Path(source).stem)
        return open_reader(source)

    monkeypatch.setattr(_source, "open_reader", counting)
    log, middle = pl.col("log"), whole["t_ns"][len(whole) // 2]
    for condition, names in [
        (log.str.ends_with("b.ulg"), ["b"]),
        ((pl.col("t_ns") < middle) & log.str.ends_with("b.ulg"), ["b"]),
        (log.is_in([str(paths[0]), str(paths[2])]), ["a", "c"]),
        (log == "elsewhere", []),
        (log.str.ends_with("b.ulg") | (pl.col("t_ns") < middle), ["a", "b", "c"]),
    ]:
        opened.clear()
        assert_frame_equal(lazy.filter(condition).collect(), whole.filter(condition))
        assert opened == names, condition


def test_every_kind_of_source(real: pathlib.Path) -> None:
    want = rl.scan(real, "vehicle_attitude").collect()
    with real.open("rb") as file:
        for source in (str(real), real.read_bytes(), file):
            lazy = rl.scan(source, "vehicle_attitude")
            for _ in range(2):
                assert_frame_equal(lazy.collect(), want)
    with real.open("rb") as one:
        assert len(rl.scan([one, real.read_bytes(), real], "vehicle_attitude").collect()) == 3 * len(want)
    with pytest.raises(ValueError, match="no log to scan"):
        rl.scan([], "vehicle_attitude")


def test_an_unknown_topic_raises(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for logs in (real, [real], [real, real]):
        with pytest.raises(rl.TopicNotFound, match="vehicle_attitude") as caught:
            rl.scan(logs, "vehicle_atitude")
        assert caught.value.suggestions[0] == "vehicle_attitude/0"
    with pytest.raises(rl.TopicNotFound, match="in any of the 2 logs"):
        rl.scan([real, real], ("vehicle_attitude", 7))
    for wrong in (5, None, ("vehicle_attitude",), ("vehicle_attitude", "0"), ["vehicle_attitude"]):
        with pytest.raises(TypeError, match="a topic must be a name"):
            rl.scan(real, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="already has a column timestamp"):
        rl.scan(real, "vehicle_attitude", path_column="timestamp")
    other = crafted.ulog(tmp_path / "other.ulg", crafted.topic(1, "other", "float x;", crafted.rows("f", (1.0,))))
    count = rl.open(real)["vehicle_attitude"].count
    assert len(rl.scan([other, real], "vehicle_attitude").collect()) == count


def test_instances(flight: pathlib.Path) -> None:
    for instance in (0, 1):
        want = rl.open(flight)["t", instance].to_polars()
        got = rl.scan([flight, flight], ("t", instance)).collect()
        assert_frame_equal(got, pl.concat([want, want]))


FIRMWARES = {
    # Format of a row for `struct`, fields, rows. Each firmware changes fields of the one before.
    "first": ("2f2h?B2i", "float[2] a;int16_t[2] b;bool c;uint8_t d;Inner[2] e;", [(1, 2, 3, 4, True, 5, 6, 7), (8, 9, 1, 2, False, 3, 4, 5)]),
    "second": ("3f2iBi2q", "float[3] a;int32_t[2] b;uint8_t c;int32_t d;Other[2] e;", [(1, 2, 3, 4, 5, 6, -7, 8, 9)]),
    "third": ("2fd4f", "float[2] a;double d;float[4] f;", [(1, 2, 3.5, 4, 5, 6, 7)] * 3),
    "empty": ("f", "float a2;", []),
}


def firmware(folder: pathlib.Path, name: str) -> pathlib.Path:
    code, fields, values = FIRMWARES[name]
    inner = {"first": ("int32_t x;", "Inner"), "second": ("int64_t y;", "Other")}.get(name)
    formats = [f"{inner[1]}:{inner[0]}"] if inner else []
    made = crafted.topic(1, "mixed", fields, crafted.rows(code, *values))
    return crafted.ulog(folder / f"{name}.ulg", made, formats=formats)


def eager(logs: list[pathlib.Path], topic: str | tuple[str, int], path_column: str | None) -> pl.DataFrame:
    """Returns the expected result of `scan`, computed from frames in memory."""
    frames = []
    for path in logs:
        log = rl.open(path)
        if topic in log:
            frame = log[topic].to_polars()
            frames.append(frame if path_column is None else frame.with_columns(pl.lit(str(path)).alias(path_column)))
    both = pl.concat(frames, how="diagonal_relaxed")
    times = [name for name in (path_column, "t_ns", "time") if name in both.columns]
    return both.select(*times, pl.exclude(times))


Query = Callable[[pl.LazyFrame], pl.LazyFrame]


def queries(frame: pl.DataFrame, path_column: str | None, step: int) -> dict[str, Query]:
    """Returns projections, filters and aggregations for some columns of a frame."""
    found: dict[str, Query] = {
        "all": lambda lazy: lazy,
        "len": lambda lazy: lazy.select(pl.len()),
        "literal": lambda lazy: lazy.select(pl.lit(1), pl.len().alias("n")),
        "head": lambda lazy: lazy.head(3),
        "none": lambda lazy: lazy.head(0),
        "tail": lambda lazy: lazy.tail(2),
        "slice": lambda lazy: lazy.slice(1, 2),
        "reverse": lambda lazy: lazy.select("t_ns").reverse(),
        "index": lambda lazy: lazy.with_row_index().filter(pl.col("index") % 2 == 0).drop("index"),
        "nulls": lambda lazy: lazy.null_count(),
        "null rows": lambda lazy: lazy.filter(pl.any_horizontal(pl.all().is_null())).select(pl.len()),
        "times": lambda lazy: lazy.select(pl.col("t_ns").min(), pl.col("t_ns").max().alias("last"), pl.len().alias("n")),
        "reorder": lambda lazy: lazy.select(sorted(frame.columns, reverse=True)),
        "sorted": lambda lazy: lazy.sort("t_ns", maintain_order=True).select("t_ns"),
    }
    middle = sorted(frame["t_ns"])[len(frame) // 2] if len(frame) else 0
    found["window"] = lambda lazy: lazy.filter(pl.col("t_ns") >= middle)
    found["window, head"] = lambda lazy: lazy.filter(pl.col("t_ns") >= middle).head(2)
    found["head, window"] = lambda lazy: lazy.head(3).filter(pl.col("t_ns") >= middle)
    found["window, len"] = lambda lazy: lazy.filter(pl.col("t_ns") < middle).select(pl.len())
    found["either"] = lambda lazy: lazy.filter((pl.col("t_ns") < middle) | (pl.col("t_ns") == middle)).select(pl.len())
    for name, type in list(frame.schema.items())[::step]:
        found[f"only {name}"] = lambda lazy, name=name: lazy.select(name)  # type: ignore[misc]
        found[f"without {name}"] = lambda lazy, name=name: lazy.drop(name)  # type: ignore[misc]
        found[f"nulls of {name}"] = lambda lazy, name=name: lazy.select(pl.col(name).null_count())  # type: ignore[misc]
        found[f"there {name}"] = lambda lazy, name=name: lazy.filter(pl.col(name).is_not_null()).select("t_ns")  # type: ignore[misc]
        if type.is_numeric():
            # The sum of floats depends on the sizes of the batches.
            how = (pl.Expr.sum, pl.Expr.max)[type.is_float()]
            found[f"of all {name}"] = lambda lazy, name=name, how=how: lazy.select(how(pl.col(name)), pl.len().alias("n"))  # type: ignore[misc]
            found[f"greater {name}"] = lambda lazy, name=name: lazy.filter(pl.col(name) > 1).select(name)  # type: ignore[misc]
            found[f"groups of {name}"] = lambda lazy, name=name: lazy.group_by(name).len().sort(name)  # type: ignore[misc]
    if path_column is not None:
        found["by log"] = lambda lazy: lazy.group_by(path_column).len().sort(path_column)
        found["of a log"] = lambda lazy: lazy.filter(pl.col(path_column).str.ends_with("second.ulg")).select(pl.len())
        found["log and time"] = lambda lazy: lazy.select(path_column, "t_ns").unique(maintain_order=True)
    return found


def check(logs: list[pathlib.Path], topic: str | tuple[str, int], step: int = 1) -> None:
    """`scan` returns the same as eager frames for every query."""
    for path_column in (None, "log"):
        want = eager(logs, topic, path_column)
        lazy = rl.scan(logs, topic, path_column=path_column)
        assert dict(lazy.collect_schema()) == dict(want.schema)
        for name, query in queries(want, path_column, step).items():
            expected = query(want.lazy()).collect()
            try:
                assert_frame_equal(query(lazy).collect(), expected, check_exact=True)
            except AssertionError as error:
                raise AssertionError(f"{name} of {topic}, {path_column=}: {error}") from error


@pytest.mark.parametrize(
    "names",
    [["first"], ["first", "first"], ["first", "second"], ["second", "first"], ["third", "empty", "first", "second"], ["empty"]],
    ids="+".join,
)
def test_firmwares_as_eager_frames(tmp_path: pathlib.Path, names: list[str]) -> None:
    check([firmware(tmp_path, name) for name in names], "mixed")


def test_corpus_as_eager_frames(flight: pathlib.Path) -> None:
    corpus = flight.parent
    logs = sorted(corpus.glob("one-topic*.ulg"))
    assert len(logs) > 2
    check(logs, "t")
    check(logs, ("t", 1))


def test_a_folder_has_the_logs_that_others_find(tmp_path: pathlib.Path, flight: pathlib.Path) -> None:
    for name in ("a.ulg", "below/b.ulog", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(flight.read_bytes())
    (tmp_path / "c.ulg.gz").write_bytes(gzip.compress(flight.read_bytes()))
    frame = rl.scan(tmp_path, "t", path_column="log").collect()
    assert sorted(frame["log"].unique()) == list(rl.logs(tmp_path).paths) and len(rl.logs(tmp_path)) == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no log in this folder"):
        rl.scan(tmp_path / "empty", "t")


@pytest.mark.parametrize("topic", ["vehicle_gps_position", "battery_status", "vehicle_status"])
def test_real_logs_as_eager_frames(topic: str, real: pathlib.Path) -> None:
    names = ["sample_log_small", "sample_logging_tagged_and_default_params", "sample_px4_events"]
    check([real.parent / f"{name}.ulg" for name in names], topic, step=9)


def test_all_real_topics_can_be_scanned_together(real: pathlib.Path) -> None:
    logs = sorted(real.parent.glob("*.ulg"))
    opened = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.DataLossWarning)
        for path in logs:
            try:
                opened.append((path, rl.open(path)))
            except rl.RovelogError:
                continue
        assert len(opened) > 3
        # Topics whose fields differ between firmware versions, and some others.
        names = {"battery_status/0", "estimator_states/0", "esc_status/0", *sorted({name for _, log in opened for name in log})[::9]}
        for topic in sorted(names):
            counts = [log[topic].count for _, log in opened if topic in log]
            try:
                lazy = rl.scan([path for path, _ in opened], topic)
            except rl.UnsupportedError as error:
                assert error.path is not None and topic in str(error) and "column" in str(error)
                continue
            assert lazy.select(pl.len()).collect().item() == sum(counts), topic


def test_incompatible_types_raise(tmp_path: pathlib.Path) -> None:
    def log(name: str, code: str, field: str, value: object) -> pathlib.Path:
        return crafted.ulog(tmp_path / f"{name}.ulg", crafted.topic(1, "t", field, crafted.rows(code, (value,))))

    number = log("number", "f", "float x;", 1.5)
    text = log("text", "4s", "char[4] x;", b"ab")
    long = log("long", "q", "int64_t x;", 2**53 + 1)
    for a, b in ((number, text), (text, number), (long, text)):
        with pytest.raises(rl.UnsupportedError, match=r"column x of topic t ") as caught:
            rl.scan([a, b], "t")
        assert caught.value.path == str(b) and str(a) in str(caught.value)
    unsigned = log("unsigned", "Q", "uint64_t x;", 2**64 - 1)
    assert rl.scan([long, unsigned], "t").collect()["x"].to_list() == [2**53 + 1, 2**64 - 1]
    assert rl.scan([number, long], "t").collect()["x"].to_list() == [1.5, 2.0**53]


def test_the_utc_of_any_log_is_a_column(real: pathlib.Path) -> None:
    logs = [real.parent / "sample.ulg", real]
    columns = [set(rl.open(path)["vehicle_attitude"].to_polars().columns) for path in logs]
    assert ("time" in columns[0]) != ("time" in columns[1]), "one of them has UTC"
    for order in (logs, logs[::-1]):
        lazy = rl.scan(order, "vehicle_attitude")
        assert lazy.collect_schema().names()[:2] == ["t_ns", "time"]
        assert 0 < lazy.select(pl.col("time").null_count()).collect().item() < lazy.select(pl.len()).collect().item()


def test_a_log_that_changes_between_scan_and_query(tmp_path: pathlib.Path) -> None:
    path = crafted.ulog(tmp_path / "a.ulg", crafted.topic(1, "t", "float x;", crafted.rows("f", (1.0,))))
    lazy = rl.scan(path, "t")
    crafted.ulog(path, crafted.topic(1, "t", "double x;", crafted.rows("d", (1.0,))))
    with pytest.raises((rl.RovelogError, pl.exceptions.ComputeError), match="have changed since"):
        lazy.collect()


def test_damage_warns_once_and_at_the_line_of_the_user(tmp_path: pathlib.Path) -> None:
    topic = crafted.topic(1, "t", "float x;", crafted.rows("f", *((1.0,),) * 50))
    path = crafted.ulog(tmp_path / "a.ulg", topic, tail=bytes(range(200)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lazy = rl.scan([path, path], "t")
        lazy.collect()
        lazy.select(pl.len()).collect()
        rl.open(path)
        rl.convert(str(path), tmp_path / "a.mcap")
    losses = [warning for warning in said if issubclass(warning.category, rl.DataLossWarning)]
    assert len(losses) == 2 + 1 + 1 and {warning.filename for warning in losses} == {__file__}


def test_predicates_become_windows() -> None:
    t = pl.col("t_ns")
    assert _lazyframe.time_window((t > 5) & (pl.lit(9) >= t) & (pl.col("x") < 1.5)) == (6, 10)
    assert _lazyframe.time_window((t == 7)) == (7, 8)
    assert _lazyframe.time_window((t > 5) | (t < 2)) == (None, None)
    assert _lazyframe.time_window(pl.col("x") > 5) == (None, None)
    assert _lazyframe.time_window(None) == (None, None)


def test_the_polars_hook_has_not_changed() -> None:
    """The hook of polars is marked unstable: if this test fails, adapt `_lazyframe.py`."""
    names = list(inspect.signature(register_io_source).parameters)
    assert names[:4] == ["io_source", "schema", "validate_schema", "is_pure"]
