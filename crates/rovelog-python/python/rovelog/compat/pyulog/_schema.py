"""The tables in which `DatabaseULog` stores logs: those of pyulog, and the steps from each version of them to the next."""

from __future__ import annotations

KEY = "Id INTEGER PRIMARY KEY AUTOINCREMENT"


def _of(table: str, column: str = "ULogId INT") -> str:
    return f"{column} REFERENCES {table} (Id) ON DELETE CASCADE"


LOG = _of("ULog")
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
        _of("ULogDataset", "DatasetId INTEGER"),
    ],
    "ULogMessageDropout": ["Timestamp REAL", "Duration FLOAT", LOG],
    "ULogMessageFormat": [KEY, "Name TEXT", LOG],
    "ULogMessageFormatField": [
        "FieldType TEXT",
        "ArraySize INT",
        "Name TEXT",
        _of("ULogMessageFormat", "MessageId INT"),
    ],
    "ULogMessageLogging": ["LogLevel INT", "Timestamp REAL", "Message TEXT", LOG],
    "ULogMessageLoggingTagged": ["LogLevel INT", "Timestamp REAL", "Tag INT", "Message TEXT", LOG],
    "ULogMessageInfo": ["Key TEXT", "Typename TEXT", "Value BLOB", LOG],
    "ULogMessageInfoMultiple": [KEY, "Key TEXT", "Typename TEXT", LOG],
    "ULogMessageInfoMultipleList": [
        KEY,
        "SeriesIndex INTEGER",
        _of("ULogMessageInfoMultiple", "MessageId TEXT"),
    ],
    "ULogMessageInfoMultipleListElement": [
        KEY,
        "SeriesIndex INTEGER",
        "Value TEXT",
        _of("ULogMessageInfoMultipleList", "ListId TEXT"),
    ],
    "ULogInitialParameter": ["Key TEXT", "Value BLOB", LOG],
    "ULogChangedParameter": ["Timestamp REAL", "Key TEXT", "Value BLOB", LOG],
    "ULogDefaultParameter": ["DefaultType INT", "Key TEXT", "Value BLOB", LOG],
}
"""The columns of each table in version 2. Those of version 1 have no checksum, and their rows stay when a log is deleted."""
TO_INTEGERS = {
    "ULog": ["StartTimestamp", "LastTimestamp"],
    "ULogMessageDropout": ["Timestamp", "Duration"],
    "ULogMessageLogging": ["Timestamp"],
    "ULogMessageLoggingTagged": ["Timestamp"],
    "ULogChangedParameter": ["Timestamp"],
}
"""The columns that are floats before version 4."""
INDEXED = {
    "ULogField": "DatasetId",
    "ULogMessageFormatField": "MessageId",
    "ULogMessageInfoMultipleList": "MessageId",
    "ULogMessageInfoMultipleListElement": "ListId",
}
"""The columns that version 5 has an index of, where it is not `ULogId`."""


def _create() -> list[str]:
    return [f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})" for table, columns in TABLES.items()]


def _rebuild() -> list[str]:
    steps = []
    for table, columns in TABLES.items():
        kept = [column.split()[0] for column in columns if not column.startswith(("UNIQUE", "SHA256Sum"))]
        names = ", ".join(kept)
        steps.append(f"CREATE TABLE {table}_new ({', '.join(columns)})")
        steps.append(f"INSERT OR IGNORE INTO {table}_new ({names}) SELECT {names} FROM {table}")
    for table in TABLES:
        steps += [f"DROP TABLE {table}", f"ALTER TABLE {table}_new RENAME TO {table}"]
    return steps


def _to_integers() -> list[str]:
    steps = []
    for table, columns in TO_INTEGERS.items():
        for column in columns:
            steps.append(f"ALTER TABLE {table} RENAME COLUMN {column} TO {column}_old")
            steps.append(f"ALTER TABLE {table} ADD COLUMN {column} INT")
            steps.append(f"UPDATE {table} SET {column} = CAST({column}_old AS INT)")
    return steps


def _index() -> list[str]:
    columns = [(table, INDEXED.get(table, "ULogId")) for table in TABLES if table != "ULog"]
    return [f"CREATE INDEX IF NOT EXISTS btree_{table}_{column} ON {table}({column})" for table, column in columns]


MIGRATIONS = [_create, _rebuild, lambda: ["ALTER TABLE ULogField ADD COLUMN ValueJson JSON"], _to_integers, _index]


def migration(number: int) -> str:
    """The script that makes tables of this version of those of the version before."""
    steps = "".join(f"{step};\n" for step in MIGRATIONS[number - 1]())
    # Inside of a transaction the switch has no effect; with it on, dropping a table deletes the rows that refer to it.
    return f"PRAGMA foreign_keys=off;\nBEGIN;\n{steps}PRAGMA user_version = {number};\nCOMMIT;\nPRAGMA foreign_keys=on;\n"
