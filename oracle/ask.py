"""Compares joins, conditions and derived signals of `rovelog` with other libraries over exported columns.

usage: ask.py ROVELOG REAL

- joins: DuckDB's ASOF join, polars' join_asof, numpy.interp
- roll, pitch and yaw: scipy's Rotation
- merged currents, powers and energies: rocketlogger
- conditions: pandas

All real logs of all formats are compared. Intended differences are counted and listed.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from rocketlogger.data import RocketLoggerData
from scipy.integrate import cumulative_trapezoid
from scipy.spatial.transform import Rotation

FORMATS = ("ulog", "rld", "rosbag12", "rosbag20", "vel")
SUFFIXES = {".ulg", ".rld", ".bag", ".active", ".vel"}
# Number of topics per log that are compared, those with the most records.
TOPICS = 4
COUNTED = {}


def count(what, number=1):
    COUNTED[what] = COUNTED.get(what, 0) + number


class Refused(Exception):
    """rovelog rejects the log, or the log contains nothing that can be compared."""


def run(binary, *args):
    done = subprocess.run([binary, *map(str, args)], capture_output=True, check=False, timeout=600)
    assert done.returncode in (0, 1, 2, 3), f"{args[0]}: exit {done.returncode}"
    if done.returncode not in (0, 3):
        raise Refused(f"exit {done.returncode}: {' '.join(map(str, args[:1]))}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def table(binary, log, folder, *options):
    out = Path(folder, "out.arrow")
    run(binary, "export", "-q", log, "-o", out, "--force", *options)
    return pl.read_ipc(out)


def numeric(frame):
    """Returns the numeric columns, except columns with times on other clocks."""
    return [name for name, kind in frame.schema.items() if kind.is_numeric() and name != "t_ns"]


def same(got, want, what, exact=True):
    """Returns True if values are equal. NaN and null count as equal, because libraries convert one
    into the other.
    """
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape, f"{what}: {got.shape} and {want.shape}"
    equal = np.array_equal(got, want, equal_nan=True) if exact else np.allclose(got, want, rtol=1e-9, atol=1e-12, equal_nan=True)
    if not equal:
        at = np.flatnonzero(~((got == want) | (np.isnan(got) & np.isnan(want))))[0]
        raise AssertionError(f"{what}: row {at}: {got.flat[at]!r}, not {want.flat[at]!r}")
    count(what, got.size)


def joins(binary, log, folder, names):
    """Joins every pair of topics by every method, with and without a tolerance."""
    alone = {name: table(binary, log, folder, "--topics", name) for name in names}
    alone = {name: frame.drop_nulls("t_ns").sort("t_ns", maintain_order=True) for name, frame in alone.items()}
    for on in names[:2]:
        left = alone[on].select("t_ns")
        for other in names:
            if other == on:
                continue
            right = alone[other]
            fields = numeric(right)[:3]
            tolerance = int(np.median(np.diff(right["t_ns"].to_numpy()))) // 2 + 1 if len(right) > 2 else 1
            for near in (None, tolerance):
                more = () if near is None else ("--tolerance", f"{near}ns")
                for method in ("previous", "nearest", "linear"):
                    got = table(binary, log, folder, "--on", on, "--join", other, "--method", method, *more)
                    assert got["t_ns"].equals(left["t_ns"]), f"{other} on {on}: other times"
                    check = {"previous": previous, "nearest": nearest, "linear": linear}[method]
                    for field in fields:
                        found = got[f"{other.removesuffix('/0')}.{field}"].cast(pl.Float64).to_numpy()
                        check(found, left, right, field, near)


def previous(found, left, right, field, near):
    by_polars = left.join_asof(right.select("t_ns", field), on="t_ns", strategy="backward", tolerance=near)
    same(found, by_polars[field].cast(pl.Float64).to_numpy(), "join previous: polars")
    # If several rows have the same time, DuckDB uses any of them, and rovelog uses the last one.
    last = right.select("t_ns", pl.col(field).cast(pl.Float64).alias("value")).unique("t_ns", keep="last", maintain_order=True)
    count("rows at the time of another, where DuckDB takes any of them", len(right) - len(last))
    rows = left.with_row_index("n")
    query = "SELECT rows.n, last.t_ns AS own, value FROM rows ASOF LEFT JOIN last ON rows.t_ns >= last.t_ns ORDER BY n"
    got = duckdb.sql(query).pl()
    value = got["value"].to_numpy().astype(float)
    if near is not None:
        far = (left["t_ns"] - got["own"]).fill_null(near + 1).to_numpy() > near
        value = np.where(far, np.nan, value)
    same(found, value, "join previous: duckdb")


def nearest(found, left, right, field, near):
    """Checks the nearest rows with numpy. Also checks them with polars, unless two rows are equally
    near. In this case, polars uses the later row and rovelog the earlier row.
    """
    times, own = left["t_ns"].to_numpy(), right["t_ns"].to_numpy()
    values = right[field].cast(pl.Float64).to_numpy().astype(float)
    if not len(own):
        return
    before = np.searchsorted(own, times, side="right") - 1
    after = np.minimum(np.searchsorted(own, times, side="right"), len(own) - 1)
    first = np.maximum(before, 0)
    to_before = np.where(before < 0, np.iinfo(np.int64).max, times - own[first])
    to_after = np.where(own[after] < times, np.iinfo(np.int64).max, own[after] - times)
    want = values[np.where(to_after < to_before, after, first)]
    if near is not None:
        want = np.where(np.minimum(to_after, to_before) > near, np.nan, want)
    same(found, want, "join nearest: numpy")
    by_polars = left.join_asof(right.select("t_ns", field), on="t_ns", strategy="nearest", tolerance=near)
    clear = (to_after != to_before) & (not right["t_ns"].is_duplicated().any())
    same(found[clear], by_polars[field].cast(pl.Float64).to_numpy()[clear], "join nearest: polars")
    count("rows with two neighbors at one distance, where polars takes the later", int((to_after == to_before).sum()))


def linear(found, left, right, field, near):
    times, own = left["t_ns"].to_numpy(), right["t_ns"].to_numpy()
    values = right[field].cast(pl.Float64).to_numpy().astype(float)
    if near is not None or len(own) < 2 or len(np.unique(own)) < len(own) or not np.isfinite(values).all():
        count("tables where linear is compared with nothing: repeated times, tolerances, values that are no numbers")
        return
    # Times relative to the first row are exact as floats.
    want = np.interp((times - own[0]).astype(float), (own - own[0]).astype(float), values, left=np.nan, right=np.nan)
    scale = np.abs(values).max() or 1.0
    same(found / scale, want / scale, "join linear: numpy.interp", exact=False)


def every(binary, log, folder, names):
    """Checks a table with a row at regular times, which has the previous value of each topic."""
    alone = table(binary, log, folder, "--topics", names[0]).drop_nulls("t_ns").sort("t_ns", maintain_order=True)
    times = alone["t_ns"].to_numpy()
    if len(times) < 2 or times[-1] - times[0] < 1_000_000:
        return
    step = max((times[-1] - times[0]) // 500, 1)
    got = table(binary, log, folder, "--every", f"{step}ns", "--join", names[0])
    assert (np.diff(got["t_ns"].to_numpy()) == step).all(), "an uneven grid"
    for field in numeric(alone)[:2]:
        want = got.select("t_ns").join_asof(alone.select("t_ns", field), on="t_ns", strategy="backward")
        found = got[f"{names[0].removesuffix('/0')}.{field}"].cast(pl.Float64).to_numpy()
        same(found, want[field].cast(pl.Float64).to_numpy(), "every: polars")


def conditions(binary, log, folder, name):
    """Checks two conditions on the numbers of a topic that change most, and the changes of one."""
    frame = table(binary, log, folder, "--topics", name, "--flatten").drop_nulls("t_ns").sort("t_ns", maintain_order=True)
    frame = frame.to_pandas()
    fields = [field for field in frame if field != "t_ns" and pd.api.types.is_numeric_dtype(frame[field])]
    fields = [field for field in fields if frame[field].nunique() > 1][:3]
    times = frame["t_ns"].to_numpy()
    for field in fields:
        values = frame[field].astype(float)
        middle = float(np.nanmedian(values[np.isfinite(values)])) if np.isfinite(values).any() else 0.0
        signal = f"`{name.removesuffix('/0')}.{field}`"
        runs(binary, log, f"{signal} > {middle!r}", values > middle, values, times, 0)
        span = int(times[-1] - times[0]) // 100
        runs(binary, log, f"{signal} <= {middle!r} for {span}ns", values <= middle, values, times, span)
        both = (values > middle) | (values == values.min())
        runs(binary, log, f"{signal} > {middle!r} or {signal} == {float(values.min())!r}", both, values, times, 0)
        changes(binary, log, f"{signal} changes", values, times)


def found(binary, log, condition):
    return json.loads(run(binary, "events", "-q", "-f", "json", log, condition))["conditions"][0]["events"]


def runs(binary, log, condition, holds, values, times, least):
    groups = (holds != holds.shift()).cumsum()
    want = []
    for _, group in values[holds].groupby(groups[holds]):
        start, after = group.index[0], group.index[-1] + 1
        end = times[after] if after < len(times) else times[-1]
        if end - times[start] >= least:
            want.append((str(times[start]), str(end), str(len(group)), group.min(), group.max()))
    got = [(e["t_ns"], e["end_ns"], e["rows"], e["min"], e["max"]) for e in found(binary, log, condition)]
    exact = [row[:3] for row in got] == [row[:3] for row in want]
    assert exact, f"{condition}: {len(got)} events, not {len(want)}: {got[:2]} {want[:2]}"
    same([row[3:] for row in got] or np.empty((0, 2)), [row[3:] for row in want] or np.empty((0, 2)), "conditions: pandas")


def changes(binary, log, condition, values, times):
    known = values.ffill()
    at = np.flatnonzero((known != known.shift()) & known.shift().notna())
    ends = np.r_[times[at[1:]], times[-1]] if len(at) else []
    want = [(str(times[i]), str(end), known[i - 1], known[i]) for i, end in zip(at, ends)]
    got = [(e["t_ns"], e["end_ns"], e["from"], e["to"]) for e in found(binary, log, condition)]
    assert got == want, f"{condition}: {len(got)} changes, not {len(want)}: {got[:2]} {want[:2]}"
    count("changes: pandas", len(got))


def angles(binary, log, folder):
    """Checks roll, pitch and yaw of all quaternions."""
    for topic in json.loads(run(binary, "topics", "-q", "-f", "json", log))["topics"]:
        name = topic["name"]
        if not int(topic["count"]):
            continue
        try:
            frame = table(binary, log, folder, "--topics", name, "--flatten")
        except Refused:
            continue
        for stem, parts in quaternions(frame.columns):
            q = frame.select(pl.col(parts).cast(pl.Float64)).to_numpy()
            known = np.isfinite(q).all(axis=1) & (np.linalg.norm(q, axis=1) > 0)
            fields = [f"{stem}.{angle}" if stem else angle for angle in ("roll", "pitch", "yaw")]
            got = table(binary, log, folder, "--topics", name, "--fields", ",".join(fields)).select(fields).to_numpy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = Rotation.from_quat(q[known], scalar_first=True).as_euler("ZYX")[:, ::-1]
            # Straight up or down, only the sum of roll and yaw is defined. scipy sets one of them to 0.
            clear = np.abs(np.abs(want[:, 1]) - np.pi / 2) > 1e-5
            count("rows straight up or down, where scipy sets one angle to 0", int((~clear).sum()))
            off = (got[known][clear] - want[clear] + np.pi) % (2 * np.pi) - np.pi
            assert (np.abs(off) < 1e-7).all(), f"{name}.{stem}: off by {np.abs(off).max()}"
            count("angles: scipy", off.size)


def quaternions(columns):
    for column in columns:
        stem = column.removesuffix("[0]")
        if stem != column and "q" in stem.split(".")[-1].split("_") and f"{stem}[3]" in columns and f"{stem}[4]" not in columns:
            yield stem, [f"{stem}[{i}]" for i in range(4)]
        stem = column.removesuffix(".w")
        if stem != column and {f"{stem}.x", f"{stem}.y", f"{stem}.z"} <= set(columns):
            yield stem, [f"{stem}.{part}" for part in "wxyz"]
        if column == "qw":
            yield "", ["qw", "qx", "qy", "qz"]


def power(binary, log, folder):
    """Checks merged currents with rocketlogger, and power and energy with numpy and scipy."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = RocketLoggerData(str(log), join_files=False)
            theirs.merge_channels(keep_channels=True)
    except Exception as error:  # pylint: disable=broad-except
        count(f"RLD logs that rocketlogger refuses or has no currents of two ranges for ({type(error).__name__})")
        return
    names = theirs.get_channel_names()
    for number in "12":
        current, voltage = f"I{number}", f"V{number}"
        if current not in names or voltage not in names:
            continue
        signals = f"{current},P={voltage}*{current},E=integral({voltage}*{current})"
        frame = table(binary, log, folder, "--fields", signals)
        amperes, volts = theirs.get_data([current])[:, 0], theirs.get_data([voltage])[:, 0]
        rows = len(amperes)
        got = {name: frame[name].to_numpy()[:rows].astype(float) for name in (current, "P", "E")}
        # If a current is outside of both ranges, rovelog returns no value, and rocketlogger returns
        # the value of the converter.
        there = ~np.isnan(got[current])
        count("rows outside of both ranges, where rocketlogger has a value", int((~there).sum()))
        same(got[current][there], amperes[there], "merged currents: rocketlogger", exact=False)
        watts = volts * amperes
        same(got["P"][there], watts[there], "powers: rocketlogger", exact=False)
        if there.all() and len(frame) == rows:
            seconds = (frame["t_ns"].to_numpy() - frame["t_ns"][0]) / 1e9
            want = cumulative_trapezoid(watts, seconds, initial=0)
            scale = np.abs(want).max() or 1.0
            same(got["E"] / scale, want / scale, "energies: scipy over rocketlogger", exact=False)


