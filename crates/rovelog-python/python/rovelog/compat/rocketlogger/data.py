"""The class `RocketLoggerData` with the API of rocketlogger 2.1.3. Values are read when they are
accessed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from rovelog import _core
from rovelog.compat.rocketlogger import _open
from rovelog.compat.rocketlogger._decimate import _decimate_binary, _decimate_max, _decimate_mean, _decimate_min
from rovelog.compat.rocketlogger._errors import RocketLoggerDataError, RocketLoggerDataWarning, RocketLoggerFileError

if TYPE_CHECKING:
    import pandas

__all__ = [
    "RocketLoggerData",
    "RocketLoggerDataError",
    "RocketLoggerDataWarning",
    "RocketLoggerFileError",
    "_decimate_binary",
    "_decimate_max",
    "_decimate_mean",
    "_decimate_min",
]

_ROCKETLOGGER_ADC_CLOCK_SCALE = (100e6 / 49) / 2.048e6
_ROCKETLOGGER_FILE_MAGIC = 0x444C5225
_SUPPORTED_FILE_VERSIONS = [1, 2, 3, 4]
_CHANNEL_NAME_BYTES = 16
_CHANNEL_UNIT_NAMES = {
    0: "unit-less",
    1: "voltage",
    2: "current",
    3: "binary",
    4: "data valid (binary)",
    5: "illuminance",
    6: "temperature",
    7: "integer",
    8: "percent",
    9: "pressure",
    10: "time delta",
    0xFFFFFFFF: "undefined",
}
_CHANNEL_IS_BINARY = {unit: unit in (3, 4) for unit in _CHANNEL_UNIT_NAMES}
_CHANNEL_VALID_UNLINKED = 65535
_CHANNEL_MERGE_CANDIDATES = [
    {"low": "I1L", "high": "I1H", "merged": "I1"},
    {"low": "I2L", "high": "I2H", "merged": "I2"},
]
FIELDS = [("unit_index", "unit"), ("scale", "scale"), ("data_size", "data size"), ("valid_link", "link"), ("name", "name")]
"""Keys of the dict that describes an added channel, each with its name in error messages."""


class _Column:
    """The values of a channel: from the file, merged from two channels, or set by a script."""

    def __init__(
        self,
        index: int | None = None,
        binary: bool = False,
        validity: bool = False,
        data_size: int = 0,
        scale: int | None = None,
        merged: tuple[_Column, _Column, _Column, int] | None = None,
        values: Any = None,
    ) -> None:
        self.index = index
        self.binary = binary
        self.validity = validity
        """True if the channel contains the valid flags of another channel."""
        self.dtype = np.dtype(f"i{data_size}" if data_size in (1, 2, 4, 8) else np.int64)
        self.scale = scale
        """Power of ten with which `_core.rld_matrix` scales the values. None for values that a
        script has set.
        """
        self.merged = merged
        """Low-range channel, high-range channel, channel with the valid flags of the low range, and
        power of ten that converts high-range values to the unit of the low range.
        """
        self.values = values

    def matrix_column(self) -> tuple[int, tuple[int, int] | None] | None:
        """Returns the column for `_core.rld_matrix`; None if the file does not contain the
        values.
        """
        if self.merged is None:
            return None if self.index is None else (self.index, None)
        low, high, valid = (part.index for part in self.merged[:3])
        return None if low is None or high is None or valid is None else (low, (high, valid))


class RocketLoggerData:
    """A measurement.

    Scripts also use the private attributes of rocketlogger: `_header` is a dict with the header and
    a dict for each channel, and `_data` has the raw values of each channel. Changes to both apply
    to all functions.
    """

    _header: dict[str, Any]
    _loaded: list[Any] | None = None
    """The list `_data`, after a script has accessed it."""

    def __init__(
        self,
        filename: str | os.PathLike[str] | None = None,
        join_files: bool = True,
        header_only: bool = False,
        exclude_part: int | Iterable[int] | None = None,
        decimation_factor: int = 1,
        recovery: bool = False,
        memory_mapped: bool = True,
    ) -> None:
        """Opens the file; see `load_file`."""
        self._filename: str | None = None
        if filename is None:
            raise NotImplementedError("RocketLogger data file creation currently unsupported.")
        if not os.path.isfile(filename):
            raise FileNotFoundError(f"File '{os.fspath(filename)}' does not exist.")
        self._load(filename, join_files, exclude_part, header_only, decimation_factor, recovery)

    def load_file(
        self,
        filename: str | os.PathLike[str],
        join_files: bool = True,
        exclude_part: int | Iterable[int] | None = None,
        header_only: bool = False,
        decimation_factor: int = 1,
        recovery: bool = False,
        memory_mapped: bool = True,
    ) -> None:
        """Opens a recording.

        - `join_files`: also opens the files `<filename>_p#.rld` next to it
        - `exclude_part`: numbers of files to skip
        - `header_only`: skips the data
        - `decimation_factor`: number of samples that are averaged
        - `recovery`: accepts a truncated file, with its complete blocks
        - `memory_mapped`: ignored. Files are always mapped, except with `exclude_part` and for
          ambient sensors, whose files are read into memory.
        """
        self._load(filename, join_files, exclude_part, header_only, decimation_factor, recovery)

    def _load(
        self,
        filename: str | os.PathLike[str],
        join_files: bool,
        exclude_part: int | Iterable[int] | None,
        header_only: bool,
        factor: int,
        recovery: bool,
    ) -> None:
        if self._filename is not None:
            raise RocketLoggerDataError("A data file is already loaded. Use separate instance for new file.")
        if not join_files and exclude_part is not None:
            raise ValueError("exclude_part on applicable when joining files")
        path = os.fspath(filename)
        excluded = _open.excluded_parts(exclude_part)
        names = list(_open.parts(path, join_files, excluded))
        # Warnings are attributed to the line of the script that opens the file.
        stacklevel = 4
        _open.check_headers(names, stacklevel)
        self._reader = _open.open_parts(path, names, join_files, excluded)
        self._opened = os.path.abspath(path), [os.path.abspath(name) for name in names], join_files, excluded
        facts = _core.rld_header(self._reader)
        if facts["data_block_size"] % factor > 0:
            raise ValueError("Decimation factor needs to be divider of the buffer size.")
        self._kept: _open.CompleteBlocks | None = None
        """The complete blocks, if a file is truncated."""
        if not header_only:
            self._kept = _open.check_lengths(names, recovery, stacklevel)
            if self._kept is None:
                self._check_state(recovery, stacklevel)
        self._header_only = header_only
        self._factor = factor
        rows = facts["rows"] if self._kept is None else sum(part.stop - part.start for part in self._kept.rows)
        size, rows = facts["data_block_size"] // factor, rows // factor
        channels = [
            {
                "unit_index": unit,
                "scale": scale,
                "data_size": data_size,
                "valid_link": _CHANNEL_VALID_UNLINKED if valid is None else valid,
                "name": name,
                "unit": _CHANNEL_UNIT_NAMES.get(unit, f"unit {unit}"),
            }
            for name, unit, scale, data_size, valid, _ in facts["channels"]
        ]
        binaries = sum(binary for *_, binary in facts["channels"])
        self._header = {
            "file_magic": facts["file_magic"],
            "file_version": facts["file_version"],
            "header_length": facts["header_length"],
            "data_block_size": size,
            "data_block_count": -(-rows // size) if size else 0,
            "sample_count": rows,
            "sample_rate": round(facts["sample_rate"] / factor),
            "mac_address": bytearray(facts["mac_address"]),
            "start_time": np.datetime64(facts["start_sec"], "s") + np.timedelta64(facts["start_nsec"], "ns"),
            "comment_length": facts["comment_length"],
            "channel_binary_count": binaries,
            "channel_analog_count": len(channels) - binaries,
            "comment": facts["comment"].split(b"\0")[0].decode("utf-8", "replace"),
            "channels": channels,
        }
        links = {channel["valid_link"] for channel in channels}
        self._columns = [
            _Column(index, binary, index in links, data_size, scale)
            for index, (_, _, scale, data_size, _, binary) in enumerate(facts["channels"])
        ]
        self._filename = path

    def __getstate__(self) -> dict[str, Any]:
        # Unpickling opens the file again. The pickle contains the channels that were added and the
        # values that were accessed.
        return {name: value for name, value in self.__dict__.items() if name != "_reader"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reader = _open.open_parts(*self._opened)

    def _check_state(self, recovery: bool, stacklevel: int) -> None:
        """Raises an exception or issues a warning for blocks that the header does not count, and
        for any lost data.
        """
        problems = self._reader.problems()
        behind = [problem for problem in problems if problem[1] == "header_behind"]
        if not behind and self._reader.info()["state"] == "complete":
            return
        first = behind[0] if behind else problems[0]
        text = f"corrupt data: {first[5]} (byte {first[3]})"
        if not recovery:
            raise RocketLoggerDataError(text)
        warnings.warn(RocketLoggerDataWarning(text), stacklevel=stacklevel + 1)

    @property
    def _data(self) -> list[Any] | None:
        """The raw values of each channel, in the order of `_header["channels"]`. None if no data
        was loaded.
        """
        if self._loaded is None and not self._header_only:
            self._loaded = [self._values(column) for column in self._columns]
        return self._loaded

    @_data.setter
    def _data(self, values: list[Any]) -> None:
        self._loaded = values

    def _complete(self, values: Any) -> Any:
        """Returns the values in complete blocks."""
        return values if self._kept is None else np.concatenate([values[part] for part in self._kept.rows])

    @property
    def _timestamps_realtime(self) -> Any:
        """Times of the blocks on the realtime clock, datetime64[ns]."""
        return self._block_times(0)

    @property
    def _timestamps_monotonic(self) -> Any:
        """Times of the blocks on the monotonic clock, datetime64[ns]."""
        return self._block_times(1)

    def _block_times(self, clock: int) -> Any:
        if self._header_only:
            return None
        times = np.asarray(_core.rld_block_times(self._reader)).view("datetime64[ns]")
        times = times.reshape(2, -1)[clock]
        return times if self._kept is None else np.concatenate([times[part] for part in self._kept.blocks])

    def get_channel_names(self) -> list[str]:
        """Returns the names of all channels, sorted."""
        return sorted(channel["name"] for channel in self._header["channels"])

    def get_comment(self) -> str:
        """Returns the comment of the measurement."""
        comment: str = self._header["comment"]
        return comment

    def get_header(self) -> dict[str, Any]:
        """Returns the version, the counts, the rate in samples per second, the start (UTC), and the
        MAC address.
        """
        counts = ("file_version", "data_block_size", "data_block_count", "sample_count", "sample_rate")
        return {
            **{name: self._header[name] for name in counts},
            "mac_address": self._header["mac_address"].hex(":"),
            "start_time": self._header["start_time"],
        }

    def get_filename(self) -> str:
        """Returns the absolute path of the file."""
        return os.path.abspath(self._filename or "")

    def _get_channel_index(self, channel_name: str) -> int | None:
        """Returns the index of a channel in `_header["channels"]`."""
        names = [channel["name"] for channel in self._header["channels"]]
        return names.index(channel_name) if channel_name in names else None

    def _get_channel_name(self, channel_indexes: int | list[int]) -> Any:
        """Returns the name of a channel, or the names of several."""
        channels = self._header["channels"]
        if isinstance(channel_indexes, list):
            return [channels[index]["name"] for index in channel_indexes]
        return channels[channel_indexes]["name"]

    def _index(self, name: str) -> int:
        index = self._get_channel_index(name)
        if index is None:
            raise KeyError(f"Channel '{name}' not found.")
        return index

    def _chosen(self, names: str | list[str]) -> list[str]:
        names = names if isinstance(names, list) else [names]
        return self.get_channel_names() if "all" in names else names

    def _need_data(self) -> None:
        if self._header_only:
            raise TypeError("No data to access for header only imported file.")

    def _column(self, index: int) -> _Column:
        """Returns a channel. If a script has changed its values or its scale, the channel does not
        refer to the file.
        """
        column = self._columns[index]
        if self._loaded is not None:
            return _Column(values=self._loaded[index])
        if column.scale != self._header["channels"][index]["scale"]:
            return _Column(values=self._values(column))
        return column

    def _values(self, column: _Column) -> Any:
        """Returns the raw values of a channel: integers, booleans, or averages of integers."""
        if column.values is not None:
            return column.values
        if column.merged is not None:
            low, high, valid, up = column.merged
            highs = self._values(high)
            # High-range values in the unit of the low range can exceed 32 bits.
            highs = (highs if highs.dtype.kind == "f" else highs.astype(np.int64)) * (10.0**up if up < 0 else 10**up)
            column.values = np.where(self._values(valid), self._values(low), highs)
            return column.values
        assert column.index is not None
        memory = np.asarray(_core.rld_raw(self._reader, column.index))
        values = memory.view(bool) if column.binary else memory.view(np.int64).astype(column.dtype, copy=False)
        column.values = self._complete(values)
        if self._factor > 1:
            # A decimated value is valid only if all its samples are valid.
            of_binary = _decimate_min if column.validity else _decimate_binary
            column.values = (of_binary if column.binary else _decimate_mean)(column.values, self._factor)
        return column.values

    def get_data(self, channel_names: str | list[str] = ["all"]) -> Any:  # noqa: B006
        """Returns values in SI units, float64 with the shape (samples, channels).

        The columns have the order of the names.
        """
        names = self._chosen(channel_names)
        self._need_data()
        indices = [self._index(name) for name in names]
        columns = [self._column(index) for index in indices]
        in_file = [found for column in columns if (found := column.matrix_column()) is not None]
        if self._factor == 1 and len(in_file) == len(columns):
            memory = np.asarray(_core.rld_matrix(self._reader, in_file))
            return self._complete(memory.view(np.float64).reshape(len(indices), -1).T)
        data = np.empty((self._header["sample_count"], len(indices)))
        for place, (index, column) in enumerate(zip(indices, columns, strict=True)):
            data[:, place] = _scaled(self._values(column), self._header["channels"][index]["scale"])
        return data

    def get_time(self, time_reference: str = "relative") -> Any:
        """Returns the times of the samples, with the shape (samples,).

        - `relative`: seconds since the start (float64), from the true rate of the converter
        - `local`: times on the monotonic clock (datetime64[ns])
        - `network`: times on the realtime clock (datetime64[ns])

        The times of both clocks are interpolated between block times with integers.
        """
        self._need_data()
        rows = self._header["sample_count"]
        if time_reference == "relative":
            times = np.arange(0, rows, dtype=np.float64)
            times /= self._header["sample_rate"] * _ROCKETLOGGER_ADC_CLOCK_SCALE
            return times
        if time_reference not in ("local", "network"):
            raise ValueError(f"Time reference '{time_reference}' undefined.")
        memory, complete = _core.rld_times(self._reader, time_reference == "network")
        if not complete:
            raise RocketLoggerDataError("Not all samples have a time: the block times of the file are not usable.")
        times = self._complete(np.asarray(memory).view("datetime64[ns]"))
        return times[:: self._factor][:rows]

    def get_unit(self, channel_names: str | list[str] = ["all"]) -> list[str]:  # noqa: B006
        """Returns the units of channels, in the order of the names."""
        return [self._header["channels"][self._index(name)]["unit"] for name in self._chosen(channel_names)]

    def get_validity(self, channel_names: str | list[str] = ["all"]) -> Any:  # noqa: B006
        """Returns True for values that are in range, with the shape (samples, channels)."""
        names = self._chosen(channel_names)
        self._need_data()
        validity = np.ones((self._header["sample_count"], len(names)), dtype=bool)
        for place, name in enumerate(names):
            link = self._header["channels"][self._index(name)]["valid_link"]
            if link != _CHANNEL_VALID_UNLINKED:
                validity[:, place] = self._values(self._column(link))
        return validity

    def merge_channels(self, keep_channels: bool = False) -> RocketLoggerData:
        """Merges I1L and I1H to I1, and I2L and I2H to I2.

        A merged value is the value of the low range if this value is valid. Otherwise it is the
        value of the high range. The original channels are removed unless `keep_channels` is set.
        """
        if self._header_only:
            raise TypeError("Data operations not permitted for header only imported file.")
        done = False
        for names in _CHANNEL_MERGE_CANDIDATES:
            low, high = self._get_channel_index(names["low"]), self._get_channel_index(names["high"])
            if low is None or high is None:
                continue
            if self._get_channel_index(names["merged"]) is not None:
                raise RocketLoggerDataError(f"Name of merged output channel '{names['merged']}' already in use.")
            channels = self._header["channels"]
            link = channels[low]["valid_link"]
            if link >= len(channels):
                raise RocketLoggerDataError(f"Channel '{names['low']}' has invalid link ({link}).")
            size = channels[low]["data_size"] + channels[high]["data_size"]
            info = {**channels[low], "data_size": size, "valid_link": _CHANNEL_VALID_UNLINKED, "name": names["merged"]}
            scale = channels[low]["scale"]
            parts = self._column(low), self._column(high), self._column(link)
            merged = _Column(scale=scale, merged=(*parts, channels[high]["scale"] - scale))
            valid = self._get_channel_name(link)
            self._insert(info, merged)
            if not keep_channels:
                for gone in (valid, names["low"], names["high"]):
                    self.remove_channel(gone)
            done = True
        if not done:
            warnings.warn(RocketLoggerDataWarning("No channels found to merge."), stacklevel=2)
        return self

    def add_channel(self, channel_info: dict[str, Any], channel_data: Any) -> None:
        """Adds a channel with its raw values. `channel_info` is a dict with these keys:

        - `unit_index`: code of the unit
        - `scale`: power of ten that converts raw values to the unit
        - `data_size`: size of a value in bytes
        - `valid_link`: index of the channel with the valid flags, or 65535
        - `name`: name of the channel
        """
        if not isinstance(channel_info, dict):
            raise TypeError("Channel info structure is expected to be a dictionary.")
        for key, word in FIELDS:
            if key not in channel_info:
                raise ValueError(f"Channel info: {word} {'undefined' if key == 'name' else 'not defined'}.")
            if key == "unit_index":
                if channel_info[key] not in _CHANNEL_UNIT_NAMES:
                    raise ValueError("Channel info: invalid channel unit.")
            elif not isinstance(channel_info[key], str if key == "name" else int):
                raise TypeError(f"Channel info: invalid {word}.")
        link, name = channel_info["valid_link"], channel_info["name"]
        if link != _CHANNEL_VALID_UNLINKED and not 0 <= link < len(self._header["channels"]):
            raise ValueError("Channel info: invalid link.")
        if len(name) > _CHANNEL_NAME_BYTES:
            raise ValueError("Channel info: name too long.")
        if self._get_channel_index(name) is not None:
            raise ValueError(f"Cannot add channel with name '{name}', name already in use.")
        rows = self._header["sample_count"]
        if self._header["channels"] and np.shape(channel_data) != (rows,):
            raise RocketLoggerDataError(f"Incompatible data size. Expected array of shape ({rows},).")
        info = {**channel_info, "unit": _CHANNEL_UNIT_NAMES[channel_info["unit_index"]]}
        self._insert(info, _Column(values=channel_data))

    def _insert(self, info: dict[str, Any], column: _Column) -> None:
        """Inserts a channel. Binary channels come before analog ones. Valid links are adjusted."""
        channels = self._header["channels"]
        binary = _CHANNEL_IS_BINARY[info["unit_index"]]
        at = self._header["channel_binary_count"] if binary else len(channels)
        channels.insert(at, info)
        self._columns.insert(at, column)
        if self._loaded is not None:
            self._loaded.insert(at, self._values(column))
        for channel in channels:
            if at <= channel["valid_link"] < _CHANNEL_VALID_UNLINKED:
                channel["valid_link"] += 1
        self._header["channel_binary_count" if binary else "channel_analog_count"] += 1

    def remove_channel(self, channel_name: str) -> None:
        """Removes a channel. Values of channels that were linked to it count as valid."""
        index = self._index(channel_name)
        for channel in self._header["channels"]:
            if channel["valid_link"] == index:
                channel["valid_link"] = _CHANNEL_VALID_UNLINKED
            elif index < channel["valid_link"] < _CHANNEL_VALID_UNLINKED:
                channel["valid_link"] -= 1
        del self._header["channels"][index]
        del self._columns[index]
        if self._loaded is not None:
            del self._loaded[index]
        binary = index < self._header["channel_binary_count"]
        self._header["channel_binary_count" if binary else "channel_analog_count"] -= 1

    def get_dataframe(
        self,
        channel_names: str | list[str] = ["all"],  # noqa: B006
        time_reference: str = "relative",
    ) -> pandas.DataFrame:
        """Returns a pandas.DataFrame with one column per channel, in SI units, indexed by time."""
        import pandas

        names = self._chosen(channel_names)
        return pandas.DataFrame(self.get_data(names), index=self.get_time(time_reference), columns=names)

    def plot(self, channel_names: str | list[str] = ["all"], show: bool = True) -> Any:  # noqa: B006
        """Plots channels over the relative time, with one diagram per unit.

        The names `voltages`, `currents` and `digital` select all channels of a kind.
        """
        import matplotlib.pyplot as plt

        names = channel_names if isinstance(channel_names, list) else [channel_names]
        groups: dict[str, list[str]] = {"voltage [V]": [], "current [A]": [], "digital": [], "": []}
        words = {"voltage [V]": "voltages", "current [A]": "currents", "digital": "digital", "": "all"}
        for channel in self._header["channels"]:
            binary = _CHANNEL_IS_BINARY.get(channel["unit_index"], False)
            group = {"voltage": "voltage [V]", "current": "current [A]"}.get(channel["unit"], "")
            group = "digital" if binary else group
            if {"all", words[group], channel["name"]} & set(names):
                groups[group].append(channel["name"])
        for name in set(names) - {"all", *words.values()}:
            self._index(name)
        shown = {label: members for label, members in groups.items() if members}
        _, axes = plt.subplots(len(shown), 1, sharex="col", squeeze=False)
        plt.suptitle(self._filename or "")
        for axis, (label, members) in zip(axes[:, 0], shown.items(), strict=True):
            axis.plot(self.get_time(), self.get_data(members))
            axis.set_ylabel(label)
            axis.legend(members)
        axes[-1, 0].set_xlabel("time [s]")
        if show:
            plt.show(block=False)
        return plt


def _scaled(values: Any, scale: int) -> Any:
    """Returns physical values. For integers, they are correctly rounded.

    Powers of ten up to 22 are exact floats, so a single division rounds only once.
    """
    return values / 10.0**-scale if scale < 0 else values * 10.0**scale
