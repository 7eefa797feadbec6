"""The class `ULog` with the API of pyulog 1.3.0.

Data are read when a script accesses them. The rows of a dataset are copied on the first access.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import IO, Any, ClassVar

import numpy as np

from rovelog import _output
from rovelog.compat.pyulog import _messages, _write
from rovelog.compat.pyulog._messages import TYPES
from rovelog.compat.pyulog._source import LAZY_ATTRIBUTES, Series, Source
from rovelog.compat.pyulog.exceptions import DatasetNotFound, ULogException, ULogIncompatibleFlagException

__all__ = ["ULog", "ULogException", "ULogIncompatibleFlagException"]


class ULog:
    """A flight log with the API of pyulog: `data_list`, `get_dataset`, parameters, info messages,
    texts, dropouts.

    Subclasses and scripts can use and replace the private attributes of pyulog, such as
    `_data_list` and `_msg_info_dict`.
    """

    # Scripts compare and copy `__dict__`, so it contains only the attributes of pyulog.
    __slots__ = ("__dict__", "__weakref__", "_source")

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

    _UNPACK_TYPES = {name: list(row) for name, row in TYPES.items()}
    _disable_str_exceptions = False

    MessageFormat = _messages.MessageFormat
    MessageLogging = _messages.MessageLogging
    MessageLoggingTagged = _messages.MessageLoggingTagged
    MessageDropout = _messages.MessageDropout
    _MessageInfo = _messages.MessageInfo
    _FieldData = _messages.FieldData

    _debug: bool
    _source: Source | None
    _file_corrupt: bool
    _file_version: int
    _start_timestamp: int
    _last_timestamp: int
    _compat_flags: list[int]
    _incompat_flags: list[int]
    _appended_offsets: list[int]
    _msg_info_dict: dict[str, Any]
    _msg_info_dict_types: dict[str, str]
    _msg_info_multiple_dict: dict[str, list[list[Any]]]
    _msg_info_multiple_dict_types: dict[str, str]
    _initial_parameters: dict[str, int | float]
    _default_parameters: dict[int, dict[str, int | float]]
    _changed_parameters: list[tuple[int, str, int | float]]
    _message_formats: dict[str, _messages.MessageFormat]
    _logged_messages: list[_messages.MessageLogging]
    _logged_messages_tagged: dict[int, list[_messages.MessageLoggingTagged]]
    _dropouts: list[_messages.MessageDropout]
    _data_list: list[ULog.Data]
    _sync_seq_cnt: int
    _filtered_message_ids: set[int]
    _missing_message_ids: set[int]

    def __init__(
        self,
        log_file: str | os.PathLike[str] | IO[bytes] | None,
        message_name_filter_list: str | Iterable[str] | None = None,
        disable_str_exceptions: bool = True,
        parse_header_only: bool = False,
    ) -> None:
        """Opens the log.

        - `log_file`: path or binary file object. None makes an empty object, for subclasses.
        - `message_name_filter_list`: names of the datasets to read
        - `disable_str_exceptions`: ignores bytes in texts that are not UTF-8. Otherwise they raise
          UnicodeDecodeError.
        - `parse_header_only`: skips the data
        """
        ULog._disable_str_exceptions = disable_str_exceptions
        errors = "ignore" if disable_str_exceptions else "strict"
        self._debug = False
        self._source = None
        # pyulog sets this to False when it searches for a sync message and finds none. This reader
        # does not search for sync messages.
        self._has_sync = True
        self._subscriptions: dict[int, Any] = {}
        if log_file is None:
            self._clear()
            return
        names = message_name_filter_list
        if names is not None and not isinstance(names, str):
            names = set(names)
        self._source = source = Source(log_file, names, errors, parse_header_only)
        self._file_version, self._start_timestamp = source.version, source.start
        self._compat_flags, self._incompat_flags = source.compat, source.incompat
        self._appended_offsets = source.appended
        if not disable_str_exceptions:
            # pyulog decodes all texts in its constructor, so an invalid text must raise here.
            _ = source.others

    def _clear(self) -> None:
        """Sets the attributes of an empty log."""
        self._file_corrupt = False
        self._file_version = self._start_timestamp = self._last_timestamp = self._sync_seq_cnt = 0
        self._compat_flags, self._incompat_flags, self._appended_offsets = [0] * 8, [0] * 8, []
        self._msg_info_dict, self._msg_info_dict_types = {}, {}
        self._msg_info_multiple_dict, self._msg_info_multiple_dict_types = {}, {}
        self._initial_parameters, self._default_parameters, self._changed_parameters = {}, {}, []
        self._message_formats, self._logged_messages, self._logged_messages_tagged = {}, [], {}
        self._dropouts, self._data_list = [], []
        self._filtered_message_ids, self._missing_message_ids = set(), set()

    def __getattr__(self, name: str) -> Any:
        if name == "_data_list" and self._source is not None:
            value: Any = [ULog.Data(series) for series in self._source.series]
        elif name in LAZY_ATTRIBUTES and self._source is not None:
            value = LAZY_ATTRIBUTES[name](self._source)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self.__dict__[name] = value
        return value

    def _read_all(self) -> None:
        """Reads all attributes that have not been accessed yet."""
        for name in (*LAZY_ATTRIBUTES, "_data_list"):
            getattr(self, name)

    def __getstate__(self) -> dict[str, Any]:
        # As in pyulog, the pickle contains all data, because scripts may have changed the data.
        self._read_all()
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._source = None
        self.__dict__.update(state)

    @staticmethod
    def get_field_size(type_str: str) -> int:
        """Returns the size of a type such as `int8_t` or `float` in bytes."""
        return TYPES[type_str][1]

    @staticmethod
    def parse_string(cstr: bytes) -> str:
        """Decodes a text. Ignores bytes that are not UTF-8 if the last log was opened that way."""
        return str(cstr, "utf-8", "ignore" if ULog._disable_str_exceptions else "strict")

    @property
    def start_timestamp(self) -> int:
        """Start of the log, in us."""
        return self._start_timestamp

    @property
    def last_timestamp(self) -> int:
        """Largest timestamp of a row, in us."""
        return self._last_timestamp

    @property
    def msg_info_dict(self) -> dict[str, Any]:
        """Info messages: key -> value."""
        return self._msg_info_dict

    @property
    def msg_info_multiple_dict(self) -> dict[str, list[list[Any]]]:
        """Multi info messages: key -> lists of values."""
        return self._msg_info_multiple_dict

    @property
    def initial_parameters(self) -> dict[str, int | float]:
        """Parameters at the start of the data: name -> value."""
        return self._initial_parameters

    @property
    def changed_parameters(self) -> list[tuple[int, str, int | float]]:
        """Parameters set during the log: (time in us, name, value)."""
        return self._changed_parameters

    def get_default_parameters(self, default_type: int) -> dict[str, int | float]:
        """Returns the default values of parameters, if they differ from the actual values.
        `default_type` is 0 (system) or 1 (current setup).
        """
        return self._default_parameters.get(default_type, {})

    @property
    def message_formats(self) -> dict[str, _messages.MessageFormat]:
        """Formats: name -> format."""
        return self._message_formats

    @property
    def logged_messages(self) -> list[_messages.MessageLogging]:
        """Console messages without a tag."""
        return self._logged_messages

    @property
    def logged_messages_tagged(self) -> dict[int, list[_messages.MessageLoggingTagged]]:
        """Console messages with a tag: tag -> messages."""
        return self._logged_messages_tagged

    @property
    def dropouts(self) -> list[_messages.MessageDropout]:
        """Dropouts, with `duration` in ms and `timestamp` in us."""
        return self._dropouts

    @property
    def data_list(self) -> list[ULog.Data]:
        """Datasets with rows, ordered by name and instance."""
        return self._data_list

    @property
    def has_data_appended(self) -> int:
        """1 if data were appended to the log, otherwise 0."""
        return self._incompat_flags[0] & 1

    @property
    def has_default_parameters(self) -> int:
        """1 if the log contains default values of parameters according to its flags, otherwise
        0.
        """
        return self._compat_flags[0] & 1

    @property
    def file_corruption(self) -> bool:
        """True if bytes inside the log could not be read. A truncated log is not corrupt."""
        return self._file_corrupt

    def get_dataset(self, name: str, multi_instance: int = 0) -> ULog.Data:
        """Returns the dataset with this name and instance. Raises IndexError if there is no such
        dataset.
        """
        for data in self._data_list:
            if data.name == name and data.multi_id == multi_instance:
                if (series := data.__dict__.get("_series")) is not None:
                    series.by_name = True
                return data
        raise DatasetNotFound(f"there is no dataset {name} with instance {multi_instance} in this log")

    def get_version_info(self, key_name: str = "ver_sw_release") -> tuple[int, int, int, int] | None:
        """Returns a version as (major, minor, patch, type).

        The type is 255 for a release, and 192 to 254 for a release candidate.
        """
        if key_name not in self._msg_info_dict:
            return None
        value = self._msg_info_dict[key_name]
        return (value >> 24 & 0xFF, value >> 16 & 0xFF, value >> 8 & 0xFF, value & 0xFF)

    def get_version_info_str(self, key_name: str = "ver_sw_release") -> str | None:
        """Returns a version as text: `v1.2.3 (RC)`. Returns None for a development version."""
        version = self.get_version_info(key_name)
        if version is None or version[3] < 64:
            return None
        kind = " (alpha)" if version[3] < 128 else " (beta)" if version[3] < 192 else " (RC)" if version[3] < 255 else ""
        return f"v{version[0]}.{version[1]}.{version[2]}{kind}"

    def write_ulog(self, log_file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes the log with its current data.

        An existing file is replaced after the new one is complete, so it may be the log that was
        opened.
        """

        def write(path: str) -> dict[str, Any]:
            with open(path, "wb") as out:
                _write.write(self, out)
            return {}

        if not isinstance(log_file, (str, os.PathLike)):
            _write.write(self, log_file)
        elif os.path.exists(log_file) and not os.path.isfile(log_file):
            write(os.fspath(log_file))
        else:
            _output.write_file(log_file, (), True, write)

    def __eq__(self, other: object) -> bool:
        """Returns True if `other` has all attributes of this log, with the same values."""
        if not isinstance(other, ULog):
            return NotImplemented
        self._read_all()
        return all(value == getattr(other, name) for name, value in self.__dict__.items())

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    class Data:
        """The rows of one topic and instance.

        `data` has a writable, one-dimensional array for each flat field name. Booleans and characters
        are int8. `data["timestamp"]` has the times in us.
        """

        def __init__(self, message_add_logged_obj: Series) -> None:
            self._series = message_add_logged_obj
            self.name: str = message_add_logged_obj.message_name
            self.multi_id: int = message_add_logged_obj.multi_id
            self.msg_id: int = message_add_logged_obj.msg_id
            self.field_data: list[_messages.FieldData] = message_add_logged_obj.field_data
            self.timestamp_idx: int = message_add_logged_obj.timestamp_idx

        @cached_property
        def data(self) -> dict[str, Any]:
            """Flat field name -> array with one entry per row."""
            return self._series.read()

        def __getstate__(self) -> dict[str, Any]:
            _ = self.data
            return {name: value for name, value in self.__dict__.items() if name != "_series"}

        def list_value_changes(self, field_name: str) -> list[tuple[Any, Any]]:
            """Returns (timestamp, value) of each row whose value differs from the row before.

            The first row is included. Rows with the timestamp 0 are ignored.
            """
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

        __hash__: ClassVar[None] = None  # type: ignore[assignment]
