"""Paths of the logs, and helpers that several tests use.

The environment variable ROVELOG_REAL names the folder with real logs. Tests that need them are
skipped without it, and the report says so.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator

import pytest

import rovelog as rl

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORPUS = pathlib.Path(os.environ.get("ROVELOG_CORPUS", ROOT / "corpus"))
REAL = pathlib.Path(os.environ.get("ROVELOG_REAL", ROOT / "../shared/real"))
CASES = sorted(path for path in CORPUS.glob("expected/*/*.json"))
NO_LOGS = f"SKIPPED: no real logs in {REAL} (set ROVELOG_REAL)"


def case_log(case: pathlib.Path) -> pathlib.Path:
    """Returns the path of a corpus case, with any extension."""
    folder = CORPUS / case.parent.name
    return next(path for path in folder.iterdir() if path.name.rsplit(".", 1)[0] == case.stem)


def over(paths: Iterable[pathlib.Path]) -> list[object]:
    """Returns the parameters for a test over these real logs. The test is skipped without them."""
    found = [pytest.param(path, id=path.stem) for path in paths]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=NO_LOGS))]


def real_ulogs() -> list[object]:
    """Returns the parameters for a test over all real ULogs."""
    return over(sorted(REAL.glob("ulog/*.ulg")))


def is_altered(path: pathlib.Path) -> bool:
    """Returns True if a real log differs from the file that its expected result describes.

    Copying the folder may have replaced paths in the bags, which damages them.
    """
    expected = path.parent / "expected" / f"{path.name}.json"
    if not expected.exists():
        return False
    sha256 = json.loads(expected.read_text()).get("sha256")
    return sha256 is not None and hashlib.sha256(path.read_bytes()).hexdigest() != sha256


def real_file(name: str) -> pathlib.Path:
    """Returns the path of a real log or of a file that belongs to it."""
    path = REAL / name
    if not path.exists():
        pytest.skip(NO_LOGS)
    if is_altered(path):
        pytest.skip(f"{name} differs from the file that its expected result describes")
    return path


@pytest.fixture
def flight() -> pathlib.Path:
    """A small valid log with two instances of a topic, console messages, a dropout and
    parameters.
    """
    return CORPUS / "ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg"


@pytest.fixture
def real() -> pathlib.Path:
    """A real flight log with UTC."""
    return real_file("ulog/sample_log_small.ulg")


@pytest.fixture
def real_log(real: pathlib.Path) -> Iterator[rl.Log]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.DataLossWarning)
        with rl.open(real) as log:
            yield log


def command(*args: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Runs the command line."""
    return subprocess.run([sys.executable, "-m", "rovelog", *args], capture_output=True, text=True)


@contextlib.contextmanager
def another_thread_gets_on() -> Iterator[None]:
    """Checks that the GIL is free during the work: another thread can make progress."""
    ended = threading.Event()
    steps = itertools.count()

    def count() -> None:
        while not ended.is_set():
            next(steps)
            time.sleep(0)

    other = threading.Thread(target=count)
    other.start()
    try:
        yield
    finally:
        ended.set()
        other.join()
    assert next(steps) > 100


BUSY = """
import sys, rovelog as rl
log = rl.open(sys.argv[1])
try:
    print("ready", flush=True)
    while True:
        {work}
except KeyboardInterrupt:
    print("stopped")
"""


def stops_at_ctrl_c(work: str, *args: pathlib.Path) -> None:
    """Checks that Ctrl-C ends `work`, which is repeated with the `log` that is the first
    argument.
    """
    script = [sys.executable, "-c", BUSY.format(work=work), *map(str, args)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "stopped\n"
