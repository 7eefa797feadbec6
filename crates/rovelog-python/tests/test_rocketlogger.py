"""The drop-in for rocketlogger compared with rocketlogger 2.1.3 on all real logs. Intended
differences have their own tests.
"""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import struct
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import CORPUS, REAL, over, real_file

import rovelog as rl

rocketlogger = pytest.importorskip("rocketlogger.data", reason="SKIPPED: the original is not installed")

from rovelog.compat.rocketlogger import data as ours  # noqa: E402

LOGS = sorted(path for path in REAL.glob("rld/*.rld") if "_p" not in path.stem[-3:])
# The original drops an incomplete last block, rejects version 1, and cannot load truncated logs.
DIFFERENT = {"test_unsupported", "test_truncated", "v4_partial"}


def real_logs(names: set[str] | None = None) -> list[object]:
    """Returns the parameters for a test over the logs that both packages read with the same
    result.
    """
    return over(path for path in LOGS if path.stem not in DIFFERENT and (names is None or path.stem in names))


def log(name: str) -> pathlib.Path:
    return real_file(f"rld/{name}.rld")


def read(module: Any, path: pathlib.Path, **named: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.RocketLoggerData(str(path), **named)


def close(mine: Any, theirs: Any) -> bool:
    """Values are equal except for the last bit, because the original multiplies by an inexact power
    of ten.
    """
    return bool(np.all(np.abs(mine - theirs) <= np.spacing(np.abs(theirs))))


@pytest.mark.parametrize("path", real_logs())
def test_every_public_value(path: pathlib.Path) -> None:
    theirs, mine = read(rocketlogger, path), read(ours, path)
    assert mine.get_channel_names() == theirs.get_channel_names()
    assert mine.get_comment() == theirs.get_comment()
    assert mine.get_filename() == theirs.get_filename()
    assert mine.get_header() == theirs.get_header()
    assert mine.get_unit() == theirs.get_unit()
    data = mine.get_data()
    assert data.dtype == np.float64 and data.flags.writeable and data.flags.f_contiguous
    for index, values in enumerate(theirs._data):
        assert np.array_equal(mine._data[index], values)
    for name in ("_timestamps_realtime", "_timestamps_monotonic"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name))
    assert mine._header == theirs._header
    assert close(data, theirs.get_data())
    assert np.array_equal(mine.get_validity(), theirs.get_validity())
    assert np.array_equal(mine.get_time(), theirs.get_time())
    some = mine.get_channel_names()[::-2]
    assert close(mine.get_data(some), theirs.get_data(some))
    assert mine.get_unit(some) == theirs.get_unit(some)
    assert close(mine.get_data(some[0]), theirs.get_data(some[0]))
    frames = mine.get_dataframe(), theirs.get_dataframe()
    assert list(frames[0].columns) == list(frames[1].columns)
    assert frames[0].index.equals(frames[1].index)


@pytest.mark.parametrize("path", real_logs())
def test_times(path: pathlib.Path) -> None:
    """Times are equal except for the rounding of the original, whose floats have a resolution of
    256 ns.
    """
    theirs, mine = read(rocketlogger, path), read(ours, path)
    size = mine.get_header()["data_block_size"]
    for reference in ("local", "network"):
        times = mine.get_time(reference)
        assert times.dtype == np.dtype("datetime64[ns]") and len(times) == len(mine.get_data())
        if len(times) <= size:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = theirs.get_time(reference)
        apart = np.abs((times - want).astype(np.int64))[:-size]
        assert apart.max(initial=0) <= 512


@pytest.mark.parametrize("path", real_logs())
@pytest.mark.parametrize("factor", [2, 10])
def test_decimation(path: pathlib.Path, factor: int) -> None:
    try:
        theirs = read(rocketlogger, path, decimation_factor=factor)
    except ValueError:
        with pytest.raises(ValueError, match="divider"):
            read(ours, path, decimation_factor=factor)
        return
    mine = read(ours, path, decimation_factor=factor)
    assert mine.get_header() == theirs.get_header()
    assert np.allclose(mine.get_data(), theirs.get_data(), rtol=1e-15, atol=0)
    assert np.array_equal(mine.get_validity(), theirs.get_validity())
    assert np.array_equal(mine.get_time(), theirs.get_time())


@pytest.mark.parametrize("path", real_logs({"test_full", "test_analog_only", "v4_full_dt", "v4_split", "v4_negnsec"}))
@pytest.mark.parametrize("keep", [False, True])
def test_merged_currents(path: pathlib.Path, keep: bool) -> None:
    theirs, mine = read(rocketlogger, path).merge_channels(keep), read(ours, path).merge_channels(keep)
    assert mine.get_channel_names() == theirs.get_channel_names()
    assert close(mine.get_data(), theirs.get_data())
    assert mine.get_unit() == theirs.get_unit()


