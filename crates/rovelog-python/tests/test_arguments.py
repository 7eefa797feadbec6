"""Arguments of functions: names, addresses, outputs, and the errors for invalid ones."""

from __future__ import annotations

import http.server
import os
import pathlib
import pickle
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import crafted
import numpy as np
import pytest
from conftest import CORPUS, ROOT, real_file, stops_at_ctrl_c

import rovelog as rl
from rovelog import _core
from rovelog._times import span_ns
from rovelog._topic import Topics
from rovelog.compat.pyulog import ULog


def test_a_string_is_a_single_topic(flight: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with rl.open(flight, topics="t") as log, rl.open(flight, topics=["t"]) as same:
        assert list(log) == list(same) == ["t/0"]
        assert log.records == log["t"].count == len(list(log.messages())) < log.info.records
        assert f"{log.records} records" in repr(log) and rl.convert(log, tmp_path / "a.ndjson").records == log.records
    for wrong in ("nothing", ["t", "nothing"]):
        with pytest.raises(rl.TopicNotFound, match="there is no topic nothing"):
            rl.open(flight, topics=wrong)


def test_the_suffix_0_is_optional_except_for_ros_names() -> None:
    imu, path = SimpleNamespace(name="imu/0"), SimpleNamespace(name="/imu/0")
    topics = Topics([imu, path])  # type: ignore[list-item]
    assert topics["imu"] is topics["imu", 0] is imu and topics["/imu/0"] is path
    assert "imu" in topics and "/imu" not in topics
    with pytest.raises(rl.TopicNotFound):
        topics["/imu"]


def test_a_string_is_a_single_dataset(real: pathlib.Path) -> None:
    pyulog = pytest.importorskip("pyulog", reason="SKIPPED: the original is not installed")
    one, some = ULog(str(real), "vehicle_attitude"), ULog(str(real), ["vehicle_attitude"])
    assert [data.name for data in one.data_list] == [data.name for data in some.data_list] == ["vehicle_attitude"]
    theirs = pyulog.ULog(str(real), "vehicle_attitude").data_list
    assert [data.name for data in theirs] == ["vehicle_attitude"] and np.array_equal(theirs[0].data["q[0]"], one.data_list[0].data["q[0]"])


def test_a_string_is_a_single_field(real_log: rl.Log) -> None:
    topic = real_log["vehicle_local_position"]
    assert list(topic.numpy("vx")) == list(topic.table().numpy("vx")) == ["t_ns", "time", "vx"]


def test_instances(flight: pathlib.Path) -> None:
    log = rl.open(flight)
    assert log["t", 1].name == log.topics["t", 1].name == "t/1"
    assert ("t", 1) in log and ("t", 7) not in log and "t/1" in log and 5 not in log
    for wrong in (5, None, ("t",), (1, "t"), ["t"]):
        with pytest.raises(TypeError, match="a topic must be a name"):
            log[wrong]  # type: ignore[index]


def test_frames_can_be_written_to(real_log: rl.Log) -> None:
    topic = real_log["vehicle_attitude"]
    for table in (topic, topic.table()):
        frame = table.to_pandas()
        frame.iloc[1, 2] = 7
        frame.loc[2, "q[0]"] = 0.5
        frame["q[1]"] += 1
        assert frame.iloc[1, 2] == 7 and frame.loc[2, "q[0]"] == 0.5
        frame.fillna({"q[2]": 0}, inplace=True)
        frame["q[3]"].to_numpy(copy=True)[0] = 1
    indexed = topic.to_pandas(index="time")
    indexed.iloc[0, 1] = 3
    assert indexed.iloc[0, 1] == 3
    # Tables that were decoded before do not change.
    assert topic.table().to_pandas().iloc[1, 2] != 7
    shared = topic.table().to_pandas(copy=False)
    with pytest.raises(ValueError, match="read-only"):
        shared["q[0]"].to_numpy()[0] = 1


def missing_names(log: rl.Log) -> dict[str, tuple[Callable[[], Any], str]]:
    """Calls with an unknown name, each with the similar name that the error suggests."""
    topic = log["vehicle_attitude"]
    message = next(iter(log.messages("vehicle_attitude")))
    return {
        "topic": (lambda: log["vehicle_atitude"], "vehicle_attitude/0"),
        "field": (lambda: topic.select("quat_reset_conter"), "quat_reset_counter"),
        "element": (lambda: topic.select("q[4]"), "q"),
        "column": (lambda: topic.numpy(["quat_reset_conter"]), "quat_reset_counter"),
        "index": (lambda: topic.to_pandas(index="timestmp"), "timestamp"),
        "message": (lambda: message["quat_reset_conter"], "quat_reset_counter"),
        "parameter": (lambda: log.params["SYS_AUTOSTRT"], "SYS_AUTOSTART"),
        "information": (lambda: log.ulog.infos["sys_nme"], "sys_name"),
    }


def test_an_unknown_name_raises_a_key_error_with_suggestions(real_log: rl.Log) -> None:
    for what, (ask, meant) in missing_names(real_log).items():
        with pytest.raises(rl.RovelogError) as caught:
            ask()
        error = caught.value
        assert isinstance(error, KeyError) and meant in error.suggestions, what  # type: ignore[attr-defined]
        assert error.next is not None and (what == "message" or error.path == real_log.path), what


def test_named_values_are_dicts(real_log: rl.Log) -> None:
    params = real_log.params
    assert isinstance(params, dict) and params.get("nothing") is None and "nothing" not in params
    assert pickle.loads(pickle.dumps(params)) == params == dict(params)


def test_indexing_by_time_needs_utc(flight: pathlib.Path) -> None:
    with pytest.raises(rl.FieldNotFound, match="index by t_ns"):
        rl.open(flight)["t"].to_pandas(index="time")


def test_unknown_channels_raise() -> None:
    log = rl.open(real_file("rld/test_full.rld"))
    for ask in (lambda: log.rld.energy(by="DI9", power="V1*I1"), lambda: log.rld.energy(power="V1*I9")):
        with pytest.raises(rl.NameNotFound) as caught:
            ask()
        assert caught.value.path == log.path and caught.value.suggestions
    assert log.rld.energy(by=["DI1"], power="(V1-V2)*I1")


def test_paths_and_addresses(flight: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b.ulg").write_bytes(flight.read_bytes())
    want = rl.open(flight).records
    for source in ("~/a b.ulg", pathlib.Path("~/a b.ulg"), (tmp_path / "a b.ulg").as_uri(), f"file://localhost{tmp_path}/a%20b.ulg"):
        assert rl.open(source).records == want
    assert rl.convert("~/a b.ulg", "~/out.mcap").files == [str(tmp_path / "out.mcap")]
    rl.open("~/a b.ulg").slice("~/part.ulg")
    assert (tmp_path / "part.ulg").exists() and not pathlib.Path("~").exists()
    with pytest.raises(rl.UnsupportedError, match="ftp:// are not supported") as caught:
        rl.open("ftp://x/y.ulg")
    assert caught.value.path == "ftp://x/y.ulg"
    with pytest.raises(rl.UnsupportedError, match="on another machine"):
        rl.open("file://server/x.ulg")
    with pytest.raises(rl.MissingFileError):
        rl.open("file:///no/such.ulg")


def test_durations_have_the_units_of_the_command_line() -> None:
    for text, nanos in [("1m30s", 90 * 10**9), ("1.5us", 1500), ("1.5 µs", 1500), ("2min", 120 * 10**9), ("1h", 3600 * 10**9)]:
        assert span_ns(text) == nanos
    for text in ("", "2", "2V", "1e3s", "-1s"):
        with pytest.raises(ValueError, match="is not a duration"):
            span_ns(text)


def test_integers_of_numpy_and_nanoseconds_of_pandas_are_times() -> None:
    pd = pytest.importorskip("pandas")
    topic = rl.open(CORPUS / "rosbag/recorded.bag")["/chatter"]
    times = topic.numpy()["t_ns"]
    start = times[3]
    assert isinstance(start, np.int64)
    assert len(topic.between(start, start + 1)) == 1
    stamp, step = pd.Timestamp(int(start), tz="UTC"), pd.Timedelta(1, "ns")
    assert len(topic.between(stamp, stamp + step)) == 1
    assert len(topic.between(stamp + step)) == len(times) - 4
    after_start = pd.Timedelta(int(start - times[0]) + 1, "ns")
    assert len(topic.between(after_start)) == len(times) - 4
    assert span_ns(pd.Timedelta("1500ns")) == 1500 and span_ns(np.int32(7)) == 7
    for utc_start in (np.int64(10**18 + 1), pd.Timestamp(10**18 + 1, tz="UTC")):
        info = rl.open(CORPUS / "ulog/one-topic.ulg", utc_start=utc_start).info
        assert info.utc_offset_ns == 10**18 + 1 - info.start_ns
    for wrong in (True, np.bool_(True), 1.5, np.float64(1)):
        with pytest.raises(TypeError):
            topic.between(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            span_ns(wrong)  # type: ignore[arg-type]


def test_bytes_that_look_like_a_path_give_a_hint(flight: pathlib.Path) -> None:
    for data in (b"x.ulg", os.fsencode(flight)):
        with pytest.raises(rl.NotALogError, match="pass a str") as caught:
            rl.open(data)
        assert repr(os.fsdecode(data)) in str(caught.value)
    with pytest.raises(rl.NotALogError) as other:
        rl.open(b"\x00\x01 no log.")
    assert "pass a str" not in str(other.value)


class Answers(http.server.BaseHTTPRequestHandler):
    """An HTTP server whose behavior depends on the requested path."""

    log = b""

    def do_GET(self) -> None:
        if self.path == "/missing.ulg":
            return self.send_error(404)
        if self.path == "/refused.ulg":
            return self.send_error(403)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.log)))
        self.end_headers()
        if self.path == "/cut.ulg":
            self.wfile.write(self.log[:-100])
        else:
            self.wfile.write(self.log)

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """A server that ignores errors of clients which close the connection early."""

    def handle_error(self, *_: object) -> None:
        pass