def one(binary, log, folder):
    """Compares a log. Returns its number of topics with records."""
    topics = json.loads(run(binary, "topics", "-q", "-f", "json", log))["topics"]
    topics = sorted((t for t in topics if int(t["count"])), key=lambda t: -int(t["count"]))
    names = []
    for topic in topics:
        try:
            table(binary, log, folder, "--topics", topic["name"])
        except Refused:
            continue
        names.append(topic["name"])
        if len(names) == TOPICS:
            break
    if not names:
        raise Refused("no topic with columns")
    try:
        if len(names) > 1:
            joins(binary, log, folder, names)
        try:
            every(binary, log, folder, names)
        except Refused as error:
            # In this log, one time is far from all other times.
            if "rows for the times of this log" not in str(error):
                raise
            count("logs whose times are too far apart for rows at an interval")
        conditions(binary, log, folder, names[0])
        angles(binary, log, folder)
        if log.suffix == ".rld":
            power(binary, log, folder)
    except Refused as error:
        raise AssertionError(f"has columns, but {error}") from error
    return len(topics)


def main():
    binary, real = sys.argv[1], Path(sys.argv[2])
    failed, compared, refused = [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        for log in sorted(log for name in FORMATS for log in (real / name).glob("*") if log.suffix in SUFFIXES):
            try:
                one(binary, log, folder)
                compared += 1
            except Refused as error:
                refused.append(f"{log.name}: {error}")
            except AssertionError as error:
                failed.append(f"{log.name}: {error}")
                print(f"DIFFERS {log.name}: {error}", flush=True)
    for what, number in sorted(COUNTED.items()):
        print(f"  {what}: {number}")
    print(f"not compared, for they cannot be read or have no columns: {len(refused)}")
    for line in refused:
        print(f"    {line[:160]}")
    print(f"{compared} logs equal, {len(failed)} differ")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
