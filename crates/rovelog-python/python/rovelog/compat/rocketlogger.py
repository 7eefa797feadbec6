"""Drop-in replacement for rocketlogger 2.1.3: `from rovelog.compat.rocketlogger import
RocketLoggerData`.

Intended differences are listed in docs/reference/python.md, with their reasons and tests.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from rovelog import _core
from rovelog._errors import RovelogError
from rovelog.compat import _rld_headers

if TYPE_CHECKING:
    import pandas

UNITS = {
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
BINARY = (3, 4)
UNLINKED = 65535
MERGED = {"I1": ("I1L", "I1H"), "I2": ("I2L", "I2H")}


class RocketLoggerFileError(IOError):
    """The file cannot be read."""


class RocketLoggerDataError(Exception):
    """The data cannot be used as asked."""


class RocketLoggerDataWarning(Warning):
    """Something about the data is worth knowing."""


class _Channel:
    """A channel: what the header says of it, and its raw values once they are wanted."""

    def __init__(self, name: str, unit: int, scale: int, size: int, valid: str | None, binary: bool) -> None:
        self.name = name
        self.unit = unit
        self.scale = scale
        self.size = size
        self.valid = valid
        self.binary = binary
        self.index: int | None = None
        self.merged: tuple[_Channel, _Channel, _Channel] | None = None
        """What a merged current is made of: the low range, the high one, whether the low one is valid."""
        self.values: Any = None


class RocketLoggerData:
    """A measurement: `get_data`, `get_time`, `get_validity`, `merge_channels`, `get_dataframe`."""

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
        self.load_file(filename, join_files, exclude_part, header_only, decimation_factor, recovery, memory_mapped)

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
        """Opens a file, and the files `<filename>_p#.rld` next to it.

        `exclude_part` skips parts by number; `header_only` skips the data; `decimation_factor`
        averages this many samples into one; `recovery` accepts a file that ends early, with all
        complete rows. Values are read on access from a mapped file, regardless of `memory_mapped`.
        """
        if self._filename is not None:
            raise RocketLoggerDataError("A data file is already loaded. Use separate instance for new file.")
        if not join_files and exclude_part is not None:
            raise ValueError("exclude_part on applicable when joining files")
        self._reader = _open(os.fspath(filename), join_files, exclude_part)
        facts = _core.rld_header(self._reader)
        if facts["data_block_size"] % decimation_factor > 0:
            raise ValueError("Decimation factor needs to be divider of the buffer size.")
        problems = self._reader.problems()
        # The original refuses blocks that the header does not count, too.
        behind = [problem for problem in problems if problem[1] == "header_behind"]
        if (behind or self._reader.info()["state"] != "complete") and not header_only:
            first = behind[0] if behind else problems[0]
            text = f"corrupt data: {first[5]} (byte {first[3]})"
            if not recovery:
                raise RocketLoggerDataError(text)
            warnings.warn(RocketLoggerDataWarning(text), stacklevel=2)
        self._header_only = header_only
        self._factor = decimation_factor
        self._rows = facts["rows"] // decimation_factor
        self._facts = facts
        names = [row[0] for row in facts["channels"]]
        self._channels = []
        for index, (name, unit, scale, size, valid, binary) in enumerate(facts["channels"]):
            channel = _Channel(name, unit, scale, size, None if valid is None else names[valid], binary)
            channel.index = index
            self._channels.append(channel)
        self._block_size = facts["data_block_size"] // decimation_factor
        self._rate = round(facts["sample_rate"] / decimation_factor)
        self._filename = os.fspath(filename)

    def get_channel_names(self) -> list[str]:
        """The names of all channels, sorted."""
        return sorted(channel.name for channel in self._channels)

    def get_comment(self) -> str:
        """The comment of the measurement."""
        return self._facts["comment"].split(b"\0")[0].decode("utf-8", "replace")

    def get_header(self) -> dict[str, Any]:
        """Counts, rate in samples per second, start (UTC), version and the logger's address."""
        start = np.datetime64(self._facts["start_sec"], "s") + np.timedelta64(self._facts["start_nsec"], "ns")
        return {
            "file_version": self._facts["file_version"],
            "data_block_size": self._block_size,
            "data_block_count": -(-self._rows // self._block_size) if self._block_size else 0,
            "sample_count": self._rows,
            "sample_rate": self._rate,
            "mac_address": self._facts["mac_address"],
            "start_time": start,
        }

    def get_filename(self) -> str:
        """The absolute name of the file."""
        return os.path.abspath(self._filename or "")

    def _channel(self, name: str) -> _Channel:
        for channel in self._channels:
            if channel.name == name:
                return channel
        raise KeyError(f"Channel '{name}' not found.")

    def _chosen(self, names: str | list[str]) -> list[str]:
        names = names if isinstance(names, list) else [names]
        return self.get_channel_names() if "all" in names else names

    def _need_data(self) -> None:
        if self._header_only:
            raise TypeError("No data to access for header only imported file.")

    def _values(self, channel: _Channel) -> Any:
        """Raw values, decimated: integers, truth values, or the averages of integers."""
        if channel.values is None:
            channel.values = self._read(channel)
        return channel.values

    def _read(self, channel: _Channel) -> Any:
        if channel.merged is not None:
            low, high, valid = channel.merged
            up = high.scale - low.scale
            highs = self._values(high) * (10.0**up if up < 0 else 10**up)
            return np.where(self._values(valid), self._values(low), highs)
        if channel.index is None:
            raise RocketLoggerDataError(f"Channel '{channel.name}' has no data.")
        memory = np.asarray(_core.rld_raw(self._reader, channel.index))
        return self._decimated(channel, memory.view(bool) if channel.binary else memory.view(np.int64))

    def _decimated(self, channel: _Channel, values: Any) -> Any:
        if self._factor == 1:
            return values
        groups = values[: self._rows * self._factor].reshape(self._rows, self._factor)
        if not channel.binary:
            return groups.mean(axis=1)
        # What says that values are valid has to hold for all of them.
        says_valid = any(other.valid == channel.name for other in self._channels)
        return groups.all(axis=1) if says_valid else groups.sum(axis=1) >= 0.5 * self._factor

    def get_data(self, channel_names: str | list[str] = ["all"]) -> Any:  # noqa: B006
        """Values in SI units, float64 of shape (samples, channels); columns in the order of the names."""
        names = self._chosen(channel_names)
        self._need_data()
        channels = [self._channel(name) for name in names]
        places = [_place(channel) for channel in channels]
        if self._factor == 1 and all(place is not None for place in places):
            memory = np.asarray(_core.rld_matrix(self._reader, [place for place in places if place is not None]))
            return memory.view(np.float64).reshape(len(channels), self._rows).T
        data = np.empty((self._rows, len(channels)))
        for place, channel in enumerate(channels):
            data[:, place] = _scaled(self._values(channel), channel.scale)
        return data

    def get_time(self, time_reference: str = "relative") -> Any:
        """Returns the times of the samples, shape (samples,): `relative` float64 s from the start
        at the true rate of the converter; `local` and `network` datetime64[ns] of the clock of
        the logger and of the network, exact, interpolated between block times.
        """
        self._need_data()
        if time_reference == "relative":
            return np.arange(0, self._rows) / (self._rate * ((100e6 / 49) / 2.048e6))
        if time_reference not in ("local", "network"):
            raise ValueError(f"Time reference '{time_reference}' undefined.")
        memory, complete = _core.rld_times(self._reader, time_reference == "network")
        if not complete:
            raise RocketLoggerDataError("Not all samples have a time: the block times of the file are not usable.")
        times = np.asarray(memory).view("datetime64[ns]")
        return times[:: self._factor][: self._rows]

    def get_unit(self, channel_names: str | list[str] = ["all"]) -> list[str]:  # noqa: B006
        """The units of channels, in the order of the names."""
        channels = [self._channel(name) for name in self._chosen(channel_names)]
        return [UNITS.get(channel.unit, f"unit {channel.unit}") for channel in channels]

    def get_validity(self, channel_names: str | list[str] = ["all"]) -> Any:  # noqa: B006
        """Whether values are in range: bool of shape (samples, channels)."""
        names = self._chosen(channel_names)
        self._need_data()
        validity = np.ones((self._rows, len(names)), dtype=bool)
        for place, name in enumerate(names):
            link = self._channel(name).valid
            if link is not None:
                validity[:, place] = self._values(self._channel(link))
        return validity

    def merge_channels(self, keep_channels: bool = False) -> RocketLoggerData:
        """Makes I1 of I1L and I1H, I2 of I2L and I2H: the low range where it is valid; drops those unless kept."""
        if self._header_only:
            raise TypeError("Data operations not permitted for header only imported file.")
        done = False
        for name, (low_name, high_name) in MERGED.items():
            there = {channel.name for channel in self._channels}
            if not {low_name, high_name} <= there:
                continue
            if name in there:
                raise RocketLoggerDataError(f"Name of merged output channel '{name}' already in use.")
            low, high = self._channel(low_name), self._channel(high_name)
            if low.valid is None:
                raise RocketLoggerDataError(f"Channel '{low_name}' has invalid link ({UNLINKED}).")
            valid = self._channel(low.valid)
            merged = _Channel(name, low.unit, low.scale, low.size + high.size, None, False)
            merged.merged = (low, high, valid)
            self._channels.append(merged)
            if not keep_channels:
                for gone in (low.valid, low_name, high_name):
                    self.remove_channel(gone)
            done = True
        if not done:
            warnings.warn(RocketLoggerDataWarning("No channels found to merge."), stacklevel=2)
        return self

    def add_channel(self, channel_info: dict[str, Any], channel_data: Any) -> None:
        """Adds a channel: `unit_index`, `scale` (exponent of ten), `data_size` (bytes), `valid_link` (index of a channel
        that is there, or 65535), `name`; and its raw values."""
        if not isinstance(channel_info, dict):
            raise TypeError("Channel info structure is expected to be a dictionary.")
        for key, kind in (("unit_index", int), ("scale", int), ("data_size", int), ("valid_link", int), ("name", str)):
            if key not in channel_info:
                raise ValueError(f"Channel info: {key} not defined.")
            if not isinstance(channel_info[key], kind):
                raise TypeError(f"Channel info: invalid {key}.")
        if channel_info["unit_index"] not in UNITS:
            raise ValueError("Channel info: invalid channel unit.")
        link = channel_info["valid_link"]
        if link != UNLINKED and not 0 <= link < len(self._channels):
            raise ValueError("Channel info: invalid link.")
        name = channel_info["name"]
        if len(name) > 16:
            raise ValueError("Channel info: name too long.")
        if any(channel.name == name for channel in self._channels):
            raise ValueError(f"Cannot add channel with name '{name}', name already in use.")
        if self._channels and np.shape(channel_data) != (self._rows,):
            raise RocketLoggerDataError(f"Incompatible data size. Expected array of shape ({self._rows},).")
        unit = channel_info["unit_index"]
        valid = None if link == UNLINKED else self._channels[link].name
        channel = _Channel(name, unit, channel_info["scale"], channel_info["data_size"], valid, unit in BINARY)
        channel.values = channel_data
        binaries = sum(other.binary for other in self._channels)
        self._channels.insert(binaries if channel.binary else len(self._channels), channel)

    def remove_channel(self, channel_name: str) -> None:
        """Removes a channel; values that were linked to it count as valid."""
        gone = self._channel(channel_name)
        self._channels.remove(gone)
        for channel in self._channels:
            if channel.valid == channel_name:
                channel.valid = None

    def get_dataframe(
        self,
        channel_names: str | list[str] = ["all"],  # noqa: B006
        time_reference: str = "relative",
    ) -> pandas.DataFrame:
        """A pandas.DataFrame: a column for each channel in SI units, indexed by the time."""
        import pandas

        names = self._chosen(channel_names)
        return pandas.DataFrame(self.get_data(names), index=self.get_time(time_reference), columns=names)

    def plot(self, channel_names: str | list[str] = ["all"], show: bool = True) -> Any:  # noqa: B006
        """Plots channels over the relative time, grouped by their unit; `voltages`, `currents`, `digital` name groups."""
        import matplotlib.pyplot as plt

        names = channel_names if isinstance(channel_names, list) else [channel_names]
        groups: dict[str, list[str]] = {"voltage [V]": [], "current [A]": [], "digital": [], "": []}
        words = {"voltage [V]": "voltages", "current [A]": "currents", "digital": "digital", "": "all"}
        for channel in self._channels:
            unit = UNITS.get(channel.unit, "")
            group = "digital" if channel.binary else {"voltage": "voltage [V]", "current": "current [A]"}.get(unit, "")
            if {"all", words[group], channel.name} & set(names):
                groups[group].append(channel.name)
        for name in set(names) - {"all", *words.values()}:
            self._channel(name)
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


def _place(channel: _Channel) -> tuple[int, tuple[int, int] | None] | None:
    """Where the file has what a channel is made of; None where it is not of the file alone."""
    if channel.merged is None:
        return None if channel.index is None else (channel.index, None)
    low, high, valid = (part.index for part in channel.merged)
    return None if low is None or high is None or valid is None else (low, (high, valid))


def _scaled(values: Any, scale: int) -> Any:
    """Physical values, correctly rounded where they are integers: a power of ten up to 22 is exact."""
    return values / 10.0**-scale if scale < 0 else values * 10.0**scale


def _check_headers(path: str, base: str, extension: str, join_files: bool, excluded: set[int]) -> None:
    """Raises as the original does where the headers of a recording contradict themselves or each other."""
    first: _rld_headers.LeadIn | None = None
    number = 0
    while number in excluded or os.path.isfile(name := path if number == 0 else f"{base}_p{number}{extension}"):
        head = None if number in excluded else _rld_headers.lead_in(name)
        if head is not None:
            wrong = _rld_headers.contradiction(head) or (_rld_headers.misplaced(head) if first is None else None)
            if wrong is not None:
                raise RocketLoggerFileError(f"{wrong} ({name})")
            if first is not None and (field := _rld_headers.difference(first, head)) is not None:
                raise RocketLoggerDataError(f"File header not matching at field: {field} ({name})")
            first = first or head
        number += 1
        if not join_files:
            return


def _open(path: str, join_files: bool, exclude_part: int | Iterable[int] | None) -> _core.Reader:
    if exclude_part is None:
        excluded: set[int] = set()
    elif isinstance(exclude_part, int):
        excluded = {exclude_part}
    elif isinstance(exclude_part, (list, np.ndarray)):
        excluded = {int(part) for part in exclude_part}
    else:
        raise ValueError("invalid exclude_part: accepting integer, a list of integers or an integer Numpy array.")
    base, extension = os.path.splitext(path)
    _check_headers(path, base, extension, join_files, excluded)
    try:
        # The parts of a file of ambient sensors belong to each other, too.
        apart = join_files and base.endswith("-ambient")
        if not excluded and not apart:
            reader = _core.Reader.open(path, alone=not join_files)
        else:
            parts = []
            number = 0
            while number in excluded or os.path.isfile(name := path if number == 0 else f"{base}_p{number}{extension}"):
                if number not in excluded:
                    parts.append(name)
                number += 1
            if not parts:
                raise RocketLoggerDataError(f"Could not load valid data from '{path}' and current import configuration.")
            reader = _core.rld_join(parts)
    except RovelogError as error:
        raise RocketLoggerFileError(str(error)) from error
    if reader.info()["format"] != "rld":
        raise RocketLoggerFileError(f"Invalid RocketLogger data file: {path}")
    return reader