@pytest.fixture
def server(flight: pathlib.Path) -> Iterator[str]:
    Answers.log = flight.read_bytes()
    with Server(("127.0.0.1", 0), Answers) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_http_errors_become_exceptions(server: str, flight: pathlib.Path) -> None:
    assert rl.open(f"{server}/good.ulg").records == rl.open(flight).records


def test_limits_of_an_address(server: str) -> None:
    def fails(name: str, match: str, error: type[rl.RovelogError] = rl.ReadError, **limits: int) -> None:
        with pytest.raises(error, match=match):
            rl.open(f"{server}/{name}.ulg", **limits)

    fails("missing", "no such file", rl.MissingFileError)
    fails("refused", "denies access")
    fails("cut", "cannot read from the server|sent")
    fails("good", "100 are allowed", rl.UnreadableError, max_bytes=100)
    with pytest.raises(rl.RovelogError, match="cannot be read|connection"):
        rl.open("http://127.0.0.1:9/x.ulg")


def test_ctrl_c_while_a_large_topic_is_decoded(tmp_path: pathlib.Path) -> None:
    path = crafted.large(tmp_path / "a.ulg", 400_000)
    assert rl.open(path)["fast"].nbytes > 8 << 20
    assert rl.open(path)["fast"].numpy()["v"].sum() == 400_000 * 9
    stops_at_ctrl_c("log['fast'].to_polars()", path)