def test_values_of_all_cases() -> None:
    """Compares the matrix with scaled raw columns, for channels of all sizes, binary channels and
    merged currents.
    """
    seen = set()
    # These cases have values with an invalid size or scale, or two channels with the same name.
    without = {"data-size-0", "data-size-9", "scale-refused", "name-repeated"}
    for path in sorted(CORPUS.glob("rld/*.rld")):
        try:
            data = read(ours, path, recovery=True)
        except ours.RocketLoggerFileError:
            continue
        for merge in (False, True) if path.stem not in without else ():
            if merge:
                with warnings.catch_warnings(), contextlib.suppress(ours.RocketLoggerDataError):
                    warnings.simplefilter("ignore")
                    data.merge_channels()
            for column, channel in zip(data._columns, data._header["channels"], strict=True):
                got, want = data.get_data(channel["name"])[:, 0], ours._scaled(data._values(column), channel["scale"])
                # Powers of ten above 22 are not exact floats.
                same = np.array_equal(got, want) if abs(channel["scale"]) <= 22 else np.allclose(got, want, rtol=1e-15, atol=0)
                assert same, (path.stem, channel)
                seen.add((channel["data_size"], column.merged is not None))
    assert seen == {(size, False) for size in range(9)} | {(8, True)}


def test_validity_after_merging() -> None:
    """In the original, valid links refer to wrong channels after channels were removed."""
    mine = read(ours, log("test_full")).merge_channels()
    assert mine.get_validity(["I1", "V1"]).all()
    kept = read(ours, log("test_full"))
    before = kept.get_validity(["I1L"])
    assert np.array_equal(kept.merge_channels(keep_channels=True).get_validity(["I1L"]), before)


def test_version_1_is_read() -> None:
    path = log("test_unsupported")
    with pytest.raises(rocketlogger.RocketLoggerFileError):
        read(rocketlogger, path)
    mine = read(ours, path)
    assert mine.get_header()["file_version"] == 1
    assert mine.get_data().shape == (131_000, 15)


def test_truncated_files_keep_complete_blocks() -> None:
    path = log("test_truncated")
    for module in (rocketlogger, ours):
        with pytest.raises(module.RocketLoggerDataError, match="corrupt data: file size"):
            read(module, path)
    theirs, mine = read(rocketlogger, path, recovery=True), read(ours, path, recovery=True)
    assert mine.get_header() == theirs.get_header()
    assert close(mine.get_data(), theirs.get_data())
    assert np.array_equal(mine._timestamps_realtime, theirs._timestamps_realtime)
    with pytest.warns(ours.RocketLoggerDataWarning, match="corrupt data: recovered 4 data blocks"):
        ours.RocketLoggerData(str(path), recovery=True)
    # Only the native reader returns the rows of the incomplete block.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rl.open(path).records == 4999


def test_a_short_last_block_is_read() -> None:
    path = log("v4_partial")
    assert len(read(ours, path).get_data()) == 2250


def test_one_block_has_times() -> None:
    times = read(ours, log("test_single_block")).get_time("network")
    assert not np.isnat(times).any() and (np.diff(times).astype(np.int64) > 0).all()


def test_parts() -> None:
    path = log("v4_split")
    for named in ({}, {"join_files": False}, {"exclude_part": 1}, {"exclude_part": [0, 2]}):
        theirs, mine = read(rocketlogger, path, **named), read(ours, path, **named)
        assert close(mine.get_data(), theirs.get_data()), named
        assert mine.get_header()["sample_count"] == theirs.get_header()["sample_count"]
    for module in (rocketlogger, ours):
        with pytest.raises(ValueError):
            read(module, path, join_files=False, exclude_part=1)
        with pytest.raises(module.RocketLoggerDataError):
            read(module, path, exclude_part=[0, 1, 2])


def test_channels_are_added_and_removed() -> None:
    theirs, mine = (read(module, log("test_full")) for module in (rocketlogger, ours))
    for data in (theirs, mine):
        info = {"unit_index": 1, "unit": "voltage", "scale": -3, "data_size": 4, "valid_link": 65535, "name": "X"}
        data.add_channel(info, np.arange(5000))
        data.remove_channel("V2")
        with pytest.raises(ValueError):
            data.add_channel(info, np.arange(5000))
    assert mine.get_channel_names() == theirs.get_channel_names()
    assert close(mine.get_data(), theirs.get_data())


