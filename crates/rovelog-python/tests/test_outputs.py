"""New files are complete or absent, never replace an input, and reuse the partial files of killed
programs.
"""

import fcntl
import gzip
import os
import pickle
import shutil
from pathlib import Path

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


def test_a_file_that_was_renamed_meanwhile_is_not_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, log = tmp_path / "out.csv", rl.open(CORPUS / "ulog/one-topic.ulg")
    part, lock, waiting = f"{out}.partial", fcntl.flock, [True]

    def complete_first(file: int, how: int) -> None:
        if waiting and waiting.pop():
            os.write(file, b"of another program")
            os.rename(part, out)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", complete_first)
    with pytest.raises(rl.WriteError):
        rl.convert(log, out)
    assert out.read_text() == "of another program" and not os.path.exists(part)


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
