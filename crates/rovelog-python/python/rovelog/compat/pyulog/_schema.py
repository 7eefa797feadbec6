"""The tables of `DatabaseULog`, which are those of pyulog, and the migrations between their
versions.
"""

from __future__ import annotations

KEY = "Id INTEGER PRIMARY KEY AUTOINCREMENT"


def _references(table: str, column: str = "ULogId INT") -> str:
    return f"{column} REFERENCES {table} (Id) ON DELETE CASCADE"


LOG = _references("ULog")
TABLES = {
    "ULog": [
        KEY,
        "SHA256Sum TEXT UNIQUE",
        "FileVersion INT",
        "StartTimestamp REAL",
        "LastTimestamp REAL",
        "CompatFlags TEXT",
        "IncompatFlags TEXT",
        "SyncCount INT",
        "HasSync BOOLEAN",
    ],
    "ULogAppendedOffsets": ["SeriesIndex INTEGER", "Offset INTEGER", LOG],
    "ULogDataset": [
        KEY,
        "DatasetName TEXT",
        "MultiId INT",
        "MessageId INT",
        "TimestampIndex INT",
        LOG,
        "UNIQUE (ULogId, DatasetName, MultiId)",
    ],
    "ULogField": [
        KEY,
        "TopicName TEXT",
        "DataType TEXT",
        "ValueArray BLOB",
        _references("ULogDataset", "DatasetId INTEGER"),
    ],
    "ULogMessageDropout": ["Timestamp REAL", "Duration FLOAT", LOG],
    "ULogMessageFormat": [KEY, "Name TEXT", LOG],
    "ULogMessageFormatField": [
        "FieldType TEXT",
        "ArraySize INT",
        "Name TEXT",
        _references("ULogMessageFormat", "MessageId INT"),
    ],
    "ULogMessageLogging": ["LogLevel INT", "Timestamp REAL", "Message TEXT", LOG],
    "ULogMessageLoggingTagged": ["LogLevel INT", "Timestamp REAL", "Tag INT", "Message TEXT", LOG],
    "ULogMessageInfo": ["Key TEXT", "Typename TEXT", "Value BLOB", LOG],
    "ULogMessageInfoMultiple": [KEY, "Key TEXT", "Typename TEXT", LOG],
    "ULogMessageInfoMultipleList": [
        KEY,
        "SeriesIndex INTEGER",
        _references("ULogMessageInfoMultiple", "MessageId TEXT"),
    ],
    "ULogMessageInfoMultipleListElement": [
        KEY,
        "SeriesIndex INTEGER",
        "Value TEXT",
        _references("ULogMessageInfoMultipleList", "ListId TEXT"),
    ],
    "ULogInitialParameter": ["Key TEXT", "Value BLOB", LOG],
    "ULogChangedParameter": ["Timestamp REAL", "Key TEXT", "Value BLOB", LOG],
    "ULogDefaultParameter": ["DefaultType INT", "Key TEXT", "Value BLOB", LOG],
}
"""Columns of each table in version 2.

Version 1 has no checksum, and its rows are not deleted together with their log.
"""
TO_INTEGERS = {
    "ULog": ["StartTimestamp", "LastTimestamp"],
    "ULogMessageDropout": ["Timestamp", "Duration"],
    "ULogMessageLogging": ["Timestamp"],
    "ULogMessageLoggingTagged": ["Timestamp"],
    "ULogChangedParameter": ["Timestamp"],
}
"""Columns that are floats before version 4."""
INDEXED = {
    "ULogField": "DatasetId",
    "ULogMessageFormatField": "MessageId",
    "ULogMessageInfoMultipleList": "MessageId",
    "ULogMessageInfoMultipleListElement": "ListId",
}
"""Columns that version 5 indexes. Tables that are not listed have an index of `ULogId`."""


def _create() -> list[str]:
    """Version 1: creates the tables."""
    return [f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})" for table, columns in TABLES.items()]


def _rebuild() -> list[str]:
    """Version 2: copies the rows to new tables with constraints, because SQLite cannot add
    constraints to an existing table.
    """
    steps = []
    for table, columns in TABLES.items():
        names_kept = [column.split()[0] for column in columns if not column.startswith(("UNIQUE", "SHA256Sum"))]
        names = ", ".join(names_kept)
        steps.append(f"CREATE TABLE {table}_new ({', '.join(columns)})")
        steps.append(f"INSERT OR IGNORE INTO {table}_new ({names}) SELECT {names} FROM {table}")
    for table in TABLES:
        steps += [f"DROP TABLE {table}", f"ALTER TABLE {table}_new RENAME TO {table}"]
    return steps


def _to_integers() -> list[str]:
    """Version 4: converts times from floats to integers."""
    steps = []
    for table, columns in TO_INTEGERS.items():
        for column in columns:
            steps.append(f"ALTER TABLE {table} RENAME COLUMN {column} TO {column}_old")
            steps.append(f"ALTER TABLE {table} ADD COLUMN {column} INT")
            steps.append(f"UPDATE {table} SET {column} = CAST({column}_old AS INT)")
    return steps


def _index() -> list[str]:
    """Version 5: creates the indexes."""
    columns = [(table, INDEXED.get(table, "ULogId")) for table in TABLES if table != "ULog"]
    return [f"CREATE INDEX IF NOT EXISTS btree_{table}_{column} ON {table}({column})" for table, column in columns]


MIGRATIONS = [_create, _rebuild, lambda: ["ALTER TABLE ULogField ADD COLUMN ValueJson JSON"], _to_integers, _index]


def migration(number: int) -> str:
    """Returns the SQL script that migrates the tables from the previous version to this version."""
    steps = "".join(f"{step};\n" for step in MIGRATIONS[number - 1]())
    # With foreign keys, dropping a table deletes the rows that refer to it. SQLite ignores the
    # switch inside of a transaction, so it comes before `BEGIN`.
    return f"PRAGMA foreign_keys=off;\nBEGIN;\n{steps}PRAGMA user_version = {number};\nCOMMIT;\nPRAGMA foreign_keys=on;\n"
