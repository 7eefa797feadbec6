"""The tutorial, the guides and the examples work as documented."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT, real_file

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
        # All blocks share one scope, as in a notebook.
        exec(compile(block, "docs/guide/python.md", "exec"), names)


def output(command: str, folder: pathlib.Path) -> list[str]:
    """Returns the lines that a command in a document prints."""
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("page", ["ask.md", "command-line.md"])
def test_guides_show_what_the_program_prints(page: str, real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # A recording can consist of several files.
    for path in (real, real.parent / "sample_px4_events.ulg", *real_file("rld/v4_split.rld").parent.glob("v4_split*.rld")):
        shutil.copy(path, tmp_path)
    text = (ROOT / "docs/guide" / page).read_text(encoding="utf-8")
    shown = [block for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL) if block.startswith("$ ")]
    assert shown
    for block in shown:
        for run in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            # A command continues after a backslash at the end of a line.
            command, _, lines = run.replace("\\\n", "").partition("\n")
            assert output(command, tmp_path) == lines.splitlines(), command


def test_the_readme_shows_what_the_program_prints(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copy(real, tmp_path / "flight.ulg")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^    \$ (rovelog .*\n(?:    .*\n|\n)+)", text, re.MULTILINE)
    command, *lines = (line.removeprefix("    ") for line in shown.splitlines())
    printed = iter(output(command, tmp_path))
    # Three dots stand for omitted text.
    for line in filter(None, lines):
        start = line.partition("...")[0]
        assert any(found.startswith(start) for found in printed), line


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
