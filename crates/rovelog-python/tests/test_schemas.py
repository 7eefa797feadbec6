"""The output of `rovelog -f json` conforms to docs/reference/schemas."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from conftest import REAL, ROOT

SCHEMA = json.loads((ROOT / "docs/reference/schemas/rovelog.schema.json").read_text())
ROVELOG = pathlib.Path(sys.executable).with_name("rovelog")


def logs(fmt: str) -> list[pathlib.Path]:
    corpus = sorted((ROOT / "corpus" / fmt).iterdir())
    real = REAL / ("rosbag12" if fmt == "rosbag" else fmt)
    return corpus + sorted(path for path in real.glob("*.*") if path.suffix not in (".md", ".json"))


def document(command: str, *files: pathlib.Path) -> Any:
    done = subprocess.run([ROVELOG, command, "-f", "json", *files], capture_output=True, check=False)
    return json.loads(done.stdout) if done.stdout else None


def validator(command: str) -> jsonschema.Draft202012Validator:
    # The schema of one kind of document gives more precise errors than the union of all kinds.
    only = {**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{command}"}]}
    return jsonschema.Draft202012Validator(only)


def test_the_schema_itself() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        validator("du").validate({"schema": "rovelog.du/2", "file": "a", "size": "1", "usage": []})


@pytest.mark.parametrize("fmt", ["ulog", "rld", "rosbag", "vel"])
@pytest.mark.parametrize("command", ["info", "check"])
def test_all_logs_at_once(command: str, fmt: str) -> None:
    documents = document(command, *logs(fmt))
    assert len(documents) > 50
    for found in documents:
        validator(command).validate(found)


@pytest.mark.parametrize("fmt", ["ulog", "rld", "rosbag", "vel"])
@pytest.mark.parametrize("command", ["topics", "du", "dump", "findings"])
def test_some_logs(command: str, fmt: str) -> None:
    found = [document(command, path) for path in logs(fmt)[::9]]
    documents = [one for one in found if one is not None]
    assert len(documents) > 5
    for one in documents:
        validator(command).validate(one)


def test_conditions() -> None:
    logs = [ROOT / "corpus/rld/v4.rld", ROOT / "corpus/rld/analog-only.rld"]
    done = subprocess.run([ROVELOG, "events", "-f", "json", *logs, "V1 > -1e9", "V1 changes"], capture_output=True, check=False)
    documents = json.loads(done.stdout)
    assert len(documents) == 2 and documents[0]["conditions"][0]["events"]
    for one in documents:
        validator("conditions").validate(one)