def test_changes_of_values_apply_to_all_functions() -> None:
    path = log("test_full")

    def in_place(data: Any, index: int) -> None:
        data._data[index] //= 2

    def item(data: Any, index: int) -> None:
        data._data[index] = data._data[index] * 2

    def whole(data: Any, index: int) -> None:
        data._data = [values[::-1] for values in data._data]

    def scale(data: Any, index: int) -> None:
        data._header["channels"][index]["scale"] = -3

    for change in (in_place, item, whole, scale):
        for name in ("V1", "I1L", "I1H", "I1L_valid"):
            results = []
            for module in (rocketlogger, ours):
                data = read(module, path)
                index = data._get_channel_index(name)
                if data._data[index].dtype == bool and change is not whole:
                    continue
                change(data, index)
                results.append((data.get_data(), data.get_validity(), data.merge_channels().get_data()))
            for theirs, mine in zip(*results, strict=True) if results else ():
                assert close(mine, theirs) if mine.dtype == np.float64 else np.array_equal(mine, theirs), (change, name)


@pytest.mark.parametrize("path", real_logs())
def test_raw_values_have_the_types_of_the_file(path: pathlib.Path) -> None:
    theirs, mine = read(rocketlogger, path), read(ours, path)
    assert [values.dtype for values in mine._data] == [values.dtype for values in theirs._data]


def test_errors(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other.rld").write_bytes(bytes(100))
    for module in (rocketlogger, ours):
        with pytest.raises(module.RocketLoggerFileError):
            read(module, tmp_path / "other.rld")
        with pytest.raises(FileNotFoundError):
            read(module, tmp_path / "no.rld")
        with pytest.raises(NotImplementedError):
            module.RocketLoggerData()
        header = read(module, log("test_full"), header_only=True)
        with pytest.raises(TypeError):
            header.get_data()
        with pytest.raises(KeyError):
            read(module, log("test_full")).get_data(["nothing"])


def test_texts_do_not_lose_the_file(tmp_path: pathlib.Path) -> None:
    """The original cannot read comments that are not ASCII, or unknown units."""
    data = bytearray(log("test_full").read_bytes())
    comment = 56
    data[comment : comment + 2] = "é".encode()
    (tmp_path / "comment.rld").write_bytes(data)
    with pytest.raises(UnicodeDecodeError):
        read(rocketlogger, tmp_path / "comment.rld")
    assert read(ours, tmp_path / "comment.rld").get_comment().startswith("é")
    shutil.copy(log("test_full"), tmp_path / "plain.rld")
    assert rl.open(tmp_path / "plain.rld").records == 5000


def edited(folder: pathlib.Path, name: str, at: int, code: str, value: int) -> pathlib.Path:
    """Writes a copy of a log with another number in its header."""
    data = bytearray(log("test_full").read_bytes())
    struct.pack_into(code, data, at, value)
    (folder / name).write_bytes(data)
    return folder / name


def test_contradicting_headers_raise_as_in_the_original(tmp_path: pathlib.Path) -> None:
    length = struct.unpack_from("<H", log("test_full").read_bytes(), 6)[0]
    shutil.copy(log("v4_split"), tmp_path / "split.rld")
    shutil.copy(log("test_full"), tmp_path / "split_p1.rld")
    shutil.copy(log("v4_split_p1"), tmp_path / "later.rld")
    part = bytearray(log("v4_split_p1").read_bytes())
    struct.pack_into("<q", part, 32, 1)
    shutil.copy(log("v4_split"), tmp_path / "other.rld")
    (tmp_path / "other_p1.rld").write_bytes(part)
    logs = [
        edited(tmp_path, "blocks.rld", 12, "<I", 99),
        edited(tmp_path, "samples.rld", 16, "<Q", 99_999_999),
        edited(tmp_path, "longer.rld", 6, "<H", length + 1),
        tmp_path / "split.rld",
        tmp_path / "other.rld",
    ]
    raised = set()
    for path in logs:
        for named in ({}, {"header_only": True}, {"recovery": True}, {"join_files": False}, {"exclude_part": [0]}):
            outcomes = []
            for module in (rocketlogger, ours):
                try:
                    outcomes.append(read(module, path, **named).get_header()["sample_count"])
                except Exception as error:
                    outcomes.append((type(error).__name__, str(error).split(" (")[0]))
            assert outcomes[0] == outcomes[1], (path.name, named)
            raised.add(outcomes[0])
    assert ("RocketLoggerFileError", "inconsistent number of samples taken!") in raised
    assert ("RocketLoggerDataError", "File header not matching at field: start_time") in raised
    assert ("RocketLoggerFileError", f"File position {length} does not match header size {length + 1}") in raised
