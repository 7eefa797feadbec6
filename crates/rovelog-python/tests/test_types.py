"""Public types: mypy and pyright find exactly the errors that are planted in a script."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

SCRIPT = '''
import datetime as dt
import io
from typing import Any

import pandas as pd
import polars as pl
from numpy.typing import NDArray

import rovelog as rl
from rovelog.compat.pyulog import ULog
from rovelog.compat.rocketlogger import RocketLoggerData
from rovelog.compat.rosbag import Bag, Compression, Time

log = rl.open("a.ulg", topics=["t"])
start: dt.datetime | None = log.start
wrong_start: dt.datetime = log.start  # planted
topic = log["t", 0]
log[5]  # planted
q: NDArray[Any] = topic.numpy("q")["q"]
text: str = topic.numpy()["q"]  # planted
count: int = len(topic)
frame: pl.DataFrame = topic.select("q").between("+1s", 5).to_polars()
topic.between(1.5)  # planted
pandas_frame: pd.DataFrame = topic.to_pandas(index="time")
frames: dict[str, pl.DataFrame] = log.frames()
more: dict[str, pd.DataFrame] = log.frames(None, "pandas")
log.frames(None, "excel")  # planted
joined: pl.DataFrame = log.align(["t"], on="10ms", how="nearest", tolerance=dt.timedelta(seconds=1))
log.align("t", on="10ms", how="next")  # planted
for m in topic:
    time: int | None = m.t_ns
    m.nothing  # planted
    value: Any = m.get("q")
pixels: NDArray[Any] = rl.image(next(iter(topic)))
done: rl.Converted = rl.convert(log, io.BytesIO(), kind="mcap")
rl.convert(log, "a.mcap", kind="nope")  # planted
rl.convert(log, "a.parquet", time_unit="ms")  # planted
lazy: pl.LazyFrame = rl.scan("logs/*.ulg", "t").filter(pl.col("t_ns") > 5)
energy: float | None = log.rld.energy("1s")[0].energy["V1*I1"]
log.rld.energy(window="1s", by=5)  # planted
ulog = ULog("a.ulg", ["t"])
timestamp: int = ulog.start_timestamp
timestamp_text: str = ulog.start_timestamp  # planted
names: list[str] = RocketLoggerData("a.rld").get_channel_names()
with Bag("a.bag", "w", compression=Compression.BZ2) as bag:
    bag.write("/t", object(), Time(5) + (Time(7) - Time(6)))
    bag.nothing  # planted
'''


PLANTED = {number for number, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith("# planted")}


def test_mypy_finds_the_planted_errors(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy", reason="SKIPPED: mypy is not installed")
    script = tmp_path / "user.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = {int(number) for number in re.findall(r"user\.py:(\d+): error: ", done.stdout)}
    assert errors == PLANTED, done.stdout


def pyright(folder: pathlib.Path, *options: str) -> str:
    """Returns the output of pyright for the packages of this interpreter."""
    pytest.importorskip("pyright", reason="SKIPPED: pyright is not installed")
    # pyright uses the environment whose programs come first in PATH.
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": sys.prefix}
    command = [sys.executable, "-m", "pyright", "--outputjson", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_pyright_finds_the_planted_errors(tmp_path: pathlib.Path) -> None:
    (tmp_path / "user.py").write_text(SCRIPT)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    output = pyright(tmp_path, "user.py")
    errors = {found["range"]["start"]["line"] + 1 for found in json.loads(output)["generalDiagnostics"]}
    assert errors == PLANTED, output


def test_pyright_knows_all_public_types(tmp_path: pathlib.Path) -> None:
    output = pyright(tmp_path, "--verifytypes", "rovelog", "--ignoreexternal")
    report = json.loads(output)["typeCompleteness"]
    assert report["exportedSymbolCounts"]["withKnownType"] > 300, output
    unknown = [symbol["name"] for symbol in report["symbols"] if symbol["diagnostics"] and not symbol["isTypeKnown"]]
    # The base classes are defined in pyspark, which is not installed for these tests.
    unknown = [name for name in unknown if not name.startswith("rovelog.spark.")]
    assert unknown == [], unknown
