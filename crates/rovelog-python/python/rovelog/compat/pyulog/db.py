"""The class `DatabaseULog`: a ULog in an SQLite database, with the API and the tables of pyulog."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import IO, Any, ClassVar

import numpy as np

from rovelog.compat.pyulog import _messages
from rovelog.compat.pyulog._messages import TYPES
from rovelog.compat.pyulog.core import ULog

Handle = Callable[[], sqlite3.Connection]
CHUNK = 1 << 20
"""Number of bytes that are hashed at a time."""


class DatabaseULog(ULog):
    """A ULog that can be saved to a database, and loaded from it by its primary key.

        handle = DatabaseULog.get_db_handle("logs.sqlite3")
        log = DatabaseULog(handle, log_file="flight.ulg")
        log.save()
        same = DatabaseULog(handle, primary_key=log.primary_key)

    `migrate_db` creates the tables. To change a log in a database, delete it and save it again.
    """

    SCHEMA_VERSION = 5
    """Version of the tables. The database stores it as `user_version`."""

    @staticmethod
    def get_db_handle(db_path: str | os.PathLike[str]) -> Handle:
        """Returns a function that opens a connection to the database. Each operation uses its own
        connection.
        """

        def db_handle() -> sqlite3.Connection:
            connection = sqlite3.connect(db_path, detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
            # SQLite checks foreign keys only on request. Without them, deleting a log would leave
            # its data.
            connection.execute("PRAGMA foreign_keys=on")
            return connection

        return db_handle

    @staticmethod
    def schema_version(db_handle: Handle) -> int:
        """Returns the version of the tables in a database. Returns 0 if there are no tables."""
        with closing(db_handle()) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    @staticmethod
    def exists_in_db(db_handle: Handle, primary_key: int) -> bool:
        """Returns True if a database has a log with this key."""
        with closing(db_handle()) as connection:
            return connection.execute("SELECT 1 FROM ULog WHERE Id = ?", (primary_key,)).fetchone() is not None

    @staticmethod
    def primary_key_from_sha256sum(db_handle: Handle, sha256sum: str) -> int | None:
        """Returns the key of the log with this checksum. Returns None if there is no such log."""
        with closing(db_handle()) as connection:
            row = connection.execute("SELECT Id FROM ULog WHERE SHA256Sum = ?", (sha256sum,)).fetchone()
        return None if row is None else int(row[0])

    @staticmethod
    def calc_sha256sum(log_file: str | IO[bytes] | None) -> str | None:
        """Returns the SHA-256 checksum of a file as hexadecimal text. If the file is closed, it is
        opened again by its name.
        """
        if log_file is None:
            return None
        if isinstance(log_file, str) or log_file.closed:
            with open(log_file if isinstance(log_file, str) else log_file.name, "rb") as file:
                return DatabaseULog.calc_sha256sum(file)
        digest = hashlib.sha256()
        while block := log_file.read(CHUNK):
            digest.update(block)
        return digest.hexdigest()

    def __init__(
        self,
        db_handle: Handle,
        primary_key: int | None = None,
        log_file: str | IO[bytes] | None = None,
        lazy: bool = True,
        **kwargs: Any,
    ) -> None:
        """Loads the log with this key, or opens a file that can be saved.

        With `lazy`, `get_dataset` loads the rows of a dataset. Further arguments are passed to
        `ULog`.
        """
        version = DatabaseULog.schema_version(db_handle)
        if version < DatabaseULog.SCHEMA_VERSION:
            raise ValueError(
                f"Database version {version} < schema version {DatabaseULog.SCHEMA_VERSION}, migration needed."
            )
        if (log_file is None) == (primary_key is None):
            raise ValueError("Exactly one of primary_key and log_file is needed.")
        self._pk = primary_key
        self._db = db_handle
        self._lazy_loaded = lazy
        if log_file is not None:
            self._sha256sum = DatabaseULog.calc_sha256sum(log_file)
            if not isinstance(log_file, str):
                log_file.seek(0)
        super().__init__(log_file, **kwargs)
        if primary_key is not None:
            self.load(lazy=lazy)

    def __eq__(self, other: object) -> bool:
        # A log in a database is equal to the same log in a file.
        return other.__eq__(self) if type(other) is ULog else super().__eq__(other)

    __hash__: ClassVar[None] = None

    def write_ulog(self, log_file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes the log to a file. Raises ValueError if its rows are not loaded."""
        if self._lazy_loaded:
            raise ValueError("Cannot write after lazy load because it has no datasets.")
        super().write_ulog(log_file)

    @property
    def primary_key(self) -> int | None:
        """Key of the log in the database. None before the log is saved."""
        return self._pk

    @property
    def sha256sum(self) -> str | None:
        """SHA-256 checksum of the file."""
        return self._sha256sum

    def load(self, lazy: bool = True) -> None:
        """Loads the log. With `lazy`, the rows of its datasets are not loaded."""
        with closing(self._db()) as connection:

            def rows(table: str, columns: str, key: str = "ULogId", value: Any = self._pk, order: str = "rowid") -> list[Any]:
                query = f"SELECT {columns} FROM {table} WHERE {key} = ? ORDER BY {order}"
                return connection.execute(query, (value,)).fetchall()

            columns = "FileVersion, StartTimestamp, LastTimestamp, CompatFlags, IncompatFlags, SyncCount, HasSync, SHA256Sum"
            found = rows("ULog", columns, "Id")
            if not found:
                raise KeyError(f"No ULog in database with Id={self._pk}")
            self._file_version, self._start_timestamp, self._last_timestamp, compat, incompat, *more = found[0]
            self._sync_seq_cnt, self._has_sync, self._sha256sum = more
            self._compat_flags, self._incompat_flags = list(map(ord, compat)), list(map(ord, incompat))
            self._appended_offsets = [at for (at,) in rows("ULogAppendedOffsets", "Offset", order="SeriesIndex")]
            datasets = rows("ULogDataset", "DatasetName, MultiId", order="DatasetName, MultiId")
            self._data_list = [
                self._load_dataset(connection, name, instance, lazy) for name, instance in datasets
            ]
            dropouts = rows("ULogMessageDropout", "Timestamp, Duration")
            self._dropouts = [DatabaseULog.DatabaseMessageDropout(*row) for row in dropouts]
            texts = rows("ULogMessageLogging", "LogLevel, Timestamp, Message")
            self._logged_messages = [DatabaseULog.DatabaseMessageLogging(*row) for row in texts]
            self._logged_messages_tagged = {}
            for row in rows("ULogMessageLoggingTagged", "LogLevel, Tag, Timestamp, Message"):
                text = DatabaseULog.DatabaseMessageLoggingTagged(*row)
                self._logged_messages_tagged.setdefault(text.tag, []).append(text)
            self._message_formats = {}
            for key, name in rows("ULogMessageFormat", "Id, Name"):
                fields = rows("ULogMessageFormatField", "FieldType, ArraySize, Name", "MessageId", key)
                self._message_formats[name] = DatabaseULog.DatabaseMessageFormat(name, fields)
            infos = rows("ULogMessageInfo", "Key, Typename, Value")
            self._msg_info_dict = {name: value for name, _, value in infos}
            self._msg_info_dict_types = {name: kind for name, kind, _ in infos}
            self._msg_info_multiple_dict, self._msg_info_multiple_dict_types = {}, {}
            for key, name, kind in rows("ULogMessageInfoMultiple", "Id, Key, Typename"):
                lists = rows("ULogMessageInfoMultipleList", "Id", "MessageId", key, "SeriesIndex")
                elements = [
                    rows("ULogMessageInfoMultipleListElement", "Value", "ListId", part, "SeriesIndex")
                    for (part,) in lists
                ]
                self._msg_info_multiple_dict[name] = [[value for (value,) in part] for part in elements]
                self._msg_info_multiple_dict_types[name] = kind
            self._initial_parameters = dict(rows("ULogInitialParameter", "Key, Value"))
            self._changed_parameters = rows("ULogChangedParameter", "Timestamp, Key, Value")
            self._default_parameters = {}
            for default, name, value in rows("ULogDefaultParameter", "DefaultType, Key, Value"):
                self._default_parameters.setdefault(default, {})[name] = value
        self._lazy_loaded = lazy

    def _load_dataset(self, connection: sqlite3.Connection, name: str, multi_id: int, lazy: bool) -> ULog.Data:
        row = connection.execute(
            "SELECT Id, TimestampIndex, MessageId FROM ULogDataset WHERE DatasetName = ? AND MultiId = ? AND ULogId = ?",
            (name, multi_id, self._pk),
        ).fetchone()
        if row is None:
            raise KeyError(f"Dataset with name {name} and multi id {multi_id} not found.")
        key, timestamp_idx, msg_id = row
        fields, data = [], {}
        if not lazy:
            query = "SELECT TopicName, DataType, ValueArray FROM ULogField WHERE DatasetId = ? ORDER BY Id"
            for field_name, kind, values in connection.execute(query, (key,)):
                fields.append(ULog._FieldData(field_name, kind))
                data[field_name] = np.frombuffer(bytearray(values), dtype=np.dtype(TYPES[kind][2]).newbyteorder("<"))
        return DatabaseULog.DatabaseData(name, multi_id, msg_id, timestamp_idx, fields, data)

    def get_dataset(
        self,
        name: str,
        multi_instance: int = 0,
        lazy: bool = False,
        db_cursor: sqlite3.Cursor | None = None,
        caching: bool = True,
    ) -> ULog.Data:
        """Returns a dataset with its rows, or without rows if `lazy` is set.

        With `caching`, the rows are kept for the next call. Raises KeyError if there is no such
        dataset.
        """
        known = [data for data in self._data_list if (data.name, data.multi_id) == (name, multi_instance)]
        if caching and known and (lazy or known[0].data):
            return known[0]
        if db_cursor is not None:
            found = self._load_dataset(db_cursor.connection, name, multi_instance, lazy)
        else:
            with closing(self._db()) as connection:
                found = self._load_dataset(connection, name, multi_instance, lazy)
        if not caching or not known:
            return found
        known[0].__dict__.update(found.__dict__)
        return known[0]

    def save(self, append_json: bool = False) -> None:
        """Saves the log. Raises KeyError if it is already in the database.

        With `append_json`, the values are also saved as JSON objects (timestamp -> value), which
        the SQLite function `json_each` can read.
        """
        if self._pk is not None:
            raise KeyError("Cannot save logs that are already in the database")
        assert self._sha256sum is not None
        same = DatabaseULog.primary_key_from_sha256sum(self._db, self._sha256sum)
        if same is not None:
            self._pk = same
            raise KeyError(f"Hash {self._sha256sum} already in database with Id={same}")
        with closing(self._db()) as connection, connection:
            self._pk = self._insert(connection, append_json)

    def _insert(self, connection: sqlite3.Connection, append_json: bool) -> int:
        def one(table: str, **row: Any) -> int:
            names, placeholders = ", ".join(row), ", ".join("?" * len(row))
            key = connection.execute(f"INSERT INTO {table} ({names}) VALUES ({placeholders})", [*row.values()]).lastrowid
            assert key is not None
            return key

        def many(table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
            placeholders = ", ".join("?" * len(columns.split(",")))
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({placeholders})", rows)

        log = one(
            "ULog",
            FileVersion=self._file_version,
            StartTimestamp=self._start_timestamp,
            LastTimestamp=self._last_timestamp,
            CompatFlags="".join(map(chr, self._compat_flags)),
            IncompatFlags="".join(map(chr, self._incompat_flags)),
            SyncCount=self._sync_seq_cnt,
            HasSync=self._has_sync,
            SHA256Sum=self._sha256sum,
        )
        offsets = enumerate(self._appended_offsets)
        many("ULogAppendedOffsets", "SeriesIndex, Offset, ULogId", ((*row, log) for row in offsets))
        for data in self._data_list:
            dataset = one(
                "ULogDataset",
                DatasetName=data.name,
                MultiId=data.multi_id,
                MessageId=data.msg_id,
                TimestampIndex=data.timestamp_idx,
                ULogId=log,
            )
            for field in data.field_data:
                values = data.data[field.field_name]
                one(
                    "ULogField",
                    TopicName=field.field_name,
                    DataType=field.type_str,
                    ValueArray=values.tobytes(),
                    ValueJson=_json(data.data["timestamp"], values) if append_json else None,
                    DatasetId=dataset,
                )
        dropouts = ((dropout.timestamp, dropout.duration, log) for dropout in self._dropouts)
        many("ULogMessageDropout", "Timestamp, Duration, ULogId", dropouts)
        texts = ((text.log_level, text.timestamp, text.message, log) for text in self._logged_messages)
        many("ULogMessageLogging", "LogLevel, Timestamp, Message, ULogId", texts)
        tagged = (text for texts in self._logged_messages_tagged.values() for text in texts)
        lines = ((text.log_level, text.timestamp, text.tag, text.message, log) for text in tagged)
        many("ULogMessageLoggingTagged", "LogLevel, Timestamp, Tag, Message, ULogId", lines)
        for name, form in self._message_formats.items():
            key = one("ULogMessageFormat", Name=name, ULogId=log)
            fields = ((*field, key) for field in form.fields)
            many("ULogMessageFormatField", "FieldType, ArraySize, Name, MessageId", fields)
        infos = ((key, value, self._msg_info_dict_types[key], log) for key, value in self._msg_info_dict.items())
        many("ULogMessageInfo", "Key, Value, Typename, ULogId", infos)
        for name, lists in self._msg_info_multiple_dict.items():
            kind = self._msg_info_multiple_dict_types[name]
            message = one("ULogMessageInfoMultiple", Key=name, Typename=kind, ULogId=log)
            for index, values in enumerate(lists):
                part = one("ULogMessageInfoMultipleList", SeriesIndex=index, MessageId=message)
                elements = ((*row, part) for row in enumerate(values))
                many("ULogMessageInfoMultipleListElement", "SeriesIndex, Value, ListId", elements)
        many("ULogInitialParameter", "Key, Value, ULogId", ((*row, log) for row in self._initial_parameters.items()))
        for default, parameters in self._default_parameters.items():
            rows = ((default, *row, log) for row in parameters.items())
            many("ULogDefaultParameter", "DefaultType, Key, Value, ULogId", rows)
        many("ULogChangedParameter", "Timestamp, Key, Value, ULogId", ((*row, log) for row in self._changed_parameters))
        return log

    def delete(self) -> None:
        """Deletes the log from the database."""
        if self._pk is None:
            raise KeyError("Cannot delete logs that are not in the database")
        with closing(self._db()) as connection, connection:
            connection.execute("DELETE FROM ULog WHERE Id = ?", (self._pk,))
        self._pk = None

    class DatabaseData(ULog.Data):
        """A dataset from a database. `data` is empty if its rows are not loaded."""

        def __init__(
            self,
            name: str,
            multi_id: int,
            msg_id: int,
            timestamp_idx: int,
            field_data: list[Any],
            data: dict[str, Any] | None = None,
        ) -> None:
            self.name = name
            self.multi_id = multi_id
            self.msg_id = msg_id
            self.timestamp_idx = timestamp_idx
            self.field_data = field_data
            self.data = {} if data is None else data

    class DatabaseMessageDropout(_messages.MessageDropout):
        """A dropout from a database."""

        def __init__(self, timestamp: int, duration: int) -> None:
            self.timestamp = timestamp
            self.duration = duration

    class DatabaseMessageFormat(_messages.MessageFormat):
        """A format from a database."""

        def __init__(self, name: str, fields: list[tuple[str, int, str]]) -> None:
            self.name = name
            self.fields = fields

    class DatabaseMessageLogging(_messages.MessageLogging):
        """A text from a database."""

        def __init__(self, log_level: int, timestamp: int, message: str) -> None:
            self.log_level = log_level
            self.timestamp = timestamp
            self.message = message

    class DatabaseMessageLoggingTagged(_messages.MessageLoggingTagged):
        """A text with a tag from a database."""

        def __init__(self, log_level: int, tag: int, timestamp: int, message: str) -> None:
            self.log_level = log_level
            self.tag = tag
            self.timestamp = timestamp
            self.message = message


def _json(times: Any, values: Any) -> str:
    """Returns a JSON object: timestamp -> value. Infinities and NaN become null, because JSON lacks
    them.
    """
    finite = [value if np.isfinite(value) else None for value in values.tolist()]
    return json.dumps(dict(zip(map(str, times.tolist()), finite, strict=True)), separators=(",", ":"))
