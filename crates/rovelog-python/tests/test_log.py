"""Opening of logs, their metadata, records, damage and errors."""

from __future__ import annotations

import datetime as dt
import io
import os
import pathlib
import subprocess
import sys
import threading
import tracemalloc

import polars as pl
import pytest
from conftest import CORPUS, another_thread_gets_on, command, stops_at_ctrl_c

import rovelog as rl
from rovelog import _core


def test_every_kind_of_source(flight: pathlib.Path) -> None:
    data = flight.read_bytes()
    with flight.open("rb") as file:
        sources = [flight, str(flight), data, bytearray(data), memoryview(data), io.BytesIO(data), file]
        for source in sources:
            log = rl.open(source)
            assert log.format == "ulog"
            assert log.records == rl.open(flight).records


def test_an_address(flight: pathlib.Path) -> None:
    import functools
    import http.server

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(flight.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = flight.name.replace("+", "%2B")
        assert rl.open(f"http://127.0.0.1:{server.server_port}/{name}").records > 0
        server.shutdown()


def test_health_of_times(real_log: rl.Log) -> None:
    import numpy as np

    health = real_log.health()
    for topic in real_log.topics.values():
        if topic.count == 0:
            continue
        steps = np.diff(topic.table().to_arrow()["t_ns"].to_numpy())
        rising = np.sort(steps[steps > 0])
        found = health[topic.name]
        assert (found.falling, found.repeated) == ((steps < 0).sum(), (steps == 0).sum())
        assert found.period_ns == (rising[(len(rising) - 1) // 2] if len(rising) else None)
        gaps = (rising > 3 * found.period_ns).sum() if found.steady else 0
        assert (found.gaps, len(found.longest_gaps)) == (gaps, min(gaps, 16))
    assert sum(found.gaps for found in health.values()) > 0
    part = real_log.health(start="+1s", end="+2s")
    assert 0 < part["vehicle_attitude/0"].count < health["vehicle_attitude/0"].count


def test_metadata_of_a_log(real_log: rl.Log) -> None:
    assert real_log.state == "complete"
    assert real_log.info.dialect == "px4"
    assert real_log.duration == dt.timedelta(seconds=6, microseconds=516648)
    # One record is 1167 s after the other 6.5 s of data.
    (outside,) = real_log.info.outside
    assert (outside.topic, outside.records, outside.distance_ns // 10**9) == ("mission/0", 1, 1167)
    assert real_log.info.data_duration_ns == 6_516_648_000
    assert real_log.info.data_start_ns == real_log.start_ns and outside.last_ns == real_log.end_ns
    last = [m.t_ns for m in real_log.messages(["vehicle_attitude"], start="-1s")]
    assert last and min(last) >= outside.first_ns - outside.distance_ns - 10**9
    assert real_log.start == dt.datetime(2021, 4, 21, 6, 30, 58, 450725, dt.timezone.utc)
    assert real_log.records == 14604
    assert "vehicle_attitude" in real_log and real_log["vehicle_attitude", 0].name == "vehicle_attitude/0"
    assert len(real_log.text) == 3 and real_log.text[0].level_name == "info"
    assert real_log.ulog.dropouts[0].duration_ms == 30
    assert real_log.params["SYS_AUTOSTART"] == 13014
    assert real_log.ulog.infos["ver_sw_branch"] == "v1.11.2_w_rc_sysid"
    assert real_log.ulog.modes


def test_records_come_in_the_order_of_time(real_log: rl.Log) -> None:
    # A device writes the time 0 before it has a time. Such a record keeps its position in the file
    # order.
    times = [(m.t_ns, m.offset) for m in real_log.messages() if m.t_ns]
    assert times == sorted(times)
    assert len(list(real_log.messages())) == real_log.records
    one = next(iter(real_log.messages("vehicle_attitude")))
    assert one["q[1]"] == one["q"][1] and "q" in one and "p" not in one
    assert one.fields().keys() == set(one.keys())
    for name in ("nothing", "q[4]", "q[", "q[x]", "q.x"):
        with pytest.raises(KeyError):
            one[name]
    first = real_log["vehicle_attitude"].first_ns
    assert first is not None
    start, end = first + 10**9, first + 2 * 10**9
    window = [m.t_ns for m in real_log.messages(["vehicle_attitude"], start=start, end=end)]
    assert len(window) > 100 and all(start <= t < end for t in window)
    every = [m.t_ns for m in real_log.messages("vehicle_attitude")]
    assert window == [t for t in every if start <= t < end]


def test_only_some_topics(real: pathlib.Path, tmp_path: pathlib.Path) -> None:
    log = rl.open(real, topics=["vehicle_attitude"])
    assert list(log.topics) == ["vehicle_attitude/0"]
    assert {m.topic for m in log.messages()} == {"vehicle_attitude/0"}
    assert log.slice(tmp_path / "part.ulg").records == log["vehicle_attitude"].count
    assert [topic.name for topic in rl.open(tmp_path / "part.ulg").topics.values() if topic.count] == ["vehicle_attitude/0"]


def test_damage_warns_once_and_is_listed(flight: pathlib.Path) -> None:
    path = flight.parent / "bad-data+short.ulg"
    with pytest.warns(rl.DataLossWarning, match="could not be read"):
        log = rl.open(path)
    lost = [problem for problem in log.problems if problem.severity == "data_lost"]
    assert lost and lost[0].code.startswith("E-ULOG-") and lost[0].fix.startswith("rovelog.recover")
    with pytest.raises(rl.CorruptError) as caught:
        rl.open(path, strict=True)
    assert caught.value.lost == log.info.lost
    assert caught.value.offset == log.info.lost[0][0]
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("case", "words", "missing", "left_out"),
    [
        ("rld/cut-between-rows.rld", "2 records counted by the log are missing from the file", 2, 0),
        ("rld/header-behind.rld", "5 records are left out", 0, 5),
        ("vel/end-mark+tail.vel", "2 records are left out", 0, 2),
    ],
)
def test_missing_records_warn_too(
    flight: pathlib.Path, case: str, words: str, missing: int, left_out: int
) -> None:
    path = flight.parent.parent / case
    with pytest.warns(rl.DataLossWarning, match=words):
        log = rl.open(path)
    assert (log.info.missing_records, log.info.left_out_records) == (missing, left_out)
    with pytest.raises(rl.CorruptError, match=words):
        rl.open(path, strict=True)


def test_a_time_is_not_the_output_of_a_slice(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with rl.open(flight) as log, pytest.raises(ValueError, match="start='-20s'"):
        log.slice("-20s")


def test_plots_and_events(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with rl.open(flight) as log:
        topic = next(topic for topic in log.topics.values() if len(topic) > 1)
        plot = log.plot(topic.name)
        assert plot._repr_svg_().startswith("<svg") and topic.name.split("/")[0] in plot.svg
        assert len(log.plot(dark=True).svg) > 1000
        plot.save(tmp_path / "plot.svg")
        assert (tmp_path / "plot.svg").read_text(encoding="utf-8") == plot.svg
        with pytest.raises(rl.WriteError):
            plot.save(tmp_path / "plot.svg")
        with pytest.raises(rl.FieldNotFound):
            log.plot("no_such_topic.x")
        assert log.events() == log.ulog.events
        assert all(found.severity in ("high", "medium", "low") and found.sentence for found in log.findings)


def test_recover_and_slice(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    damaged = flight.parent / "bad-data+short.ulg"
    out = tmp_path / "fixed.ulg"
    kept = rl.recover(damaged, out)
    assert kept.kept_bytes + kept.lost_bytes + kept.stale_bytes == damaged.stat().st_size
    fixed = rl.open(out)
    assert fixed.state == "complete" and fixed.records == kept.records
    with pytest.raises(rl.WriteError, match="already"):
        rl.recover(damaged, out)
    assert rl.recover(damaged, out, force=True) == kept
    with pytest.raises(rl.WriteError, match="the output file is also the input file"):
        rl.recover(damaged, damaged, force=True)
    log = rl.open(flight)
    part = log.slice(tmp_path / "part.ulg", topics=[next(iter(log.topics))])
    assert rl.open(tmp_path / "part.ulg").records == part.records > 0
    with pytest.raises(rl.MissingFolderError, match="cannot write") as nowhere:
        log.slice(tmp_path / "no/part.ulg")
    assert nowhere.value.path == str(tmp_path / "no/part.ulg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fixed.ulg", "part.ulg"]


def test_errors_name_the_next_step(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        rl.open(tmp_path / "no.ulg")
    assert isinstance(missing.value, rl.RovelogError) and missing.value.next is not None
    other = tmp_path / "a.zip"
    other.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(rl.NotALogError, match="a zip archive") as wrong:
        rl.open(other)
    assert wrong.value.path == str(other) and "unpack" in str(wrong.value)
    with pytest.raises(rl.TopicNotFound) as topic:
        rl.open(flight)["tt"]
    assert isinstance(topic.value, KeyError)
    log = rl.open(flight)
    if log.info.utc_offset_ns is None:
        with pytest.raises(rl.NoUtcError):
            log["t"].between("2026-01-01T00:00:00Z")
    with pytest.raises(TypeError, match="mode 'rb'"):
        rl.open(io.StringIO("text"))
    with pytest.raises(TypeError):
        rl.open(42)  # type: ignore[arg-type]
    log.close()
    with pytest.raises(rl.RovelogError, match="closed"):
        log.messages()


def test_a_panic_is_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(rl.RovelogError, match="on purpose"):
        _core._panic_on_purpose()
    assert "on purpose" in capfd.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_ctrl_c_stops_a_loop(flight: pathlib.Path) -> None:
    stops_at_ctrl_c("for m in log.messages(): pass", flight)


def test_other_threads_run_during_decoding(real: pathlib.Path) -> None:
    data = real.read_bytes()
    with another_thread_gets_on():
        for _ in range(20):
            log = rl.open(data)
            for topic in log.topics.values():
                if topic.count:
                    topic.table()


def test_a_loop_over_records_needs_little_memory(real_log: rl.Log) -> None:
    tracemalloc.start()
    for _ in real_log.messages():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20


def test_import_loads_no_optional_library() -> None:
    code = "import sys, rovelog; print(sorted({'numpy', 'polars', 'pandas', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_package_contains_the_command_line(flight: pathlib.Path) -> None:
    done = command("info", flight, "--get", "format.id")
    assert (done.returncode, done.stdout) == (0, "ulog\n")
    assert command("info", "no-such-file.ulg").returncode == 1
    assert command("no-such-command").returncode == 2
    assert command("cat", flight.parent / "bad-data+short.ulg").returncode == 3


def test_notebooks_get_tables(real_log: rl.Log) -> None:
    page = real_log._repr_html_()
    assert real_log.name in page and "vehicle_attitude/0" in page
    topic = real_log["vehicle_attitude"]._repr_html_()
    assert "quat_reset_counter" in topic and "<svg" in topic
    assert "14604 records" in repr(real_log)


def test_a_relative_path_is_resolved_when_the_log_is_opened(
    flight: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_path = tmp_path / "in.ulg"
    log_path.write_bytes(flight.read_bytes())
    monkeypatch.chdir(tmp_path)
    log = rl.open("in.ulg")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with pytest.raises(rl.WriteError, match="the output file is also the input file"):
        log.recover(log_path, force=True)
    assert log_path.read_bytes() == flight.read_bytes()
    assert log.path == "in.ulg" and rl.convert(log, elsewhere / "out.mcap").records > log.records


def test_times_beyond_64_bits_are_rejected(flight: pathlib.Path) -> None:
    log = rl.open(flight)
    for beyond in (2**63, -(2**63) - 1, str(2**63)):
        with pytest.raises(ValueError, match="64 bits"):
            list(log.messages(start=beyond))
        with pytest.raises(ValueError, match="64 bits"):
            log["t"].between(beyond)
    assert len(log["t"].lazy().filter(pl.col("t_ns") <= 2**63 - 1).collect()) == log["t"].count


def test_records_without_a_time_have_no_row(flight: pathlib.Path) -> None:
    log = rl.open(CORPUS / "ulog/timestamp-out-of-range.ulg")
    times = [at for at in log["t"].to_arrow()["t_ns"].to_pylist() if at is not None]
    assert len(times) < log["t"].count
    assert log.align("t", on="t").to_arrow()["t_ns"].to_pylist() == sorted(times)


def test_functions_of_a_part_of_the_log(flight: pathlib.Path, real_log: rl.Log) -> None:
    with pytest.raises(ValueError, match="name at least one signal"):
        rl.open(flight).signals()
    with rl.open(str(real_log.path), topics="vehicle_attitude") as part:
        assert list(part.health()) == ["vehicle_attitude/0"]
