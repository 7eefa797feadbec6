"""Each write fails once. The error names the output and the cause, and no partial output
remains.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rovelog as rl
from conftest import CORPUS

resource = pytest.importorskip("resource", reason="this system has no limits of file sizes")

ULOG = CORPUS / "ulog" / "one-topic+multi-id+sync+dropout+texts+appended.ulg"
BAG = CORPUS / "rosbag" / "recorded.bag"
RLD = CORPUS / "rld" / "v4.rld"

JOBS: dict[str, Callable[[Path], object]] = {
    "out.ulg": lambda out: rl.open(ULOG).recover(out),
    "out.bag": lambda out: rl.recover(BAG, out),
    "slice.ulg": lambda out: rl.open(ULOG).slice(out),
    "out.mcap": lambda out: rl.convert(BAG, out),
    "out.ndjson": lambda out: rl.convert(ULOG, out),
    "v2.bag": lambda out: rl.convert(BAG, out),
    "one.csv": lambda out: rl.convert(ULOG, out, topics=_first(ULOG)),
    "one.parquet": lambda out: rl.convert(ULOG, out, topics=_first(ULOG)),
    "one.arrow": lambda out: rl.convert(ULOG, out, topics=_first(ULOG)),
    "logger.csv": lambda out: rl.convert(RLD, out, dialect="rocketlogger"),
    "tables": lambda out: rl.convert(ULOG, out, kind="parquet"),
}


def _first(path: Path) -> str:
    return next(name for name, topic in rl.open(path).topics.items() if len(topic))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Callable[[], object], Path, dict[str, bytes]]:
    """An operation that writes, its outputs, and its complete result."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "other").write_bytes(b"was there before")
    out = folder / request.param
    write = JOBS[request.param]
    write(out)
    whole = tree(folder)
    assert len(whole) > 1
    clear(folder)
    return (lambda: write(out)), folder, whole


def clear(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        elif path.name != "other":
            path.unlink()


def fails(write: Callable[[], object], folder: Path, number: int) -> None:
    with pytest.raises(rl.WriteError, match=os.strerror(number)) as raised:
        write()
    assert raised.value.errno == number and not isinstance(raised.value, rl.ReadError)
    said = str(raised.value)
    assert str(folder) in said and ".partial" not in said and "\n" in said, said
    assert tree(folder) == {"other": b"was there before"}
    assert [path.name for path in folder.iterdir()] == ["other"], "no folder is left"


@contextlib.contextmanager
def limited(size: int) -> Iterator[None]:
    """Limits the size of files of this process. Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_cannot_grow(job: tuple[Callable[[], object], Path, dict[str, bytes]]) -> None:
    write, folder, whole = job
    longest = max(len(content) for name, content in whole.items() if name != "other")
    for limit in sorted({0, 1, longest // 2, longest - 1}):
        with limited(limit):
            fails(write, folder, errno.EFBIG)
    with limited(longest):
        write()
    assert tree(folder) == whole


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_file_cannot_be_synced(
    job: tuple[Callable[[], object], Path, dict[str, bytes]], error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, folder, _ = job

    def fsync(_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "fsync", fsync)
    fails(write, folder, error)


def test_a_file_cannot_get_its_name(
    job: tuple[Callable[[], object], Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, folder, whole = job

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    # Simulates a file system without hard links.
    monkeypatch.setattr(os, "link", refuse)
    write()
    assert tree(folder) == whole
    clear(folder)
    monkeypatch.setattr(os, "replace", refuse)
    fails(write, folder, errno.EIO)


def test_a_system_that_cannot_sync_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", fsync)
    rl.recover(ULOG, tmp_path / "out.ulg")
    assert (tmp_path / "out.ulg").stat().st_size > 0


def test_an_unsynced_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, synced = os.fsync, []

    def fsync(file: int) -> None:
        synced.append(file)
        if len(synced) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(rl.WriteError, match="complete, but could be lost in a power failure"):
        rl.recover(ULOG, tmp_path / "out.ulg")
    assert len(synced) == 2 and [path.name for path in tmp_path.iterdir()] == ["out.ulg"]
