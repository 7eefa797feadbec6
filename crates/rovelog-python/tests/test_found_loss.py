"""A V2.0 bag that is opened by its index and has a damaged chunk. Every function that reads its
records reports the loss.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import itertools
import pathlib
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import CORPUS, command, real_file
from test_remote import Ranges

import rovelog as rl
from rovelog.compat import rosbag

BAG = "real_imu_navsat_bz2_2015.bag"
MESSAGES = 16806
MISSING = {3: 1762, 6: 1762}
"""Number of the damaged chunk -> number of missing messages."""


def chunks(bag: bytes) -> list[tuple[int, int]]:
    """Returns start and end of the data of each chunk."""
    at, found = bag.index(b"\n") + 1, []
    while at < len(bag):
        head = struct.unpack_from("<I", bag, at)[0]
        size = struct.unpack_from("<I", bag, at + 4 + head)[0]
        data = at + 8 + head
        if b"op=\x05" in bag[at + 4 : data]:
            found.append((data, data + size))
        at = data + size
    return found


@pytest.fixture(params=MISSING)
def damaged(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> tuple[pathlib.Path, int]:
    """Writes the bag with one flipped byte in the middle of a chunk. Returns it and the number of
    missing messages.
    """
    bag = bytearray(real_file(f"rosbag20/{BAG}").read_bytes())
    start, end = chunks(bytes(bag))[request.param - 1]
    bag[(start + end) // 2] ^= 0xFF
    path = tmp_path / "bad.bag"
    path.write_bytes(bag)
    return path, MISSING[request.param]


def every(path: pathlib.Path, topic: str) -> dict[str, Callable[[], object]]:
    """All functions that read the records of a bag, or of a topic with missing messages."""
    log = lambda: rl.open(path)  # noqa: E731
    folder, whole = path.parent, real_file(f"rosbag20/{BAG}")
    outputs = (folder / f"out{number}" for number in itertools.count())
    return {
        "messages": lambda: list(log().messages()),
        "messages of a topic": lambda: list(log()[topic].messages()),
        "to_arrow": lambda: log()[topic].to_arrow(),
        "to_pandas": lambda: log()[topic].to_pandas(),
        "to_polars": lambda: log()[topic].to_polars(),
        "numpy": lambda: log()[topic].numpy(),
        "batches": lambda: list(log()[topic].batches()),
        "frames": lambda: log().frames(),
        "lazy": lambda: log()[topic].lazy().collect(),
        "dataset": lambda: log()[topic].dataset().to_table(),
        "health": lambda: log().health(),
        "align": lambda: log().align([topic], on="1s"),
        "scan": lambda: rl.scan(path, topic).collect(),
        "slice": lambda: log().slice(next(outputs)),
        "recover": lambda: rl.recover(path, next(outputs)),
        "diff": lambda: rl.diff(path, whole),
        "convert to mcap": lambda: rl.convert(path, next(outputs), kind="mcap"),
        "convert to ndjson": lambda: rl.convert(path, next(outputs), kind="ndjson"),
        "convert to bag2": lambda: rl.convert(path, next(outputs), kind="bag2"),
        "convert to parquet": lambda: rl.convert(path, next(outputs), kind="parquet", topics=topic),
        "drop-in read_messages": lambda: list(rosbag.Bag(path).read_messages(raw=True)),
        "drop-in get_message_count": lambda: rosbag.Bag(path).get_message_count(),
        "logs": lambda: rl.logs(path).map(lambda log: list(log.messages())),
    }


def said(work: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught if issubclass(warning.category, rl.DataLossWarning)]


def short_topic(path: pathlib.Path) -> str:
    """Returns a topic with missing messages."""
    with contextlib.suppress(StopIteration), rl.open(path) as log, warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.DataLossWarning)
        return next(name for name, topic in log.topics.items() if len(topic.to_arrow()) < topic.count)
    raise AssertionError("no topic lacks messages")


def test_every_function_that_reads_reports_the_loss(damaged: tuple[pathlib.Path, int]) -> None:
    path, missing = damaged
    topic = short_topic(path)
    words = f"{missing} records counted by the log are missing from the file"
    silent = {name: found for name, work in every(path, topic).items() if len(found := said(work)) != 1 or words not in found[0]}
    assert not silent


def test_an_intact_bag_has_no_warning() -> None:
    path = real_file(f"rosbag20/{BAG}")
    with rl.open(path) as log:
        assert said(lambda: list(log.messages())) == [] and log.records == MESSAGES
    assert said(lambda: rosbag.Bag(path).get_message_count()) == []


def test_the_other_messages_are_read(damaged: tuple[pathlib.Path, int]) -> None:
    path, missing = damaged
    with pytest.warns(rl.DataLossWarning), rl.open(path) as log:
        before = log.info
        assert sum(1 for _ in log.messages()) == MESSAGES - missing
        assert log.info == before and log.info.loss is None, "the summary is of the opening"
    with pytest.warns(rl.DataLossWarning), rosbag.Bag(path) as bag:
        assert sum(1 for _ in bag.read_messages(raw=True)) == MESSAGES - missing


def test_one_warning_for_one_log(damaged: tuple[pathlib.Path, int]) -> None:
    path, _ = damaged
    with rl.open(path) as log:
        assert len(said(lambda: (list(log.messages()), log.frames(), log.health()))) == 1


def test_strict_reads_everything(damaged: tuple[pathlib.Path, int]) -> None:
    path, missing = damaged
    with path.open("rb") as file:
        for source in (path, path.read_bytes(), file):
            with pytest.raises(rl.CorruptError, match=f"{missing} records"):
                rl.open(source, strict=True)
    with serving(path.parent) as address, pytest.raises(rl.CorruptError, match=f"{missing} records"):
        rl.open(f"{address}/{path.name}", strict=True)


def test_another_library_gets_an_error(damaged: tuple[pathlib.Path, int]) -> None:
    """Another library reads the stream, so the stream ends with an error instead of a warning."""
    path, missing = damaged
    topic = short_topic(path)
    for read in (pa.table, pl.DataFrame, lambda stream: pd.DataFrame.from_arrow(stream)):
        with rl.open(path) as log:
            if read in (pa.table, pl.DataFrame) or hasattr(pd.DataFrame, "from_arrow"):
                with pytest.raises(Exception, match=f"{missing} records"):
                    read(log[topic])


@contextlib.contextmanager
def serving(folder: pathlib.Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_reading_by_ranges_reports_the_loss(damaged: tuple[pathlib.Path, int]) -> None:
    path, missing = damaged
    topic = short_topic(path)
    words = f"{missing} records"
    with serving(path.parent) as address, contextlib.ExitStack() as files:
        url = f"{address}/{path.name}"
        jobs: list[Callable[[Any], object]] = [
            lambda log: list(log.messages()),
            lambda log: log[topic].to_arrow(),
            lambda log: list(log[topic].batches()),
            lambda log: log.health(),
            lambda log: log.slice(path.parent / "slice.bag", force=True),
        ]
        for source in (lambda: url, lambda: files.enter_context(path.open("rb"))):
            for work in jobs:
                with rl.open(source()) as log:
                    found = said(functools.partial(work, log))
                    assert len(found) == 1 and words in found[0], found


def test_the_command_line_reports_the_loss(damaged: tuple[pathlib.Path, int], tmp_path: pathlib.Path) -> None:
    path, missing = damaged
    out = tmp_path / "out"
    for arguments in (
        ["cat", path],
        ["stats", path],
        ["slice", path, "-o", out.with_suffix(".bag")],
        ["split", path, "--by-topic", "-o", out / "parts"],
        ["merge", path, path, "-o", out.with_suffix(".merged.bag")],
        ["diff", path, real_file(f"rosbag20/{BAG}")],
        ["export", path, "-o", out.with_suffix(".mcap")],
        ["export", path, "--to", "parquet", "-o", out / "tables"],
        ["recover", path, "-o", out.with_suffix(".recovered.bag")],
        ["report", path, "-o", out.with_suffix(".html")],
        ["ingest", path, "-o", out / "lake"],
    ):
        done = command(*arguments)
        words = "bytes could not be read" if arguments[0] == "ingest" else "missing"
        assert done.returncode in (1, 3) and words in done.stderr + done.stdout, (arguments, done)
    checked = command("check", path)
    assert checked.returncode == 1 and f"missing: {missing} records" in checked.stdout


def test_the_corpus_is_read_without_these_warnings() -> None:
    """Small bags are read completely when they are opened, so their loss is known then."""
    with rl.open(CORPUS / "rosbag" / "v2.0+several-chunks.bag") as log:
        assert said(lambda: list(log.messages())) == []
