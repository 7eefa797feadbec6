"""The importer for the Rerun viewer, without the viewer. docs/tools/rerun.md runs it with Rerun."""

from __future__ import annotations

import pathlib
import sys

import pytest
from conftest import CORPUS

from rovelog import rerun


def test_files_that_are_no_logs_are_for_other_importers(tmp_path: pathlib.Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no log")
    for path in (text, tmp_path, tmp_path / "missing.ulg"):
        assert rerun.main([str(path), "--application-id", "a", "--time_nanos", "log=1"]) == rerun.UNSUPPORTED_FILE


def test_without_rerun_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # None in `sys.modules` makes the import fail, even if the package is installed.
    monkeypatch.setitem(sys.modules, "rerun", None)
    assert rerun.main([str(next((CORPUS / "ulog").glob("*.ulg")))]) == 1
    said = capsys.readouterr()
    assert "pip install 'rovelog[rerun]', or pip install rerun-sdk" in said.err and not said.out
