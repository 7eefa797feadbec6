"""The modules of the drop-in for pyulog give the same texts, files and databases as those of
pyulog.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import multiprocessing
import pathlib
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from conftest import real_file, real_ulogs

pyulog = pytest.importorskip("pyulog", reason="SKIPPED: the original is not installed")

import pyulog.db  # noqa: E402, F811
import pyulog.extract_message  # noqa: E402
import pyulog.libevents_parse.parser  # noqa: E402
import pyulog.migrate_db  # noqa: E402
import pyulog.px4_events  # noqa: E402

from rovelog.compat.pyulog import ULog, db, extract_message, migrate_db, px4_events  # noqa: E402
from rovelog.compat.pyulog.libevents_parse import parser  # noqa: E402

# The original skips rows after damage, and does not close a file when it raises an exception.
DAMAGED = "px4-ulog-rs__corrupt_unregistered_msg_id"
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

RUNS = [
    ("info", "-i"),
    ("info", "-i", "-v"),
    ("info", "-i", "-m", "perf_top_preflight", "-n"),
    ("info", "-i", "-m", "metadata_events"),
    ("info", "-i", "-m", "nothing"),
    ("messages", "-i"),
    ("params", "--ignore"),
    ("params", "--ignore", "-i"),
    ("params", "--ignore", "-t"),
    ("params", "--ignore", "-t", "-i", "-l", ";"),
    ("params", "--ignore", "-f", "octave"),
    ("params", "--ignore", "-f", "octave", "-i"),
    ("params", "--ignore", "-f", "qgc"),
    ("extract_gps_dump", "-x"),
]


def run(package: str, tool: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """Returns the exit status and the output of a tool."""
    module = importlib.import_module(f"{package}.{tool}")
    monkeypatch.setattr(sys, "argv", [tool, *arguments])
    out, code = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        try:
            module.main()
        except SystemExit as end:
            code = end.code
    lines = out.getvalue().splitlines()
    # The original prints damage while it reads.
    said = [line for line in lines if not line.startswith(("Warning: no subscription", "File corruption"))]
    return code, "\n".join(said)


@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
@pytest.mark.parametrize("path", real_ulogs())
def test_the_tools_print_the_same(path: pathlib.Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == DAMAGED:
        pytest.skip("its rows are compared value by value")
    tool, *options = arguments
    for module in (pyulog.px4_events, px4_events):
        monkeypatch.setattr(module.PX4Events, "_get_default_json_definitions", staticmethod(lambda _: None))
    theirs = run("pyulog", tool, [*options, str(path)], monkeypatch)
    assert run("rovelog.compat.pyulog", tool, [*options, str(path)], monkeypatch) == theirs


def files(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("options", [[], ["-m", "vehicle_attitude,sensor_combined", "-d", ";", "-ts", "22", "-te", "23"]])
def test_csv_is_the_same(
    real: pathlib.Path, tmp_path: pathlib.Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for package in ("pyulog", "rovelog.compat.pyulog"):
        folder = tmp_path / package
        run(package, "ulog2csv", ["-i", "-o", str(folder), *options, str(real)], monkeypatch)
        written.append(files(folder))
    assert written[0] == written[1] and written[0]


@pytest.mark.parametrize("options", [[], ["--topic", "vehicle_global_position"]])
def test_kml_is_the_same(options: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("simplekml", reason="SKIPPED: simplekml is not installed")
    path = str(real_file("ulog/px4-ulog-rs__esc_status_log.ulg"))
    written = []
    for name in ("pyulog", "rovelog.compat.pyulog"):
        run(name, "ulog2kml", ["-i", "-o", str(tmp_path / name), *options, path], monkeypatch)
        # Ids are numbered across all documents of a process.
        text = (tmp_path / name).read_text()
        written.append([line for line in text.splitlines() if " id=" not in line and "styleUrl" not in line])
    assert written[0] == written[1] and "\n".join(written[0]).count("<coordinates>") > 1


def test_rows_as_dictionaries(real: pathlib.Path) -> None:
    theirs = pyulog.extract_message.extract_message(str(real), "vehicle_attitude", 22, 23)
    assert extract_message.extract_message(str(real), "vehicle_attitude", 22, 23) == theirs and theirs
    with pytest.raises(AttributeError):
        extract_message.extract_message(str(real), "nothing")


TEXTS = [
    "plain",
    "a {1} and {2:.1m/s} and {3} {4}",
    r"\<escaped\> \{1}",
    '<profile name="dev">for <param>A_B</param></profile> all <profile name="!dev">others</profile>',
    '<a href="https://x.org">link</a> <a>y.org</a>',
    "<unknown>gone</unknown> {9} {x} <open {1",
    "{1:.2}{2:.0m_v}",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("profile", ["dev", "normal"])
def test_event_texts(text: str, profile: str) -> None:
    bits = {"type": "uint8_t", "is_bitfield": True, "entries": {"1": {"description": "one"}, "4": {"description": "four"}}}
    arguments = [{"type": "uint16_t", "name": "n"}, {"type": "float", "name": "f"}, {"type": "bits", "name": "b"}]
    event = {"name": "e", "message": text, "description": text * 2, "arguments": arguments}
    definitions = {
        "version": 1,
        "components": {"1": {"namespace": "px4", "enums": {"bits": bits}, "event_groups": {"default": {"events": {"5": event}}}}},
    }
    said = []
    for module in (pyulog.libevents_parse.parser, parser):
        found = module.Parser()
        found.load_definitions(copy.deepcopy(definitions))
        found.set_profile(profile)
        found.set_url_formatter(lambda content, url: f"[{content}]({url})")
        found.set_param_formatter(lambda name: f"`{name}`")
        found.set_message_escape_method(lambda part: part.replace("a", "&"))
        parsed = found.parse(1 << 24 | 5, np.array([7, 0, 0, 0, 32, 65, 5], "u1").tobytes())
        assert found.parse(1 << 24 | 6, b"") is None
        said.append((parsed.message(), parsed.description(), parsed.argument_display_value(2), parsed.group(), parsed.name()))
    assert said[0] == said[1]


@pytest.mark.parametrize("writer", ["theirs", "ours"])
def test_databases_are_those_of_pyulog(real: pathlib.Path, tmp_path: pathlib.Path, writer: str) -> None:
    """Each of the two packages can load what the other one has saved."""
    path = str(tmp_path / "logs.sqlite3")
    modules = [(pyulog.db, pyulog.migrate_db), (db, migrate_db)]
    (first, migrate), (second, _) = modules if writer == "theirs" else modules[::-1]
    with contextlib.redirect_stdout(io.StringIO()):
        migrate.migrate_db(path)
    saved = first.DatabaseULog(first.DatabaseULog.get_db_handle(path), log_file=str(real))
    saved.save(append_json=True)
    loaded = second.DatabaseULog(second.DatabaseULog.get_db_handle(path), primary_key=saved.primary_key, lazy=False)
    original = ULog(str(real))
    for name in ("msg_info_dict", "initial_parameters", "changed_parameters", "start_timestamp", "last_timestamp"):
        assert getattr(loaded, name) == getattr(original, name)
    assert [text.message for text in loaded.logged_messages] == [text.message for text in original.logged_messages]
    assert len(loaded.data_list) == len(original.data_list)
    for want, got in zip(original.data_list, loaded.data_list, strict=True):
        assert all(values.tobytes() == got.data[name].tobytes() for name, values in want.data.items())
    loaded.delete()
    assert not db.DatabaseULog.exists_in_db(db.DatabaseULog.get_db_handle(path), saved.primary_key)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_databases_of_earlier_versions_are_migrated(tmp_path: pathlib.Path, version: int) -> None:
    """Creates a database with a log, for each version of the tables of pyulog."""
    path = str(tmp_path / "logs.sqlite3")
    handle = db.DatabaseULog.get_db_handle(path)
    with contextlib.redirect_stdout(io.StringIO()), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyulog.db.DatabaseULog, "SCHEMA_VERSION", version)
        pyulog.migrate_db.migrate_db(path)
        with contextlib.closing(handle()) as connection, connection:
            log = connection.execute("INSERT INTO ULog (CompatFlags, IncompatFlags) VALUES ('', '')").lastrowid
            connection.execute("INSERT INTO ULogInitialParameter VALUES ('A', 7, ?)", (log,))
            connection.execute("INSERT INTO ULogDataset (DatasetName, MultiId, ULogId) VALUES ('t', 1, ?)", (log,))
        migrate_db.migrate_db(path)
    loaded = db.DatabaseULog(handle, primary_key=log)
    assert loaded.initial_parameters == {"A": 7} and [data.name for data in loaded.data_list] == ["t"]


def _rows(log: ULog) -> int:
    return sum(len(data.data["timestamp"]) for data in log.data_list)


def test_logs_are_pickled_with_their_data(real: pathlib.Path) -> None:
    log = ULog(str(real))
    log.get_dataset("vehicle_attitude").data["timestamp"][:] = 5
    again = pickle.loads(pickle.dumps(log))
    assert again == log and again != ULog(str(real))
    assert (again.get_dataset("vehicle_attitude").data["timestamp"] == 5).all()
    assert copy.deepcopy(log) == log
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_rows, [ULog(str(real))]) == [_rows(log)]


def test_a_subclass_sets_the_attributes_itself(real: pathlib.Path) -> None:
    class Made(ULog):
        def __init__(self) -> None:
            super().__init__(None)
            self._start_timestamp = 7
            self._msg_info_dict["sys_name"] = "PX4"
            self._data_list = ULog(str(real)).data_list

    made = Made()
    assert made.start_timestamp == 7 and made.msg_info_dict == {"sys_name": "PX4"} and not made.initial_parameters
    assert len(made.get_dataset("vehicle_attitude").data["timestamp"]) > 0
    assert not ULog(None).file_corruption and not made.dropouts


def test_a_string_filters_as_in_pyulog(real: pathlib.Path) -> None:
    for text in ("vehicle_attitude", "vehicle_attitude_setpoint"):
        theirs, mine = ([data.name for data in read(str(real), text).data_list] for read in (pyulog.ULog, ULog))
        assert theirs == mine and text in mine
