"""Logs, their parts and the objects of the drop-ins are passed to other processes.

The processes are those of Dask, and those of multiprocessing with the method `spawn`, which share
no memory with the first process.
"""

from __future__ import annotations

import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import real_file

import rovelog as rl
from rovelog.compat.pyulog import ULog
from rovelog.compat.rocketlogger import RocketLoggerData
from rovelog.compat.rosbag import Bag


def _sum(values: Any) -> tuple[str, int, float]:
    with np.errstate(all="ignore"):
        return str(values.dtype), len(values), float(np.nansum(np.asarray(values, dtype=float)))


def facts(given: Any) -> Any:
    """Returns the content of an object, computed in the process that has it."""
    if isinstance(given, (rl.Topic, rl.Table)):
        return [(name, _sum(values)) for name, values in given.numpy().items() if values.dtype.kind in "iuf"]
    if isinstance(given, rl.Log):
        return repr(given), given.records, [topic.name for topic in given.topics.values()], given.problems
    if isinstance(given, rl.Message):
        return given.topic, given.t_ns, given.offset, given.fields()
    if isinstance(given, ULog):
        return given.msg_info_dict, [facts(data) for data in given.data_list]
    if isinstance(given, ULog.Data):
        return given.name, given.multi_id, [(name, _sum(values)) for name, values in given.data.items()]
    if isinstance(given, RocketLoggerData):
        times = (given.get_time(reference)[-1] for reference in ("relative", "local", "network"))
        return given.get_channel_names(), given.get_header(), given.get_data().sum(axis=0).tolist(), *times
    return given.to_table().num_rows if hasattr(given, "to_table") else (str(given), given._md5sum)


def test_spawned_processes() -> None:
    pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed")
    log = rl.open(real_file("ulog/sample.ulg"), topics=["vehicle_attitude", "battery_status"])
    ulog = ULog(str(real_file("ulog/sample_log_small.ulg")))
    attitude = log["vehicle_attitude"]
    merged = RocketLoggerData(str(real_file("rld/test_full.rld"))).merge_channels()
    parts = RocketLoggerData(str(real_file("rld/v4_split.rld")), exclude_part=1)
    with Bag(str(real_file("rosbag12/type_zoo.bag"))) as bag:
        messages = [message for _, message, _ in bag.read_messages()][:3]
    given = [log, attitude, attitude.select("q").between("+1s", "+2s"), attitude.table(), next(iter(attitude)), ulog, ulog.data_list[0]]
    given += [merged, parts, *messages, attitude.dataset()]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(facts, given, chunksize=1)
    for one, other in zip(given, found, strict=True):
        assert repr(facts(one)) == repr(other), type(one)


def test_pickles_contain_changes_by_scripts() -> None:
    data = RocketLoggerData(str(real_file("rld/test_full.rld"))).merge_channels()
    rows = data.get_header()["sample_count"]
    data.add_channel({"unit_index": 1, "scale": -2, "data_size": 4, "valid_link": 65535, "name": "X"}, np.arange(rows))
    again = pickle.loads(pickle.dumps(data))
    assert again.get_channel_names() == data.get_channel_names() and np.array_equal(again.get_data(), data.get_data())
    assert np.array_equal(again.get_data("X")[:, 0], np.arange(rows) / 100)


def column(topic: rl.Topic, seconds: int) -> Any:
    part = topic.between(f"+{seconds}s", f"+{seconds + 1}s")
    return part.to_pandas()[["t_ns", "rollspeed"]]


def test_dask() -> None:
    dask = pytest.importorskip("dask", reason="SKIPPED: dask is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="SKIPPED: dask.dataframe is not installed")
    topic = rl.open(real_file("ulog/sample.ulg"))["vehicle_attitude"]
    with dask.config.set(scheduler="processes", num_workers=2, **{"multiprocessing.context": "spawn"}):
        found = dask.compute(*(dask.delayed(facts)(given) for given in (topic, topic.select("q"))))
        seconds = range(5)
        lazy = frames.from_map(column, [topic] * len(seconds), seconds, meta=column(topic, 0)[:0])
        frame = lazy.compute()
        mean = lazy["rollspeed"].mean().compute()
    assert repr(found) == repr((facts(topic), facts(topic.select("q"))))
    want = topic.between("+0s", "+5s").to_pandas()
    assert len(frame) == len(want) > 100 and np.array_equal(frame["t_ns"], want["t_ns"])
    assert abs(mean - want["rollspeed"].astype(float).mean()) < 1e-6
