"""Another program shortens a log while it is open. Each access raises an exception, and the
interpreter survives.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import crafted
import pytest
from conftest import CORPUS, real_file

import rovelog as rl

# Each operation runs on a log that was opened before the file was shortened.
COMMON = {
    "columns": "log[name].to_polars()",
    "numpy": "log[name].numpy()",
    "pandas": "log[name].to_pandas()",
    "records": "list(log.messages())",
    "batches": "list(log[name].batches())",
    "stream": "pyarrow.table(log[name])",
    "slice": "log.slice(out, force=True)",
    "recover": "log.recover(out, force=True)",
    "tables": "rl.convert(log, out + '.csv', topics=name, force=True)",
    "mcap": "rl.convert(log, out + '.mcap', force=True)",
    "diff": "rl.diff(log, log)",
    "problems": "log.problems",
}
OF_FORMAT = {
    "ulog": {
        "params": "log.params",
        "events": "log.ulog.events",
        "ULog": "drop(ULog)([data.data for data in log.data_list])",
        "ULog other messages": "drop(ULog)(log.logged_messages)",
    },
    "rld": {
        "RocketLoggerData": "drop(RocketLoggerData)(log.get_data())",
        "RocketLoggerData times": "drop(RocketLoggerData)(log.get_time('network'))",
    },
    "rosbag": {"Bag": "drop(Bag)(list(log.read_messages()))", "Bag info": "drop(Bag)(log.get_type_and_topic_info())"},
}

SCRIPT = """
import os, shutil, sys, warnings
import pyarrow
import rovelog as rl
from rovelog.compat.pyulog import ULog
from rovelog.compat.rocketlogger import RocketLoggerData
from rovelog.compat.rosbag import Bag

warnings.simplefilter("ignore")
source, folder, cut, hidden = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "hidden"
out = os.path.join(folder, "out")
with rl.open(source) as log:
    name = max(log.topics.values(), key=lambda t: (bool(t.fields), t.nbytes)).name
for what, work in __WORK__.items():
    path = os.path.join(folder, "copy" + os.path.splitext(source)[1])
    shutil.copyfile(source, path)
    opened = rl.open
    if work.startswith("drop("):
        reader, work = work[5:].split(")(", 1)
        opened, work = eval(reader), "(" + work
    log = opened(path)
    if hidden:
        # The new length of a file under another name is not visible. Only the access fault reveals
        # it.
        os.rename(path, path + ".moved")
        os.truncate(path + ".moved", cut)
    else:
        os.truncate(path, cut)
    try:
        eval(work)
        print(what, "-")
    except Exception as error:
        print(what, "shortened" if "another program shortened" in str(error) else repr(error))
    del log
