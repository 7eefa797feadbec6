"""The tutorial and the examples run."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "crates/rovelog-python/examples"


def test_the_tutorial_runs(real: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/guide/python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 8
    logs = {
        "flight.ulg": real.name,
        "power.rld": "../rld/test_full.rld",
        "drive.vel": "../vel/vlp16.vel",
        "old.bag": "../rosbag12/indexed.bag",
    }
    for name, log in logs.items():
        shutil.copy(real.parent / log, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        # One scope for all blocks, as in a notebook.
        exec(compile(block, "docs/guide/python.md", "exec"), names)


def example(name: str, *args: str) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *args], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_log(real: pathlib.Path) -> None:
    said = example("one_log.py", str(real), "vehicle_attitude")
    assert "14604 records" in said and "q: float32[4]" in said


def test_a_folder_of_logs(real: pathlib.Path) -> None:
    assert real.stem[:10] in example("folder_of_logs.py", str(real.parent))


def test_a_power_trace(real: pathlib.Path) -> None:
    assert "energy 1.06" in example("power_trace.py", str(real.parent.parent / "rld/test_full.rld"))


def test_a_point_cloud(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "a.ply"
    assert "points of revolution 0" in example("point_cloud.py", str(real.parent.parent / "vel/vlp16.vel"), str(out))
    assert out.read_bytes().startswith(b"ply\n")


def test_an_old_bag(real: pathlib.Path) -> None:
    assert "sensor_msgs/LaserScan" in example("old_bag.py", str(real.parent.parent / "rosbag12/indexed.bag"))
