"""Each corpus case has the values of its recipe, which the Rust tests also check."""

from __future__ import annotations

import base64
import json
import math
import pathlib
from typing import Any

import numpy as np
import pytest
from conftest import CASES, case_log

import rovelog as rl


def same(want: Any, got: Any, kind: str, fields: list[rl.Field] | None) -> bool:
    """Returns True if a value of the recipe is equal to the value in Python."""
    if kind.endswith("]"):
        inner = kind[: kind.rindex("[")]
        return len(want) == len(got) and all(same(w, g, inner, fields) for w, g in zip(want, got, strict=True))
    if fields is not None:
        return want.keys() == got.keys() and all(same(want[f.name], got[f.name], f.type, f.fields) for f in fields)
    if kind in ("int64", "uint64"):
        return int(want) == got
    if kind.startswith("float"):
        value = float(np.float32(want)) if kind == "float32" else float(want)
        return value == got or (math.isnan(value) and math.isnan(got))
    if isinstance(got, bytes):
        return base64.b64decode(want) == got
    return bool(want == got)


def depth(fields: list[rl.Field] | None) -> int:
    """Returns the number of nested levels of fields."""
    return 1 + max((depth(field.fields) for field in fields), default=0) if fields else 0


@pytest.mark.filterwarnings("ignore:.*not UTF-8:UnicodeWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_case(case: pathlib.Path, tmp_path: pathlib.Path) -> None:
    truth = json.loads(case.read_text(encoding="utf-8"))
    path = case_log(case)
    types = None
    if "declarations" in truth.get("vel", {}):
        types = tmp_path / "types.txt"
        types.write_text(truth["vel"]["declarations"], encoding="utf-8")
    if truth["open"] == "refused":
        with pytest.raises(rl.RovelogError) as caught:
            rl.open(path)
        if path.suffix == ".ulg":
            assert all(word in str(caught.value) for word in truth["error"]["contains"])
        return
    log = rl.open(path, types=types)
    assert log.format == truth["format"]["id"]
    assert log.state == truth["state"]
    assert log.info.clock in (truth["clock"], None)
    for end in ("start_ns", "end_ns"):
        want = truth[end]
        assert getattr(log, end) == (None if want is None else int(want))
    if truth["utc"] is not None:
        assert log.info.utc_offset_ns == int(truth["utc"]["offset_ns"])
    lost = [(found.name, found.start, found.end) for found in log.problems if found.severity == "data_lost"]
    assert lost == [(want["code"], int(want["start"]), int(want["end"])) for want in truth["lost"]]
    notes = [(found.name, found.start) for found in log.problems if found.severity != "data_lost"]
    if log.format == "ulog":
        assert notes == [(want["code"], int(want["offset"])) for want in truth["notes"]]
    assert [topic.name for topic in log.topics.values()] == [want["name"] for want in truth["topics"]]
    texts = [text.text for text in log.text]
    if log.format == "rld":
        # The comment is the only text in these logs.
        assert texts == [truth["rld"]["comment"]] * bool(truth["rld"]["comment"])
    else:
        assert len(texts) == len(truth.get("texts") or [])
    if log.format == "ulog":
        check_rows(log, truth["records"])
    else:
        check_places(log, truth["records"])


def check_places(log: rl.Log, records: list[dict[str, Any]]) -> None:
    """Records have the expected offsets. The notation of values in the expected results depends on
    the format.
    """
    wanted = [(want["topic"], int(want["offset"]), int(want["seq"])) for want in records]
    assert sorted((m.topic, m.offset, m.seq) for m in log._reader.messages(None, (None, None), raw=True)) == sorted(wanted)


def check_rows(log: rl.Log, records: list[dict[str, Any]]) -> None:
    """Records and columns have all values of the recipe."""
    by_offset = {message.offset: message for message in log.messages()}
    assert len(by_offset) == len(records) == log.records
    rows: dict[str, list[dict[str, Any]]] = {}
    for want in records:
        message = by_offset[int(want["offset"])]
        topic = log[want["topic"]]
        assert message.topic == want["topic"]
        # Records without a time keep their position in the order of records.
        assert message.t_ns == (None if want["t_ns"] is None else int(want["t_ns"]))
        assert message.seq == int(want["seq"])
        got = message.fields()
        for field in topic.fields:
            assert same(want["data"][field.name], got[field.name], field.type, field.fields), field.name
        rows.setdefault(want["topic"], []).append(want)
    for name, wanted in rows.items():
        topic = log[name]
        if depth(topic.fields) > 60:
            # pyarrow rejects types with more than 64 levels.
            continue
        columns = topic.to_arrow().to_pylist()
        assert len(columns) == len(wanted)
        for want, got in zip(wanted, columns, strict=True):
            for field in topic.fields:
                if field.name != "time":
                    assert same(want["data"][field.name], got[field.name], field.type, field.fields), field.name
