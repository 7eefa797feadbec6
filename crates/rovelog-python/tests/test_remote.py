"""Logs at addresses and in file objects. Only the required ranges are read."""

from __future__ import annotations

import functools
import http.client
import http.server
import io
import pathlib
import pickle
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

import rovelog as rl
from conftest import ROOT, real_file
from crafted import bag

MOTO = ROOT / "target" / "moto"
"""A separate environment, because its packages conflict with those of the tests."""


class Ranges(http.server.SimpleHTTPRequestHandler):
    """A server for byte ranges of files that counts the bytes it sends."""

    sent = 0

    def do_GET(self) -> None:
        path = pathlib.Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        size = path.stat().st_size
        first, last = 0, size
        if asked := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            first = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
            last = min(size, int(asked[2]) + 1) if asked[1] and asked[2] else size
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(last - first))
        self.send_header("Last-Modified", "Fri, 01 May 2026 10:00:00 GMT")
        self.end_headers()
        with path.open("rb") as file:
            file.seek(first)
            self.wfile.write(file.read(last - first))
        Ranges.sent += last - first

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """Returns the address of the folder with real logs."""
    folder = real_file("ulog/sample.ulg").parent.parent
    Ranges.sent = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


class Counted(io.RawIOBase):
    """A file object that counts the bytes that are read."""

    def __init__(self, path: pathlib.Path) -> None:
        self.file = path.open("rb")
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, at: int, how: int = 0) -> int:
        return self.file.seek(at, how)

    def tell(self) -> int:
        return self.file.tell()

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.bytes += len(data)
        return data


def test_a_summary_of_an_address(server: str) -> None:
    log = rl.open(f"{server}/ulog/sample.ulg")
    local = rl.open(real_file("ulog/sample.ulg"))
    assert log.state == "not_checked" and log.info.at_least and 0 < log.info.unread < log.info.size
    assert (log.info.size, log.info.version) == (local.info.size, local.info.version)
    assert Ranges.sent <= 1 << 20
    # A function that needs the whole log fetches the rest of it once.
    assert [(t.name, t.count) for t in log.topics.values()] == [(t.name, t.count) for t in local.topics.values()]
    assert log.state == "complete" and log.records == local.records
    assert Ranges.sent == local.info.size
    name = next(iter(local.topics))
    assert log[name].to_arrow().equals(local[name].to_arrow())
    assert log.problems == local.problems and Ranges.sent == local.info.size


def test_a_window_of_an_address_is_a_part_of_it(server: str) -> None:
    path = real_file("rld/test_unsupported.rld")
    log, local = rl.open(f"{server}/rld/test_unsupported.rld"), rl.open(path)
    start = local.info.start_ns + 60 * 10**9
    remote, here = (each["samples"].between(start, start + 10**9).to_arrow() for each in (log, local))
    assert Ranges.sent < local.info.size / 4
    assert abs(remote.num_rows - here.num_rows) <= 1 and remote.num_rows > 900
    assert remote.column("V1").to_pylist()[1:-1] == here.column("V1").to_pylist()[1:-1]


def test_a_file_object_is_read_by_ranges() -> None:
    path = real_file("rosbag20/real_joints_2011.bag")
    file = Counted(path)
    log, local = rl.open(file), rl.open(path)
    assert log.records == local.records and file.bytes < local.info.size
    # The index of a bag does not contain the sizes of topics.
    assert {topic.nbytes for topic in log.topics.values() if topic.count} == {None}
    assert all(topic.nbytes for topic in local.topics.values() if topic.count)
    assert [m.offset for m in log.messages()] == [m.offset for m in local.messages()]
    file.file.close()


def test_file_objects_and_stores_have_their_limits() -> None:
    with open(real_file("ulog/sample_log_small.ulg"), "rb", buffering=0) as file:
        with pytest.raises(rl.RovelogError, match="more bytes|bytes"):
            rl.open(file, max_bytes=1000)["vehicle_attitude"].to_polars()
    with pytest.raises(rl.RovelogError, match="aws_acess_key_id"):
        rl.open("s3://bucket/a.ulg", storage_options={"aws_acess_key_id": "x"})


def test_addresses_are_pickled_with_their_settings(server: str) -> None:
    log = rl.open(f"{server}/rld/test_unsupported.rld", max_bytes=600_000)
    again = pickle.loads(pickle.dumps(log))
    assert again.info.records == log.info.records
    with pytest.raises(rl.UnreadableError, match="600000 are allowed"):
        again["samples"].to_arrow()


