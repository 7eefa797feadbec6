"""Scripts for pyulog, rocketlogger and rosbag give the same result after only their imports are
changed.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT, real_file

SCRIPTS = ROOT / "crates/rovelog-python/tests/scripts"
IMPORT = re.compile(r"^(from|import) (pyulog|rocketlogger|rosbag)\b(?! *as)", re.MULTILINE)
ROS = "/usr/bin/python3"


def changed(text: str) -> str:
    """Returns the script with changed imports."""

    def replaced(found: re.Match[str]) -> str:
        if found[1] == "from":
            return f"from rovelog.compat.{found[2]}"
        return f"from rovelog.compat import {found[2]}"

    return IMPORT.sub(replaced, text)


def said(python: str, script: pathlib.Path, *args: pathlib.Path) -> str:
    # The interpreter of the distribution needs its own environment.
    env = {} if python == ROS else None
    done = subprocess.run([python, str(script), *map(str, args)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same(folder: pathlib.Path, name: str, *args: pathlib.Path | str, python: str = sys.executable) -> str:
    """Runs a script with both packages. `OUT` is a file that the script writes. Returns both
    outputs.
    """
    text = (SCRIPTS / name).read_text()
    assert changed(text).count("\n") == text.count("\n") and changed(text) != text
    outputs = []
    for which, source, runner in (("original", text, python), ("drop-in", changed(text), sys.executable)):
        place = folder / which
        place.mkdir()
        (place / "script.py").write_text(source)
        words = [place / "out" if word == "OUT" else pathlib.Path(word) for word in args]
        outputs.append(said(runner, place / "script.py", *words))
    assert outputs[1] == outputs[0]
    return outputs[0]


def needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"SKIPPED: {module} is not installed")


@pytest.mark.parametrize("log", ["sample_log_small", "sample_px4_events", "sample_logging_tagged_and_default_params"])
def test_a_report_loads_a_flight(log: str, tmp_path: pathlib.Path) -> None:
    needs("pyulog")
    assert "vehicle_attitude" in same(tmp_path, "load_flight.py", real_file(f"ulog/{log}.ulg"))


def test_an_analysis_of_the_estimator(tmp_path: pathlib.Path) -> None:
    needs("pyulog")
    assert "hgt_test_ratio_max" in same(tmp_path, "estimator_report.py", real_file("ulog/sample_log_small.ulg"), "OUT")


def test_a_calibration(tmp_path: pathlib.Path) -> None:
    needs("rocketlogger")
    assert "corrupt data: file size" in same(tmp_path, "calibrate.py", real_file("rld/test_full.rld").parent, "OUT")


@pytest.mark.parametrize("bag", ["real_joints_2011", "real_sensors_2021", "real_latched_2017"])
def test_a_loop_over_a_bag(bag: str, tmp_path: pathlib.Path) -> None:
    if not pathlib.Path(ROS).exists() or subprocess.run([ROS, "-c", "import rosbag"], capture_output=True, env={}).returncode:
        pytest.skip("SKIPPED: python3-rosbag is not installed")
    assert "messages:" in same(tmp_path, "filter_bag.py", real_file(f"rosbag20/{bag}.bag"), "OUT", python=ROS)


def test_a_notebook(tmp_path: pathlib.Path) -> None:
    needs("pyulog", "rocketlogger", "pandas")
    said = same(tmp_path, "notebook.py", real_file("ulog/sample_log_small.ulg"), real_file("rld/test_full.rld"))
    assert "sensor_combined_0" in said
