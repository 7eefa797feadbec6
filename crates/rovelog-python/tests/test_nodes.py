"""Outputs other than regular files: devices, pipes and sockets, and file objects that accept few
bytes at a time.
"""

from __future__ import annotations

import errno
import io
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rovelog as rl
from conftest import CORPUS

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such nodes")

ULOG = CORPUS / "ulog" / "one-topic+multi-id+sync+dropout+texts+appended.ulg"
BAG = CORPUS / "rosbag" / "recorded.bag"
RLD = CORPUS / "rld" / "v4.rld"

JOBS: dict[str, Callable[[Path, bool], object]] = {
    "recover": lambda out, force: rl.recover(ULOG, out, force=force),
    "slice": lambda out, force: rl.open(ULOG).slice(out, force=force),
    "mcap": lambda out, force: rl.convert(BAG, out, kind="mcap", force=force),
    "bag2": lambda out, force: rl.convert(BAG, out, kind="bag2", force=force),
    "csv": lambda out, force: rl.convert(ULOG, out, kind="csv", topics="t/0", force=force),
    "parquet": lambda out, force: rl.convert(ULOG, out, kind="parquet", topics="t/0", force=force),
    "logger": lambda out, force: rl.convert(RLD, out, kind="csv", dialect="rocketlogger", force=force),
}


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest) -> Callable[[Path, bool], object]:
    return JOBS[request.param]


def node(path: Path, number: int) -> Path:
    """Creates a device: number 3 behaves like /dev/null, number 7 like /dev/full."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, number))
        with path.open("wb"):
            return path
    except PermissionError:
        pytest.skip("this user cannot make devices")


def kind(path: Path) -> int:
    return stat.S_IFMT(path.stat().st_mode)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], bytes]]]:
    """Creates a named pipe, and collects what its reader receives."""
    path, got = tmp_path / "pipe.csv", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()

    def read() -> bytes:
        reader.join(20)
        return got[0]

    yield path, read


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_receives_all_bytes_and_is_not_replaced(
    job: Callable[[Path, bool], object], pipe: tuple[Path, Callable[[], bytes]], tmp_path: Path, force: bool, linked: bool
) -> None:
    path, read = pipe
    out = tmp_path / "file.csv"
    job(out, False)
    name = path
    if linked:
        name = tmp_path / "link.csv"
        name.symlink_to(path)
    job(name, force)
    assert read() == out.read_bytes()
    assert kind(path) == stat.S_IFIFO and not list(tmp_path.glob("*.partial"))


def test_a_device_is_not_replaced(job: Callable[[Path, bool], object], tmp_path: Path) -> None:
    null, full = node(tmp_path / "null.csv", 3), node(tmp_path / "full.csv", 7)
    job(null, True)
    with pytest.raises(rl.WriteError) as raised:
        job(full, True)
    assert raised.value.errno == errno.ENOSPC
    assert kind(null) == kind(full) == stat.S_IFCHR and {path.name for path in tmp_path.iterdir()} == {"null.csv", "full.csv"}


def test_a_socket_is_not_replaced(job: Callable[[Path, bool], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The path of a socket has a maximum length.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s.csv")
        with pytest.raises(rl.WriteError, match="cannot write the output"):
            job(Path("s.csv"), True)
        assert kind(Path("s.csv")) == stat.S_IFSOCK and os.listdir() == ["s.csv"]


def test_a_terminal_is_rejected(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        out = tmp_path / "terminal"
        out.symlink_to(os.ttyname(theirs))
        with pytest.raises(rl.WriteError, match="terminal"):
            rl.recover(ULOG, out, force=True)
    finally:
        os.close(ours)
        os.close(theirs)


class Slow(io.RawIOBase):
    """A file object that accepts a few bytes at a time, or none."""

    def __init__(self, most: int | None) -> None:
        self.most, self.got = most, bytearray()

    def writable(self) -> bool:
        return True

    def write(self, piece: bytes) -> int | None:  # type: ignore[override]
        if self.most is None:
            return None
        self.got += piece[: self.most]
        return len(piece[: self.most])


class Plain:
    """A file object that is not derived from `io` classes and returns None from `write`."""

    def __init__(self) -> None:
        self.got = bytearray()

    def write(self, piece: bytes) -> None:
        self.got += piece


def converted(tmp_path: Path) -> bytes:
    rl.convert(BAG, tmp_path / "whole.mcap")
    return (tmp_path / "whole.mcap").read_bytes()


def test_short_writes_are_continued(tmp_path: Path) -> None:
    whole = converted(tmp_path)
    for out in (Slow(1), Slow(1000), Plain()):
        rl.convert(BAG, out, kind="mcap")  # type: ignore[arg-type]
        assert out.got == whole


def test_a_file_object_that_accepts_nothing_is_an_error(tmp_path: Path) -> None:
    for most, said in ((0, "accepted 0 of"), (None, "accepted None of")):
        with pytest.raises(rl.WriteError, match=said):
            rl.convert(BAG, Slow(most), kind="mcap")  # type: ignore[arg-type]


def test_a_pipe_that_does_not_block_is_not_cut(tmp_path: Path) -> None:
    """A pipe without a reader holds 65536 bytes."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    log = tmp_path / "large.ulg"
    log.write_bytes(ULOG.read_bytes() * 400)
    with os.fdopen(read, "rb"), io.FileIO(write, "wb") as out, pytest.raises(rl.WriteError):
        rl.convert(log, out, kind="ndjson")  # type: ignore[arg-type]