# Options of `rovelog merge` and `rovelog split`. Python has neither, so its messages name the commands.
NOT_HERE = {"--time-base", "--at-restart"}
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
OPTION = re.compile(r"--[a-z][a-z-]+")


def test_no_message_names_a_command_line_option() -> None:
    """No message for Python names a command-line option. To fix a failure, add the text to
    `src/python_terms.rs`.
    """
    libraries = ["rovelog-core", "rovelog", "ulog-format", "rld-format", "rosbag12", "vel-format", "rovelog-export"]
    found = 0
    for library in libraries:
        for path in (ROOT / "crates" / library / "src").rglob("*.rs"):
            lines = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0].splitlines()
            code = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
            for text in TEXT.findall(code):
                # A variable of a style sheet starts with `--`, too.
                text = re.sub(r"\\\n\s*|var\(--\w+\)", "", text)
                options = set(OPTION.findall(text))
                found += bool(options)
                left = set(OPTION.findall(_core._in_python(text))) - NOT_HERE
                assert not left, (path.name, text)
    assert found > 3


def test_next_steps_name_python_arguments(tmp_path: pathlib.Path) -> None:
    with pytest.raises(rl.NotALogError) as caught:
        rl.open(b"\x00\x01\x02\x03 nothing of ours")
    assert "--" not in str(caught.value) and "format=" in str(caught.value)
    drive = real_file("vel/vlp16.vel")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = rl.convert(drive, tmp_path / "a.mcap")
    assert not any("--" in loss.why for loss in done.lost)
