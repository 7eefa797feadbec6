"""The drop-in for pyulog compared with pyulog 1.3.0: all public values of all real logs, and the
tools of pyulog.

INTENDED lists the intended differences with their reasons. A listed difference that no longer
exists fails, too.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import CORPUS, real_file, real_ulogs
from crafted import message, rows, topic, ulog

pyulog = pytest.importorskip("pyulog", reason="SKIPPED: the original is not installed")

import pyulog.info  # noqa: E402, F811
import pyulog.messages  # noqa: E402
import pyulog.params  # noqa: E402
import pyulog.px4  # noqa: E402
import pyulog.px4_events  # noqa: E402
import pyulog.ulog2csv  # noqa: E402

from rovelog.compat import pyulog as ours  # noqa: E402

MORE = "D30: intact rows after damage are kept; pyulog passes over some of them"

INTENDED: dict[str, dict[str, str]] = {
    "px4-ulog-rs__corrupt_unregistered_msg_id": {
        "57 datasets: 276 rows more, and none of pyulog's is missing": MORE,
    },
}

# pyulog does not close a file when it raises an exception.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def read(module: Any, path: pathlib.Path, *args: Any, **named: Any) -> Any:
    """Opens a log without the messages that pyulog prints about damage."""
    with contextlib.redirect_stdout(io.StringIO()):
        return module.ULog(str(path), *args, **named)


def columns(data: Any) -> dict[str, tuple[str, bytes]]:
    """Returns field -> type and bytes, for comparisons bit by bit."""
    return {name: (values.dtype.str, np.ascontiguousarray(values).tobytes()) for name, values in data.data.items()}


def public(log: Any) -> Iterator[tuple[str, Any]]:
    """Returns all public values of a log, except the data."""
    for name in (
        "start_timestamp",
        "last_timestamp",
        "msg_info_dict",
        "msg_info_multiple_dict",
        "initial_parameters",
        "changed_parameters",
        "has_data_appended",
        "has_default_parameters",
        "file_corruption",
    ):
        yield name, getattr(log, name)
    yield "order of initial_parameters", list(log.initial_parameters)
    yield "message_formats", {name: (form.name, form.fields) for name, form in log.message_formats.items()}
    for kind in (0, 1):
        yield f"defaults {kind}", log.get_default_parameters(kind)
    line = lambda text: (text.log_level, text.timestamp, text.message, text.log_level_str())  # noqa: E731
    yield "logged_messages", [line(text) for text in log.logged_messages]
    tagged = log.logged_messages_tagged
    yield "tagged", {tag: [(*line(text), text.tag) for text in texts] for tag, texts in tagged.items()}
    yield "dropouts", [(dropout.duration, dropout.timestamp) for dropout in log.dropouts]
    yield "version", (log.get_version_info(), log.get_version_info_str())
    yield "os version", log.get_version_info_str("ver_os_release") if "ver_os_release" in log.msg_info_dict else None


def describe(data: Any) -> tuple[Any, ...]:
    fields = [(field.field_name, field.type_str) for field in data.field_data]
    return data.name, data.multi_id, data.msg_id, data.timestamp_idx, fields, list(data.data)


def differences(theirs: Any, mine: Any) -> Iterator[str]:
    for (name, want), (_, got) in zip(public(theirs), public(mine), strict=True):
        if want != got or repr(want) != repr(got):
            yield f"{name}: {str(got)[:60]}, pyulog {str(want)[:60]}"
    if [describe(data) for data in theirs.data_list] != [describe(data) for data in mine.data_list]:
        yield "datasets or their fields differ"
        return
    more = []
    for want, got in zip(theirs.data_list, mine.data_list, strict=True):
        ours_columns, their_columns = columns(got), columns(want)
        if ours_columns != their_columns:
            rows, theirs_rows = rows_of(got), rows_of(want)
            ours_left = iter(rows)
            if len(rows) > len(theirs_rows) and all(row in ours_left for row in theirs_rows):
                more.append(len(rows) - len(theirs_rows))
            else:
                yield f"{want.name}/{want.multi_id}: values differ"
        for name in (want.field_data[-1].field_name, "timestamp"):
            if name in want.data and not more and repr(want.list_value_changes(name)) != repr(got.list_value_changes(name)):
                yield f"{want.name}/{want.multi_id}: changes of {name} differ"
    if more:
        yield f"{len(more)} datasets: {sum(more)} rows more, and none of pyulog's is missing"


def rows_of(data: Any) -> list[tuple[bytes, ...]]:
    return list(zip(*([value.tobytes() for value in values] for values in data.data.values()), strict=True))


@pytest.mark.parametrize("path", real_ulogs())
def test_every_public_value(path: pathlib.Path) -> None:
    found = set(differences(read(pyulog, path), read(ours, path)))
    assert found == set(INTENDED.get(path.stem, {}))


@pytest.mark.parametrize("path", real_ulogs())
def test_with_a_filter(path: pathlib.Path) -> None:
    names = ["vehicle_attitude", "sensor_combined", "not_there"]
    theirs, mine = read(pyulog, path, names), read(ours, path, names)
    if path.stem in INTENDED:
        assert [data.name for data in mine.data_list] == [data.name for data in theirs.data_list]
        return
    assert not list(differences(theirs, mine))


@pytest.mark.parametrize("path", real_ulogs())
def test_with_the_header_only(path: pathlib.Path) -> None:
    theirs, mine = read(pyulog, path, parse_header_only=True), read(ours, path, parse_header_only=True)
    assert not list(differences(theirs, mine))


@pytest.mark.parametrize("path", real_ulogs())
def test_px4(path: pathlib.Path) -> None:
    logs = read(pyulog, path), read(ours, path)
    theirs, mine = pyulog.px4.PX4ULog(logs[0]), ours.px4.PX4ULog(logs[1])
    assert mine.get_mav_type() == theirs.get_mav_type()
    assert mine.get_estimator() == theirs.get_estimator()
    for channel in range(-1, 18):
        assert mine.get_configured_rc_input_names(channel) == theirs.get_configured_rc_input_names(channel)
    with np.errstate(all="ignore"):
        theirs.add_roll_pitch_yaw()
        mine.add_roll_pitch_yaw()
    if path.stem not in INTENDED:
        for want, got in zip(logs[0].data_list, logs[1].data_list, strict=True):
            assert columns(want) == columns(got)


def run(tool: Any, ulog: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the output of a tool of pyulog with either `ULog`."""
    monkeypatch.setattr(tool, "ULog", ulog)
    monkeypatch.setattr(sys, "argv", [tool.__name__, *arguments])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        tool.main()
    return out.getvalue()


