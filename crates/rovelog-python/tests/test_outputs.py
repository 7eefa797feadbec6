"""New files are complete or absent, never replace an input, and reuse the partial files of killed
programs.
"""

import fcntl
import gc
import gzip
import os
import pickle
import shutil
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import rovelog as rl
from conftest import CORPUS, real_file


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Copies the files of a recording, and returns the path of the first one."""
    for name in ("v4_split.rld", "v4_split_p1.rld", "v4_split_p2.rld"):
        shutil.copy(real_file(f"rld/{name}"), tmp_path)
    return tmp_path / "v4_split.rld"


def test_no_part_of_the_input_is_the_output(split: Path, tmp_path: Path) -> None:
    log = rl.open(split)
    part = split.with_name(f"{split.stem}_p1.rld")
    before = part.read_bytes()
    link = tmp_path / "link.rld"
    link.symlink_to(part)
    for out in (split, part, link):
        with pytest.raises(rl.WriteError, match="the output file is also the input file"):
            log.recover(out, force=True)
        with pytest.raises(rl.WriteError, match="the output file is also the input file"):
            rl.convert(log, out, kind="mcap", force=True)
    assert part.read_bytes() == before


def test_a_partial_file_is_reused_unless_it_is_locked(tmp_path: Path) -> None:
    log = rl.open(CORPUS / "ulog" / "one-topic.ulg")
    out, part = tmp_path / "out.ulg", tmp_path / "out.ulg.partial"
    part.write_bytes(b"left by a program that was killed" * 1000)
    log.recover(out)
    assert out.read_bytes() == (CORPUS / "ulog" / "one-topic.ulg").read_bytes() and not part.exists()
    part.write_bytes(b"held")
    with part.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(rl.WriteError, match="another program is writing"):
            log.recover(out, force=True)
    assert part.read_bytes() == b"held"


def test_a_link_with_the_name_of_the_partial_file_is_not_followed(tmp_path: Path) -> None:
    precious, out = tmp_path / "precious", tmp_path / "out.csv"
    precious.write_text("mine")
    Path(f"{out}.partial").symlink_to(precious)
    with pytest.raises(rl.WriteError, match="File exists"):
        rl.convert(rl.open(CORPUS / "ulog/one-topic.ulg"), out)
    assert precious.read_text() == "mine" and not out.exists()


def test_an_interrupt_at_any_instruction_leaves_no_partial_file(tmp_path: Path) -> None:
    log, out = rl.open(CORPUS / "ulog/one-topic.ulg"), tmp_path / "out.ulg"
    log.recover(out)
    names = {"partial_files", "write_file", "enter_context", "__exit__", "_name_new", "_sync", "_sync_folder"}
    at, interrupted = 0, True
    while interrupted:
        at += 1
        left, interrupted = [at], False

        def trace(frame: FrameType, event: str, _: object, left: list[int] = left) -> Any:
            frame.f_trace_opcodes = frame.f_code.co_name in names
            if event == "opcode":
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            log.recover(out, force=True)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        gc.collect()
        assert os.listdir(tmp_path) == ["out.ulg"], f"instruction {at}"
    assert at > 100


def test_a_replaced_file_keeps_its_mode_and_a_link_stays(tmp_path: Path) -> None:
    log = rl.open(CORPUS / "ulog" / "one-topic.ulg")
    out, link = tmp_path / "out.ulg", tmp_path / "link.ulg"
    out.write_bytes(b"old")
    out.chmod(0o600)
    link.symlink_to(out)
    log.recover(link, force=True)
    assert link.is_symlink() and out.stat().st_mode & 0o777 == 0o600
    assert out.read_bytes() == (CORPUS / "ulog" / "one-topic.ulg").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["link.ulg", "out.ulg"]


def test_a_protected_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, out = rl.open(CORPUS / "ulog" / "one-topic.ulg"), tmp_path / "out.ulg"
    out.write_bytes(b"mine")
    # The user root may write to all files.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(rl.WriteError, match="write-protected"):
        log.recover(out, force=True)
    assert out.read_bytes() == b"mine"


def test_a_name_of_maximum_length_can_be_written(tmp_path: Path) -> None:
    log, out = rl.open(CORPUS / "ulog" / "one-topic.ulg"), tmp_path / ("x" * 251 + ".ulg")
    log.recover(out)
    assert os.listdir(tmp_path) == [out.name]


def test_max_unpacked_limits_a_bag(tmp_path: Path) -> None:
    bag = tmp_path / "a.bag.gz"
    bag.write_bytes(gzip.compress((CORPUS / "rosbag" / "recorded.bag").read_bytes()))
    with pytest.raises(rl.RovelogError, match="max_unpacked=8 << 30"):
        rl.open(bag, max_unpacked=1000)
    assert rl.open(bag, max_unpacked=10_000).info.records == rl.open(CORPUS / "rosbag" / "recorded.bag").info.records


def test_output_errors_can_be_pickled(tmp_path: Path) -> None:
    log = rl.open(CORPUS / "ulog" / "one-topic.ulg")
    with pytest.raises(rl.MissingFolderError) as caught:
        log.recover(tmp_path / "missing" / "out.ulg")
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is rl.MissingFolderError and str(error) == str(caught.value)
    assert error.errno == caught.value.errno == 2 and error.next == caught.value.next
