"""Where logs are. Real ones are in the folder that ROVELOG_REAL names; tests that need them say so when they skip."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Iterator

import pytest

import rovelog as rl

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORPUS = pathlib.Path(os.environ.get("ROVELOG_CORPUS", ROOT / "corpus"))
REAL = pathlib.Path(os.environ.get("ROVELOG_REAL", ROOT / "../shared/real"))
CASES = sorted(path for path in CORPUS.glob("expected/*/*.json"))
REAL_ULOGS = sorted(REAL.glob("ulog/*.ulg"))


def case_log(case: pathlib.Path) -> pathlib.Path:
    """The log of a case, whatever its extension."""
    folder = CORPUS / case.parent.name
    return next(path for path in folder.iterdir() if path.name.rsplit(".", 1)[0] == case.stem)


def real_ulogs() -> list[object]:
    """Parameters for a test over all real ULogs; one that skips where there are none."""
    if REAL_ULOGS:
        return [pytest.param(path, id=path.stem) for path in REAL_ULOGS]
    return [pytest.param(None, marks=pytest.mark.skip(reason=f"SKIPPED: no real logs in {REAL} (set ROVELOG_REAL)"))]


@pytest.fixture
def flight() -> pathlib.Path:
    """A small sound log with two instances, texts, a dropout, parameters."""
    return CORPUS / "ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg"


@pytest.fixture
def real() -> pathlib.Path:
    """A real flight, with UTC."""
    path = REAL / "ulog/sample_log_small.ulg"
    if not path.exists():
        pytest.skip(f"SKIPPED: no real logs in {REAL} (set ROVELOG_REAL)")
    return path


@pytest.fixture
def real_log(real: pathlib.Path) -> Iterator[rl.Log]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.DataLossWarning)
        with rl.open(real) as log:
            yield log