TOOLS = {
    "ulog_info": (pyulog.info, ["-i", "LOG"]),
    "ulog_info -v": (pyulog.info, ["-i", "-v", "LOG"]),
    "ulog_info -m": (pyulog.info, ["-i", "-m", "perf_top_preflight", "-n", "LOG"]),
    "ulog_params": (pyulog.params, ["--ignore", "LOG"]),
    "ulog_params -i": (pyulog.params, ["--ignore", "-i", "LOG"]),
    "ulog_params -t": (pyulog.params, ["--ignore", "-t", "LOG"]),
    "ulog_params octave": (pyulog.params, ["--ignore", "-f", "octave", "LOG"]),
    "ulog_params qgc": (pyulog.params, ["--ignore", "-f", "qgc", "LOG"]),
    "ulog_messages": (pyulog.messages, ["-i", "LOG"]),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("path", real_ulogs())
def test_tools_of_pyulog(path: pathlib.Path, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in INTENDED:
        pytest.skip("compared value by value")
    module, arguments = TOOLS[tool]
    # Definitions that are not in the log would be downloaded.
    monkeypatch.setattr(pyulog.px4_events.PX4Events, "_get_default_json_definitions", staticmethod(lambda _: None))
    arguments = [str(path) if word == "LOG" else word for word in arguments]
    original = pyulog.core.ULog
    theirs = run(module, original, arguments, monkeypatch)
    # pyulog prints damage while it reads. The drop-in reports it only in `file_corruption`.
    said = [line for line in theirs.splitlines() if not line.startswith(("Warning: no subscription", "File corruption"))]
    assert run(module, ours.ULog, arguments, monkeypatch).splitlines() == said


def test_csv_of_pyulog(real: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for name, ulog in (("theirs", pyulog.core.ULog), ("ours", ours.ULog)):
        folder = tmp_path / name
        run(pyulog.ulog2csv, ulog, ["-i", "-o", str(folder), str(real)], monkeypatch)
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert files[0] == files[1] and files[0]


def test_data_may_be_changed_in_place(real: pathlib.Path) -> None:
    log = ours.ULog(str(real))
    attitude = log.get_dataset("vehicle_attitude")
    attitude.data["timestamp"] -= attitude.data["timestamp"][0]
    attitude.data["new"] = attitude.data["timestamp"] / 1e6
    assert log.get_dataset("vehicle_attitude").data["timestamp"][0] == 0
    assert log != ours.ULog(str(real)) and ours.ULog(str(real)) == ours.ULog(str(real))


def test_datasets_are_read_as_scripts_need_them(real: pathlib.Path) -> None:
    def read_rows(log: Any) -> int:
        return sum(data._series.rows is not None for data in log.data_list)

    log = ours.ULog(str(real))
    first = log.data_list[0]
    assert len(log.get_dataset(first.name, first.multi_id).data) > 0 and read_rows(log) == 1
    assert len(log.get_dataset("vehicle_attitude").data) > 0 and read_rows(log) == 2
    log = ours.ULog(str(real))
    assert [len(data.data) > 0 for data in log.data_list if data.name == "vehicle_attitude"] and read_rows(log) == 1
    log = ours.ULog(str(real))
    assert len(log.data_list[0].data) > 0 and read_rows(log) == len(log.data_list) > 3


@pytest.mark.parametrize("path", real_ulogs())
def test_written_logs_are_equal_in_both_packages(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mine = read(ours, path)
    if any("timestamp" not in data.data for data in mine.data_list):
        pytest.skip("no times to sort by")
    with open(tmp_path / "ours.ulg", "wb") as out:
        mine.write_ulog(out)
    again, theirs = read(ours, tmp_path / "ours.ulg"), read(pyulog, tmp_path / "ours.ulg")
    assert not [found for found in differences(theirs, again) if "file_corruption" not in found]
    for data in mine.data_list:
        order = np.argsort(data.data["timestamp"], kind="stable")
        want = {name: values[order].tobytes() for name, values in data.data.items()}
        got = again.get_dataset(data.name, data.multi_id).data
        assert want == {name: values.tobytes() for name, values in got.items()}


def test_a_log_may_be_written_onto_itself(tmp_path: pathlib.Path) -> None:
    # A large log is mapped, and the new file is written while bytes of the old one are read.
    path = tmp_path / "log.ulg"
    path.write_bytes(real_file("ulog/sample_px4_events.ulg").read_bytes())
    assert path.stat().st_size > 1 << 20
    mine = ours.ULog(str(path))
    mine.write_ulog(str(path))
    assert not [found for found in differences(read(pyulog, path), read(ours, path)) if "file_corruption" not in found]
    assert {data.name: len(data.data["timestamp"]) for data in ours.ULog(str(path)).data_list} == {
        data.name: len(data.data["timestamp"]) for data in mine.data_list
    }
    assert [found.name for found in tmp_path.iterdir()] == ["log.ulg"]


def test_a_file_object_is_read_and_closed(real: pathlib.Path) -> None:
    for module in (pyulog, ours):
        file = io.BytesIO(real.read_bytes())
        assert module.ULog(file).data_list
        assert file.closed


def test_errors_are_those_of_pyulog(tmp_path: pathlib.Path) -> None:
    (tmp_path / "short.ulg").write_bytes(b"ULog\x01")
    (tmp_path / "other.ulg").write_bytes(bytes(64))
    for module in (pyulog, ours):
        for name in ("short.ulg", "other.ulg"):
            with pytest.raises(module.ULogException):
                module.ULog(str(tmp_path / name))
        with pytest.raises(FileNotFoundError):
            module.ULog(str(tmp_path / "no.ulg"))
        with pytest.raises(module.ULogIncompatibleFlagException):
            module.ULog(str(CORPUS / "ulog/unknown-incompat-bit-1-of-byte-0.ulg"))
        log = module.ULog(str(CORPUS / "ulog/one-topic+multi-id.ulg"))
        with pytest.raises(IndexError):
            log.get_dataset("nothing")
    for error in (KeyError, ValueError):
        # pyulog documents these exceptions in addition to IndexError. Only the exception of the
        # drop-in is all three.
        with pytest.raises(error):
            log.get_dataset("nothing")


def info(kind: str, key: str, value: bytes) -> bytes:
    return message("I", bytes([len(f"{kind} {key}")]) + f"{kind} {key}".encode() + value)


DAMAGED = {
    "type": topic(2, "damaged", "&loat x;", rows("f", (1.0,))),
    "nested type": topic(2, "damaged", "absent x;", rows("f", (1.0,))),
    "array length": topic(2, "damaged", "float[x] x;", rows("f", (1.0,))),
    "repeated field": topic(2, "damaged", "float x;uint16_t x;", rows("fH", (1.0, 2))),
    "long value": (info("int32_t", "damaged", b"12345"), b""),
    "short value": (info("int32_t", "damaged", b"123"), b""),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_definitions_are_skipped(kind: str, tmp_path: pathlib.Path) -> None:
    before, after = topic(1, "before", "float x;", rows("f", (1.0,), (2.0,))), topic(3, "after", "float y;", rows("f", (3.0,)))
    path = ulog(tmp_path / "log.ulg", before, (info("int32_t", "intact", b"1234"), b""), DAMAGED[kind], after)
    theirs, mine = read(pyulog, path), read(ours, path)
    assert not list(differences(theirs, mine))
    assert mine.file_corruption and {"before", "after"} == {data.name for data in mine.data_list}
    assert list(mine.msg_info_dict) == ["intact"]
    assert read(ours, path, parse_header_only=True).file_corruption == kind.endswith("value")


def test_a_damaged_info_in_the_data_section_is_skipped(tmp_path: pathlib.Path) -> None:
    """pyulog reads nothing after such a message."""
    first, last = topic(1, "first", "float x;", rows("f", (1.0,))), topic(2, "last", "float x;", rows("f", (2.0,)))
    damaged = b"", info("int32_t", "damaged", b"123")
    path = ulog(tmp_path / "log.ulg", first, damaged, last)
    assert [data.name for data in read(pyulog, path).data_list] == ["first"]
    mine = read(ours, path)
    assert [data.name for data in mine.data_list] == ["first", "last"] and mine.file_corruption


def test_fields_with_the_same_name() -> None:
    path = CORPUS / "ulog/field-name-twice.ulg"
    theirs, mine = read(pyulog, path), read(ours, path)
    assert not list(differences(theirs, mine)) and mine.file_corruption
    assert mine._missing_message_ids == theirs._missing_message_ids == {0}


def test_message_ids_without_a_subscription() -> None:
    path = CORPUS / "ulog/damaged+subscription-zeroed.ulg"
    assert read(ours, path)._missing_message_ids == read(pyulog, path)._missing_message_ids == {1}
    assert ours.ULog(None)._missing_message_ids == set()


def test_core_exports_the_exceptions() -> None:
    from rovelog.compat.pyulog.core import ULogException, ULogIncompatibleFlagException

    assert ULogException is ours.ULogException and ULogIncompatibleFlagException is ours.ULogIncompatibleFlagException


EDITS = {
    "too large": ("n", np.array([300, 1]), struct.error),
    "negative": ("n", np.array([-1, 1]), struct.error),
    "fraction": ("n", np.array([300.7, 1.0]), struct.error),
    "not a number": ("n", np.array([np.nan, 1.0]), struct.error),
    "too short": ("n", np.array([1]), IndexError),
    "too large for a float": ("x", np.array([1e300, 1.0]), OverflowError),
    "text": ("x", np.array(["a", "b"]), struct.error),
}


@pytest.mark.parametrize("edit", EDITS)
def test_values_that_do_not_fit_are_not_written(edit: str, tmp_path: pathlib.Path) -> None:
    path = ulog(tmp_path / "log.ulg", topic(1, "t", "uint8_t n;float x;", rows("Bf", (1, 1.0), (2, 2.0))))
    field, values, error = EDITS[edit]
    for module in (pyulog, ours):
        log = read(module, path)
        log.data_list[0].data[field] = values
        with pytest.raises(error):
            log.write_ulog(io.BytesIO())


def test_arrays_that_are_too_long_are_not_written(tmp_path: pathlib.Path) -> None:
    path = ulog(tmp_path / "log.ulg", topic(1, "t", "float x;", rows("f", (1.0,), (2.0,))))
    for module in (pyulog, ours):
        log = read(module, path)
        log.data_list[0].data["x"] = np.array([1.0, 2.0, 3.0])
        with pytest.raises(IndexError) if module is ours else contextlib.nullcontext():
            log.write_ulog(io.BytesIO())


def test_values_of_other_types_are_written(tmp_path: pathlib.Path) -> None:
    path = ulog(tmp_path / "log.ulg", topic(1, "t", "uint8_t n;float x;bool b;char c;", rows("Bfbb", (1, 1.0, 1, 65), (2, 2.0, 0, 66))))
    written = []
    for module in (pyulog, ours):
        log, out = read(module, path), io.BytesIO()
        edited = {"n": [3, 255], "x": np.array([7, 1 << 20]), "b": np.array([0.0, 2.0]), "c": np.array([97, 98])}
        log.data_list[0].data.update(edited)
        log.write_ulog(out)
        written.append(out.getvalue())
    assert written[0] == written[1]


def test_parameters_of_numpy_types(tmp_path: pathlib.Path) -> None:
    path = CORPUS / "ulog/one-topic.ulg"
    for value, kind in ((np.int32(7), int), (np.uint8(7), int), (np.float32(7.5), float), (np.float64(7.5), float), (7, int)):
        log = read(ours, path)
        log.initial_parameters["X"] = value
        log.write_ulog(str(tmp_path / "out.ulg"))
        found = read(ours, tmp_path / "out.ulg").initial_parameters["X"]
        assert found == value and type(found) is kind
        assert read(pyulog, tmp_path / "out.ulg").initial_parameters["X"] == value
    for value in ("7", None, np.bool_(True), 1j):
        for module in (pyulog, ours):
            log = read(module, path)
            log.initial_parameters["X"] = value
            with pytest.raises(TypeError):
                log.write_ulog(io.BytesIO())


def test_texts_that_are_not_utf_8() -> None:
    path = CORPUS / "ulog/texts-latin-1.ulg"
    theirs, mine = read(pyulog, path), read(ours, path)
    assert [text.message for text in mine.logged_messages] == [text.message for text in theirs.logged_messages]
    for module in (pyulog, ours):
        with pytest.raises(UnicodeDecodeError):
            read(module, path, None, False)