print("alive", "-")
"""


def outcomes(source: pathlib.Path, folder: pathlib.Path, cut: int, how: str, work: dict[str, str]) -> dict[str, str]:
    script = SCRIPT.replace("__WORK__", repr(work))
    run = [sys.executable, "-c", script, str(source), str(folder), str(cut), how]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr)
    said = dict(line.rsplit(" ", 1) if line.endswith((" -", " shortened")) else (line, "?") for line in done.stdout.splitlines())
    assert said.pop("alive") == "-"
    return said


def logs(tmp_path: pathlib.Path, format: str) -> pathlib.Path:
    if format == "ulog":
        return crafted.large(tmp_path / "large.ulg")
    if format == "rosbag":
        return crafted.large_bag(tmp_path / "large.bag", CORPUS / "rosbag/recorded.bag")
    return real_file("rld/test_calibration_v.rld")


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be shortened there")
@pytest.mark.parametrize("format", ["ulog", "rld", "rosbag"])
def test_every_access_raises(tmp_path: pathlib.Path, format: str) -> None:
    source = logs(tmp_path, format)
    size = source.stat().st_size
    assert size >= 1 << 20
    work = COMMON | OF_FORMAT[format]
    # Accesses within the last page cause no fault, but the bytes become zeros.
    for cut in (0, size // 2, size - 10):
        said = outcomes(source, tmp_path, cut, "seen", work)
        assert said == dict.fromkeys(work, "shortened"), cut


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be shortened there")
@pytest.mark.parametrize("format", ["ulog", "rld", "rosbag"])
def test_a_fault_is_an_exception(tmp_path: pathlib.Path, format: str) -> None:
    source = logs(tmp_path, format)
    reads = ["columns", "numpy", "pandas", "records", "batches", "stream", *list(OF_FORMAT[format])[-2:-1]]
    work = {what: (COMMON | OF_FORMAT[format])[what] for what in reads}
    for cut in (0, source.stat().st_size // 2):
        said = outcomes(source, tmp_path, cut, "hidden", work)
        assert said == dict.fromkeys(work, "shortened"), cut


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be shortened there")
def test_bags_before_v12_end_too(tmp_path: pathlib.Path) -> None:
    """Records of these formats have no length, so the first invalid record ends the scan."""
    source = real_file("rosbag12/real_ekf_test_v11.bag")
    for cut in (0, source.stat().st_size // 2):
        said = outcomes(source, tmp_path, cut, "hidden", {"Bag": OF_FORMAT["rosbag"]["Bag"]})
        assert said == {"Bag": "shortened"}, cut


def test_the_error_names_the_next_step(tmp_path: pathlib.Path) -> None:
    path = crafted.large(tmp_path / "a.ulg")
    with rl.open(path) as log:
        records = iter(log.messages())
        next(records)
        os.truncate(path, 4096)
        with pytest.raises(rl.ReadError, match="another program shortened") as caught:
            log["fast"].numpy()
        assert caught.value.path == str(path) and "open a copy" in str(caught.value)
        with pytest.raises(rl.ReadError):
            list(records)
    with pytest.warns(rl.DataLossWarning), rl.open(path) as log:
        assert 0 < log.records < 60_000


def test_logs_in_memory_are_safe(tmp_path: pathlib.Path) -> None:
    path = crafted.large(tmp_path / "a.ulg")
    small = crafted.ulog(tmp_path / "b.ulg", crafted.topic(1, "t", "float x;", crafted.rows("f", (1.0,))))
    with path.open("rb") as file:
        opened = [rl.open(path.read_bytes()), rl.open(file), rl.open(small)]
    for one in (path, small):
        os.truncate(one, 0)
    assert [next(iter(log.topics.values())).table().__len__() for log in opened] == [60_000, 60_000, 1]


def test_a_replaced_or_growing_file_does_not_change_the_log(tmp_path: pathlib.Path) -> None:
    path = crafted.large(tmp_path / "a.ulg")
    grown = crafted.large(tmp_path / "g.ulg")
    log, growing = rl.open(path), rl.open(grown)
    crafted.ulog(tmp_path / "new.ulg")
    os.replace(tmp_path / "new.ulg", path)
    with grown.open("ab") as file:
        file.write(bytes(100))
    assert len(log["fast"].table()) == len(growing["fast"].table()) == 60_000


FAULTS = """
import faulthandler, mmap, os, sys
import rovelog as rl
if sys.argv[2] == "before":
    faulthandler.enable()
log = rl.open(sys.argv[1])
if sys.argv[2] == "between":
    faulthandler.enable()
    log = rl.open(sys.argv[1])
with open(sys.argv[3], "wb+") as file:
    file.write(bytes(1 << 16))
    file.flush()
    foreign = mmap.mmap(file.fileno(), 1 << 16)
    os.truncate(sys.argv[3], 0)
print("reading", flush=True)
foreign[5000]
print("not reached", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("when", ["never", "before", "between"])
def test_other_faults_reach_their_handlers(tmp_path: pathlib.Path, when: str) -> None:
    path = crafted.large(tmp_path / "a.ulg")
    run = [sys.executable, "-c", FAULTS, str(path), when, str(tmp_path / "foreign")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == -7 and done.stdout == "reading\n"
    assert ("Fatal Python error: Bus error" in done.stderr) == (when != "never")


def test_handled_faults_do_not_reach_the_faulthandler(tmp_path: pathlib.Path) -> None:
    path = crafted.large(tmp_path / "a.ulg")
    script = """
import faulthandler, os, sys
import rovelog as rl
faulthandler.enable()
log = rl.open(sys.argv[1])
os.rename(sys.argv[1], sys.argv[1] + "x")
os.truncate(sys.argv[1] + "x", 0)
try:
    log["fast"].numpy()
except rl.ReadError:
    print("raised")
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "raised\n", "")


def test_data_that_were_read_before_stay_valid(tmp_path: pathlib.Path) -> None:
    """Rows of the drop-in for pyulog are copies, so they stay valid."""
    from rovelog.compat.pyulog import ULog

    path = tmp_path / "a.ulg"
    shutil.copyfile(crafted.large(tmp_path / "large.ulg"), path)
    log = ULog(str(path))
    data = log.data_list[0].data
    os.truncate(path, 0)
    assert data["x"].sum() == 60_000
