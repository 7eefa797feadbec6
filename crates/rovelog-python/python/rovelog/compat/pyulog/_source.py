"""The log file of a `ULog` object. Its parts are read when a script accesses them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import cached_property
from typing import IO, Any

import numpy as np

from rovelog import _core
from rovelog._errors import MissingFileError, NotALogError, RovelogError, UnreadableError, UnsupportedError
from rovelog.compat.pyulog._messages import TYPES, FieldData, MessageFormat, OtherMessages, flatten
from rovelog.compat.pyulog.exceptions import ULogException, ULogIncompatibleFlagException

MAX_SINGLE_READS = 3
"""Number of datasets that are read one at a time.

Each read scans the whole log. A script that accesses more datasets probably needs all of them, so
the next read fetches all others in one scan. The same applies if the first access is to the first
dataset of the list, because the script then probably iterates over the list.
"""
MAX_OFFSET = (1 << 63) - 1
"""Largest offset in a file."""


class Series:
    """A subscription that has rows."""

    def __init__(
        self, source: Source, index: int, name: str, multi_id: int, msg_id: int, fields: list[FieldData]
    ) -> None:
        self._source = source
        self.index = index
        self.message_name = name
        self.multi_id = multi_id
        self.msg_id = msg_id
        self.max_data_size: int = sum(TYPES[field.type_str][1] for field in fields)
        while fields and fields[-1].field_name.startswith("_padding"):
            fields.pop()
        self.field_data = fields
        names = [field.field_name for field in fields]
        self.timestamp_idx: int = names.index("timestamp") if "timestamp" in names else -1
        self.dtype: np.dtype[np.void] = np.dtype([(field.field_name, TYPES[field.type_str][2]) for field in fields]).newbyteorder("<")
        self.rows: Any = None
        self.by_name = False
        """True if a script has accessed the dataset by its name."""

    @property
    def timestamp_offset(self) -> int | None:
        """Offset of the timestamp in a row, in bytes. None if the rows have no timestamp."""
        if self.timestamp_idx < 0:
            return None
        return sum(TYPES[field.type_str][1] for field in self.field_data[: self.timestamp_idx])

    def read(self) -> dict[str, Any]:
        """Returns a dict from flat field names to arrays with one entry per row."""
        rows = self.rows if self.rows is not None else self._source.rows(self)
        return {field.field_name: rows[field.field_name] for field in self.field_data}


class Source:
    """An open log."""

    def __init__(
        self, log_file: str | os.PathLike[str] | IO[bytes], names: Collection[str] | None, errors: str, header_only: bool
    ) -> None:
        self._reader = _open(log_file)
        self._names = names
        self._errors = errors
        self._header_only = header_only
        self._dataset_reads = 0
        self.version: int
        self.start: int
        self.version, self.start, compat, incompat, appended = _core.ulog_header(self._reader)
        self.compat: list[int] = list(compat)
        self.incompat: list[int] = list(incompat)
        self.appended: list[int] = list(appended)
        while self.appended and self.appended[-1] == 0:
            self.appended.pop()

    def _messages(self, timestamps: dict[int, tuple[int, int, int]], definitions_only: bool) -> tuple[OtherMessages, int]:
        found, last = _core.ulog_messages(self._reader, timestamps, definitions_only)
        return OtherMessages(found, self._errors), last

    @cached_property
    def definitions(self) -> OtherMessages:
        """Messages before the data section."""
        return self._messages({}, True)[0]

    @cached_property
    def _others_and_last(self) -> tuple[OtherMessages, int]:
        if self._header_only:
            return self.definitions, self.start
        timestamps = {}
        for series in self.series:
            offset = series.timestamp_offset
            if offset is not None:
                timestamps[series.index] = (offset, series.dtype.itemsize, series.max_data_size)
        return self._messages(timestamps, False)

    @property
    def others(self) -> OtherMessages:
        """All messages of the log that are not rows."""
        return self._others_and_last[0]

    @property
    def last(self) -> int:
        """Largest timestamp of a row, in us."""
        return self._others_and_last[1]

    def _reads(self, name: str) -> bool:
        # As in pyulog, `names` may be a string. A topic is then read if its name is a substring of
        # `names`.
        return self._names is None or name in self._names

    @cached_property
    def _all_formats(self) -> dict[str, MessageFormat]:
        return self._messages({}, False)[0].formats

    def _fields(self, name: str) -> list[FieldData]:
        """Returns the flat fields of a format. Raises KeyError for an undefined type."""
        try:
            return flatten(name, self.definitions.formats)
        except KeyError:
            # The format may be defined in the data section.
            return flatten(name, self._all_formats)

    @cached_property
    def _series_and_unusable(self) -> tuple[list[Series], set[int]]:
        """The subscriptions with rows, and the message ids of those that have no usable format."""
        series: list[Series] = []
        unusable: set[int] = set()
        for index, (msg_id, multi_id, name, count) in enumerate(_core.ulog_subscriptions(self._reader)):
            if self._header_only or count == 0 or not self._reads(name):
                continue
            try:
                series.append(Series(self, index, name, multi_id, msg_id, self._fields(name)))
            except UnicodeDecodeError:
                raise
            except (KeyError, ValueError):
                # As in pyulog, a subscription is skipped if a type is undefined, or if two fields
                # have the same name.
                unusable.add(msg_id)
        return sorted(series, key=lambda data: (data.message_name, data.multi_id)), unusable

    @property
    def series(self) -> list[Series]:
        """The subscriptions with rows, in the order of pyulog: by name, then by instance."""
        return self._series_and_unusable[0]

    @property
    def missing(self) -> set[int]:
        """Message ids of rows without a usable subscription."""
        if self._header_only:
            return set()
        unknown = (row[5] for row in self._reader.problems() if row[1] == "unknown_id")
        # The text of the problem ends with the message id.
        return self._series_and_unusable[1] | {int(text.rsplit(" ", 1)[1]) for text in unknown}

    @property
    def filtered(self) -> set[int]:
        """Message ids of subscriptions that are not read."""
        if self._header_only:
            return set()
        return {msg_id for msg_id, _, name, _ in _core.ulog_subscriptions(self._reader) if not self._reads(name)}

    @property
    def corrupt(self) -> bool:
        """True if bytes inside the log could not be read. A truncated log is not corrupt."""
        if self._header_only:
            return self.definitions.skipped
        if self.others.skipped or self._series_and_unusable[1]:
            return True
        if self.incompat[0] & 1 and any(offset > MAX_OFFSET for offset in self.appended):
            return True
        return any(row[2] == "data_lost" and row[1] != "cut" for row in self._reader.problems())

    def rows(self, wanted: Series) -> Any:
        """Returns the rows of a subscription. If the script seems to need all subscriptions, reads
        the rows of all of them.
        """
        read = [wanted]
        if self._dataset_reads >= MAX_SINGLE_READS or (wanted is self.series[0] and not wanted.by_name):
            read = [other for other in self.series if other.rows is None]
        self._dataset_reads += 1
        sizes = [(other.index, other.dtype.itemsize) for other in read]
        for other, memory in zip(read, _core.ulog_rows(self._reader, sizes), strict=True):
            other.rows = np.asarray(memory).view(other.dtype)
        return wanted.rows


LAZY_ATTRIBUTES: dict[str, Callable[[Source], Any]] = {
    "_file_corrupt": lambda log: log.corrupt,
    "_last_timestamp": lambda log: log.last,
    "_msg_info_dict": lambda log: log.others.infos,
    "_msg_info_dict_types": lambda log: log.others.info_types,
    "_msg_info_multiple_dict": lambda log: log.others.multi_infos,
    "_msg_info_multiple_dict_types": lambda log: log.others.multi_info_types,
    "_initial_parameters": lambda log: log.definitions.parameters,
    "_default_parameters": lambda log: log.others.defaults,
    "_changed_parameters": lambda log: log.others.changed_parameters,
    "_message_formats": lambda log: log.others.formats,
    "_logged_messages": lambda log: log.others.texts,
    "_logged_messages_tagged": lambda log: log.others.tagged,
    "_dropouts": lambda log: log.others.dropouts,
    "_filtered_message_ids": lambda log: log.filtered,
    "_missing_message_ids": lambda log: log.missing,
    "_sync_seq_cnt": lambda log: log.others.syncs,
}
"""Attribute of a `ULog` -> function that reads it on the first access."""


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