class Slow(Ranges):
    """A server that needs half a second per response."""

    def do_GET(self) -> None:
        time.sleep(0.5)
        super().do_GET()


TWO_READERS = """
import io, sys, threading, time
import rovelog as rl

class Slow(io.FileIO):
    def read(self, size=-1):
        time.sleep(0.5)
        return super().read(size)

source = sys.argv[1]
topic = rl.open(source if "://" in source else Slow(source))["/t"]
rows = []
windows = [("+10s", "+11s"), ("+25s", "+26s")]
readers = [threading.Thread(target=lambda part: rows.append(len(topic.between(*part).table())), args=(part,)) for part in windows]
for reader in readers:
    reader.start()
longest = 0
while any(reader.is_alive() for reader in readers):
    start = time.monotonic()
    topic.definition
    longest = max(longest, time.monotonic() - start)
    time.sleep(0.01)
print(rows, longest < 0.4)
"""


@pytest.mark.parametrize("kind", ["address", "file object"])
def test_another_thread_continues_during_a_download(kind: str, tmp_path: pathlib.Path) -> None:
    """A deadlock would reach the time limit."""
    blobs = (struct.pack("<I", 100_000) + bytes(100_000) for _ in range(40))
    rl.convert(bag(tmp_path / "plain.bag", "test_msgs/Blob", "uint8[] data", blobs), tmp_path / "indexed.bag")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Slow, directory=str(tmp_path))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        source = f"http://127.0.0.1:{running.server_port}/indexed.bag" if kind == "address" else str(tmp_path / "indexed.bag")
        done = subprocess.run([sys.executable, "-c", TWO_READERS, source], capture_output=True, text=True, timeout=60)
        running.shutdown()
    assert done.stdout == "[1, 1] True\n", done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Starts a server like S3 with the bucket `logs`. Returns its endpoint."""
    program = MOTO / "bin" / "moto_server"
    if not program.exists():
        shutil.rmtree(MOTO, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", MOTO], capture_output=True)
        pip = [MOTO / "bin" / "pip", "install", "--quiet", "moto[server]==5.2.*"]
        if made.returncode or subprocess.run(pip, capture_output=True).returncode:
            shutil.rmtree(MOTO, ignore_errors=True)
            pytest.skip("moto[server] cannot be installed")
    port = free_port()
    server = subprocess.Popen([program, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{endpoint}/logs", method="PUT"))
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("the store does not start")
        yield endpoint
    finally:
        server.terminate()
        server.wait()


def settings(endpoint: str) -> dict[str, str]:
    return {"aws_endpoint": endpoint, "aws_access_key_id": "a", "aws_secret_access_key": "b"}


def test_a_bucket(bucket: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = real_file("ulog/sample.ulg")
    for key, value in settings(bucket).items():
        monkeypatch.setenv(key.upper(), value)

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-m", "rovelog", *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    large = tmp_path / "large.bag"
    bag = real_file("rosbag20/real_pointcloud_lz4_2018.bag")
    shutil.copy(bag, large)
    for source, name in ((path, "a/log.ulg"), (large, "a/log.bag")):
        code, said = run("slice", str(source), "-o", f"s3://logs/{name}")
        assert code == 0, said
        code, said = run("slice", str(source), "-o", f"s3://logs/{name}")
        assert code == 2 and "already exists" in said
    log = rl.open("s3://logs/a/log.ulg", storage_options=settings(bucket))
    local = rl.open(path)
    assert log.info.unread > 0 and log.path == "s3://logs/a/log.ulg"
    name = next(iter(local.topics))
    assert log[name].to_arrow().equals(local[name].to_arrow())
    code, said = run("info", "s3://logs/a/log.bag")
    assert code == 0 and "not checked" in said
    with pytest.raises(rl.MissingFileError):
        rl.open("s3://logs/none.ulg", storage_options=settings(bucket))


def test_many_parts_are_one_object(bucket: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings(bucket).items():
        monkeypatch.setenv(key.upper(), value)
    path = real_file("rld/test_unsupported.rld")
    table = tmp_path / "table.csv"
    arguments = ["export", str(path), "--topics", "samples"]
    for out in (str(table), "s3://logs/table.csv"):
        done = subprocess.run([sys.executable, "-m", "rovelog", *arguments, "-o", out], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert table.stat().st_size > 16 << 20
    with urllib.request.urlopen(f"{bucket}/logs/table.csv") as answer:
        assert answer.read() == table.read_bytes()


def test_a_folder_of_a_bucket_is_a_source(bucket: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings(bucket).items():
        monkeypatch.setenv(key.upper(), value)
    folder = tmp_path / "flights"
    (folder / "a").mkdir(parents=True)

    def put(name: str, data: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"{bucket}/logs/flights/{name}", method="PUT", data=data, headers=headers)
        urllib.request.urlopen(request, timeout=30).close()

    corpus = sorted((ROOT / "corpus" / "ulog").glob("*.ulg"))[:8]
    for at, path in enumerate(corpus):
        to = folder / ("a" if at % 2 else ".") / f"{at}.ulg"
        shutil.copy(path, to)
        put(to.relative_to(folder).as_posix(), path.read_bytes())
    put("notes.txt", b"no log")

    def lake(source: str, name: str) -> dict[str, int]:
        out = tmp_path / name
        arguments = ["ingest", source, "-o", str(out)]
        done = subprocess.run([sys.executable, "-m", "rovelog", *arguments], capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr
        again = subprocess.run([sys.executable, "-m", "rovelog", *arguments], capture_output=True, text=True)
        assert "nothing to do" in again.stderr
        # The names of files are hashes of the logs and of the columns.
        tables = {path.relative_to(out).as_posix(): path.stat().st_size for path in out.rglob("month=*/*.parquet")}
        assert tables
        return tables

    assert lake("s3://logs/flights/", "remote") == lake(str(folder), "local")
    for source in ("s3://logs/flights/a/", "s3://logs/flights/*.ulg"):
        run = [sys.executable, "-m", "rovelog", "info", source, "-f", "json"]
        done = subprocess.run(run, capture_output=True, text=True)
        assert done.stdout.count('"rovelog.info/') == len(corpus) // 2, done.stderr


class Refusing(http.server.BaseHTTPRequestHandler):
    """A proxy that answers writing requests with an error, starting with a given one."""

    protocol_version = "HTTP/1.1"
    store = ""
    lock = threading.Lock()
    writes = 0
    first = last = 0
    code = 403

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        with Refusing.lock:
            Refusing.writes += self.command in ("PUT", "POST")
            refused = self.command in ("PUT", "POST") and Refusing.first <= Refusing.writes <= Refusing.last
        host = self.store.removeprefix("http://")
        if refused:
            code, headers, answer = Refusing.code, [], b"<Error><Code>Refused</Code></Error>"
        else:
            connection = http.client.HTTPConnection(host)
            kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request(self.command, self.path, body, kept)
            response = connection.getresponse()
            code, headers, answer = response.status, response.getheaders(), response.read()
            connection.close()
        self.send_response(code)
        for name, value in headers:
            if name.lower() in ("etag", "last-modified", "content-type", "accept-ranges", "content-range"):
                self.send_header(name, value)
        length = dict(headers).get("Content-Length", "0") if self.command == "HEAD" else len(answer)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def refusing(bucket: str) -> Iterator[str]:
    Refusing.store = bucket
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def test_an_object_is_complete_or_absent(refusing: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of a simple and of a multipart upload fails once."""
    for key, value in settings(refusing).items():
        monkeypatch.setenv(key.upper(), value)
    one = ["slice", str(real_file("ulog/sample.ulg"))], "log.ulg"
    several = ["export", str(real_file("rld/test_unsupported.rld")), "--topics", "samples"], "table.csv"

    def run(arguments: list[str], name: str, first: int, last: int, code: int) -> tuple[int, str]:
        Refusing.writes, Refusing.first, Refusing.last, Refusing.code = 0, first, last, code
        arguments = [*arguments, "-o", f"s3://logs/{name}", "--force"]
        done = subprocess.run([sys.executable, "-m", "rovelog", *arguments], capture_output=True, text=True)
        return done.returncode, done.stderr

    # The store requires a signature, but does not check it.
    scope = "Credential=a/20260101/us-east-1/s3/aws4_request"
    signed = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"}

    def content(name: str) -> bytes | None:
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{refusing}/logs/{name}", headers=signed)) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            assert error.code == 404
            return None

    for (arguments, name), fewest in ((one, 1), (several, 4)):
        code, said = run(arguments, f"whole/{name}", 0, 0, 0)
        assert code == 0, said
        requests, whole = Refusing.writes, content(f"whole/{name}")
        assert requests >= fewest and whole
        for turn in range(1, requests + 1):
            to = f"{turn}/{name}"
            code, said = run(arguments, to, turn, 1000, 403)
            assert code == 1 and f"s3://logs/{to}" in said and "next: " in said, said
            assert content(to) is None, f"request {turn} of {requests} was refused"
            # A server that was busy once gets the request again.
            code, said = run(arguments, to, turn, turn, 503)
            assert code == 0 and content(to) == whole, said
