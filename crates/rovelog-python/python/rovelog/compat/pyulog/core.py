"""`ULog` with the API of pyulog 1.3.0 over the Rovelog reader. Rows are copied when a dataset is
accessed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import IO, Any

import numpy as np

from rovelog import _core
from rovelog._errors import MissingFileError, NotALogError, RovelogError, UnreadableError, UnsupportedError
from rovelog.compat.pyulog import _messages, _write
from rovelog.compat.pyulog._messages import SIZES, Field, OtherMessages, flatten
from rovelog.compat.pyulog.exceptions import DatasetNotFound, ULogException, ULogIncompatibleFlagException

ONE_BY_ONE = 3
"""Number of datasets that are copied one at a time; if a script accesses more, all are copied in one scan."""


class ULog:
    """A flight log with the API of pyulog: `data_list`, `get_dataset`, parameters, info messages,
    texts, dropouts.
    """

    HEADER_BYTES = b"\x55\x4c\x6f\x67\x01\x12\x35"
    SYNC_BYTES = b"\x2f\x73\x13\x20\x25\x0c\xbb\x12"
    MSG_TYPE_FORMAT = ord("F")
    MSG_TYPE_DATA = ord("D")
    MSG_TYPE_INFO = ord("I")
    MSG_TYPE_INFO_MULTIPLE = ord("M")
    MSG_TYPE_PARAMETER = ord("P")
    MSG_TYPE_PARAMETER_DEFAULT = ord("Q")
    MSG_TYPE_ADD_LOGGED_MSG = ord("A")
    MSG_TYPE_REMOVE_LOGGED_MSG = ord("R")
    MSG_TYPE_SYNC = ord("S")
    MSG_TYPE_DROPOUT = ord("O")
    MSG_TYPE_LOGGING = ord("L")
    MSG_TYPE_LOGGING_TAGGED = ord("C")
    MSG_TYPE_FLAG_BITS = ord("B")

    MessageFormat = _messages.MessageFormat
    MessageLogging = _messages.MessageLogging
    MessageLoggingTagged = _messages.MessageLoggingTagged
    MessageDropout = _messages.MessageDropout

    def __init__(
        self,
        log_file: str | os.PathLike[str] | IO[bytes] | None,
        message_name_filter_list: str | Iterable[str] | None = None,
        disable_str_exceptions: bool = True,
        parse_header_only: bool = False,
    ) -> None:
        """Opens the log.

        `log_file` is a name or a readable binary object; `message_name_filter_list` keeps the datasets of this name, or of these;
        with `disable_str_exceptions` what is no UTF-8 in texts is left out, otherwise it is a UnicodeDecodeError;
        `parse_header_only` leaves out all data.
        """
        self._errors = "ignore" if disable_str_exceptions else "strict"
        self._header_only = parse_header_only
        names = message_name_filter_list
        self._names = None if names is None else {names} if isinstance(names, str) else set(names)
        self._touched = 0
        if log_file is None:
            raise ULogException("a log file has to be named")
        self._reader = _open(log_file)
        self._file_version, self._start, self._compat, self._incompat = _core.ulog_header(self._reader)
        # Strict texts are to raise here, as they do in pyulog.
        if not disable_str_exceptions:
            _ = self._other_messages

    @staticmethod
    def get_field_size(type_str: str) -> int:
        """Bytes of a type: `int8_t`, `float`."""
        return SIZES[type_str]

    @cached_property
    def _definitions(self) -> OtherMessages:
        """Messages before the data section."""
        found, _ = _core.ulog_messages(self._reader, {}, True)
        return OtherMessages(found, self._errors)

    @cached_property
    def _others_and_last(self) -> tuple[OtherMessages, int]:
        if self._header_only:
            return self._definitions, self._start
        timestamps = {}
        for data in self._series:
            offset = data._timestamp_offset
            if offset is not None:
                timestamps[data._index] = (offset, data._dtype.itemsize, data._max_size)
        found, last = _core.ulog_messages(self._reader, timestamps, False)
        return OtherMessages(found, self._errors), last

    @property
    def _other_messages(self) -> OtherMessages:
        """All messages of the log but rows."""
        return self._others_and_last[0]

    @cached_property
    def _series(self) -> list[ULog.Data]:
        """The datasets with rows, in pyulog's order."""
        if self._header_only:
            return []
        formats = self._definitions.formats
        series = []
        for index, (msg_id, multi_id, name, count) in enumerate(_core.ulog_subscriptions(self._reader)):
            if count == 0 or (self._names is not None and name not in self._names):
                continue
            try:
                fields = flatten(name, formats)
            except KeyError:
                # Defined after the data began.
                found, _ = _core.ulog_messages(self._reader, {}, False)
                formats = OtherMessages(found, self._errors).formats
                fields = flatten(name, formats)
            series.append(ULog.Data(self, index, name, multi_id, msg_id, fields))
        return sorted(series, key=lambda data: (data.name, data.multi_id))

    def _rows(self, data: ULog.Data) -> Any:
        """The rows of a dataset; those of all the others with it, where the script seems to want all."""
        wanted = [data]
        if self._touched >= ONE_BY_ONE:
            wanted = [other for other in self._series if other._rows is None]
        self._touched += 1
        sizes = [(other._index, other._dtype.itemsize) for other in wanted]
        for other, memory in zip(wanted, _core.ulog_rows(self._reader, sizes), strict=True):
            other._rows = np.asarray(memory).view(other._dtype)
        return data._rows

    @property
    def start_timestamp(self) -> int:
        """The start of the log, us."""
        return self._start

    @property
    def last_timestamp(self) -> int:
        """The largest timestamp of a row, us."""
        return self._others_and_last[1]

    @cached_property
    def msg_info_dict(self) -> dict[str, Any]:
        """The information messages."""
        return self._other_messages.infos

    @cached_property
    def msg_info_multiple_dict(self) -> dict[str, list[list[Any]]]:
        """The information messages with several values: key -> lists of values."""
        return self._other_messages.multi_infos

    @cached_property
    def initial_parameters(self) -> dict[str, int | float]:
        """Parameters at the start of the data."""
        return self._definitions.parameters

    @cached_property
    def changed_parameters(self) -> list[tuple[int, str, int | float]]:
        """The parameters set during the log: (us, name, value)."""
        return self._other_messages.changed_parameters

    def get_default_parameters(self, default_type: int) -> dict[str, int | float]:
        """The defaults that differ from the value; 0 system, 1 current setup."""
        return self._other_messages.defaults.get(default_type, {})

    @cached_property
    def message_formats(self) -> dict[str, _messages.MessageFormat]:
        """The formats by name."""
        return self._other_messages.formats

    @cached_property
    def logged_messages(self) -> list[_messages.MessageLogging]:
        """The texts without a tag."""
        return self._other_messages.texts

    @cached_property
    def logged_messages_tagged(self) -> dict[int, list[_messages.MessageLoggingTagged]]:
        """The texts with a tag, by tag."""
        return self._other_messages.tagged

    @cached_property
    def dropouts(self) -> list[_messages.MessageDropout]:
        """The dropouts: `duration` in ms, `timestamp` in us."""
        return self._other_messages.dropouts

    @cached_property
    def data_list(self) -> list[ULog.Data]:
        """The datasets with rows, by name and instance."""
        return list(self._series)

    @property
    def has_data_appended(self) -> int:
        """1 where the log has data appended, else 0."""
        return self._incompat[0] & 1

    @property
    def has_default_parameters(self) -> int:
        """1 where the log says that it has defaults of parameters, else 0."""
        return self._compat[0] & 1

    @cached_property
    def file_corruption(self) -> bool:
        """Whether something inside the log could not be read. A log that breaks off is none."""
        problems = self._reader.problems()
        return not self._header_only and any(row[2] == "data_lost" and row[1] != "cut" for row in problems)

    def get_dataset(self, name: str, multi_instance: int = 0) -> ULog.Data:
        """The dataset of that name and instance; raises an IndexError where there is none."""
        for data in self.data_list:
            if data.name == name and data.multi_id == multi_instance:
                return data
        raise DatasetNotFound(f"there is no dataset {name} with instance {multi_instance} in this log")

    def get_version_info(self, key_name: str = "ver_sw_release") -> tuple[int, int, int, int] | None:
        """(major, minor, patch, type) of a version; type 255 is a release, 192 and more a candidate."""
        if key_name not in self.msg_info_dict:
            return None
        value = self.msg_info_dict[key_name]
        return (value >> 24 & 0xFF, value >> 16 & 0xFF, value >> 8 & 0xFF, value & 0xFF)

    def get_version_info_str(self, key_name: str = "ver_sw_release") -> str | None:
        """`v1.2.3 (RC)`; None for what is no release."""
        version = self.get_version_info(key_name)
        if version is None or version[3] < 64:
            return None
        kind = " (alpha)" if version[3] < 128 else " (beta)" if version[3] < 192 else " (RC)" if version[3] < 255 else ""
        return f"v{version[0]}.{version[1]}.{version[2]}{kind}"

    def write_ulog(self, log_file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes the log with the data as it is now."""
        if isinstance(log_file, (str, os.PathLike)):
            with open(log_file, "wb") as out:
                _write.write(self, out)
        else:
            _write.write(self, log_file)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ULog):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED) and all(
            self.get_default_parameters(kind) == other.get_default_parameters(kind) for kind in (0, 1)
        )

    __hash__ = None  # type: ignore[assignment]

    class Data:
        """The rows of one topic and instance: `data` has a writable array of one dimension for each flat field name.

        Truth values and chars are int8; times are us, in `data["timestamp"]`.
        """

        def __init__(self, log: ULog, index: int, name: str, multi_id: int, msg_id: int, fields: list[Field]) -> None:
            self._log = log
            self._index = index
            self.name = name
            self.multi_id = multi_id
            self.msg_id = msg_id
            self._max_size = sum(SIZES[field.type_str] for field in fields)
            while fields and fields[-1].field_name.startswith("_padding"):
                fields.pop()
            self.field_data = fields
            names = [field.field_name for field in fields]
            self.timestamp_idx = names.index("timestamp") if "timestamp" in names else -1
            self._rows: Any = None

        @cached_property
        def _dtype(self) -> np.dtype[Any]:
            return np.dtype([(field.field_name, field.dtype) for field in self.field_data])

        @property
        def _timestamp_offset(self) -> int | None:
            if self.timestamp_idx < 0:
                return None
            return sum(SIZES[field.type_str] for field in self.field_data[: self.timestamp_idx])

        @cached_property
        def data(self) -> dict[str, Any]:
            """Flat field name -> array, one entry per row."""
            rows = self._rows if self._rows is not None else self._log._rows(self)
            return {field.field_name: rows[field.field_name] for field in self.field_data}

        def list_value_changes(self, field_name: str) -> list[tuple[Any, Any]]:
            """(timestamp, value) of the first row with a time, and of each row whose value differs from the one before."""
            times, values = self.data["timestamp"], self.data[field_name]
            times, values = times[times != 0], values[times != 0]
            if len(times) == 0:
                return []
            changed = np.flatnonzero(values[1:] != values[:-1]) + 1
            return [(times[0], values[0]), *zip(times[changed], values[changed], strict=True)]

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, ULog.Data):
                return NotImplemented
            same = ("name", "multi_id", "msg_id", "field_data", "timestamp_idx")
            if any(getattr(self, name) != getattr(other, name) for name in same):
                return False
            return self.data.keys() == other.data.keys() and all(
                np.array_equal(values, other.data[name], equal_nan=True) for name, values in self.data.items()
            )

        __hash__ = None  # type: ignore[assignment]


_COMPARED = (
    "start_timestamp",
    "last_timestamp",
    "msg_info_dict",
    "msg_info_multiple_dict",
    "initial_parameters",
    "changed_parameters",
    "message_formats",
    "logged_messages",
    "logged_messages_tagged",
    "dropouts",
    "data_list",
)


def _open(log_file: str | os.PathLike[str] | IO[bytes]) -> _core.Reader:
    try:
        if isinstance(log_file, (str, os.PathLike)):
            reader = _core.Reader.open(os.fspath(log_file))
        else:
            with log_file:
                reader = _core.Reader.from_bytes(log_file.read())
    except UnsupportedError as error:
        raise _as(ULogIncompatibleFlagException, error) from error
    except (NotALogError, UnreadableError) as error:
        raise _as(ULogException, error) from error
    except MissingFileError as error:
        raise FileNotFoundError(2, "No such file or directory", os.fspath(log_file)) from error  # type: ignore[arg-type]
    if reader.info()["format"] != "ulog":
        raise ULogException("Invalid file format: it is no ULog", path=reader.path)
    return reader


def _as(kind: type[ULogException], error: RovelogError) -> ULogException:
    return kind(str(error.args[0]), offset=error.offset, format=error.format, path=error.path, next=error.next)
