"""Delta tables over the Parquet files of a lake that `rovelog ingest` has made.

    rovelog ingest flights/ -o lake/
    python -m rovelog.lake lake/

Each table gets a `_delta_log` next to its files; no file is written again. The table `_logs` comes last: its new version
is the moment at which new logs are visible to readers of Delta. A second call without new logs writes nothing, and a
call after one that was killed completes it. Needs `pip install rovelog[lake]`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from rovelog._errors import MissingFileError
from rovelog._need import need

try:
    import fcntl
except ImportError:  # Windows: one writer at a time is the caller's task there
    fcntl = None  # type: ignore[assignment]

FILES = b"rovelog.files"
"""Key in the metadata of a file in `_logs`: the files that came with it."""


DEPTH = 24
"""Levels of lists and structs that every reader of Delta follows."""


class Changed(NamedTuple):
    """What `delta` has done."""

    versions: dict[str, int]
    """New versions of the tables that have changed, by their folders in the lake."""
    refused: dict[str, str]
    """Tables that Delta cannot have, with the reason: their Parquet files can be read as before."""


def delta(lake: str | os.PathLike[str]) -> Changed:
    """Makes or updates the Delta tables of a lake: those to which logs were added since.

    Raises MissingFileError if the folder is no lake.
    """
    root = pathlib.Path(lake)
    if not (root / "_logs").is_dir():
        raise MissingFileError("this is not a lake: it has no table _logs", path=str(root), next="rovelog ingest LOGS -o LAKE")
    changed = Changed({}, {})
    with _lock(root):
        for table, files in _tables(root).items():
            try:
                version = _update(root / table, files)
            except _TooDeepError as error:
                changed.refused[table] = str(error)
                continue
            if version is not None:
                changed.versions[table] = version
    return changed


@contextlib.contextmanager
def _lock(root: pathlib.Path) -> Iterator[None]:
    """The lock of `rovelog ingest`: the lake does not change meanwhile."""
    with open(root / "_rovelog" / "lock", "a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _tables(root: pathlib.Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Tables by their folders, `_logs` last: the files of each with their rows and bytes."""
    pq = need("pyarrow.parquet")
    tables: dict[str, dict[str, tuple[int, int]]] = {}
    logs = {}
    for path in sorted((root / "_logs").glob("*.parquet")):
        metadata = pq.read_metadata(path)
        logs[path.name] = (metadata.num_rows, path.stat().st_size)
        for file in json.loads(metadata.metadata[FILES]):
            table, month, name = file["path"].rsplit("/", 2)
            tables.setdefault(table, {})[f"{month}/{name}"] = (file["rows"], file["bytes"])
    return {**dict(sorted(tables.items())), "_logs": logs}


def _update(folder: pathlib.Path, files: dict[str, tuple[int, int]]) -> int | None:
    """Brings a table to these files. Returns its new version; None if it has them already."""
    deltalake, transaction = need("deltalake"), need("deltalake.transaction")
    exists = deltalake.DeltaTable.is_deltatable(str(folder))
    table = deltalake.DeltaTable(str(folder)) if exists else None
    known = set(_paths(table)) if table else set()
    new = sorted(set(files) - known)
    gone = sorted(known - set(files))
    if not new and not gone:
        return None
    month = ["month"] if folder.name != "_logs" else []
    schema = _schema(folder, new, month)
    actions: list[Any] = [_add(transaction, folder, name, *files[name]) for name in new]
    if table is None:
        transaction.create_table_with_add_actions(str(folder), _delta(schema), actions, "error", month)
    else:
        have = {field.name for field in table.schema().fields}
        more = [field for field in _delta(schema).fields if field.name not in have]
        if more:
            table.alter.add_columns(more)
        if gone:
            actions += [_remove(transaction, folder, name) for name in gone]
        table.create_write_transaction(actions, "append", table.schema(), month)
    version: int = deltalake.DeltaTable(str(folder)).version()
    return version


def _paths(table: Any) -> list[str]:
    pa = need("pyarrow")
    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _schema(folder: pathlib.Path, names: list[str], month: list[str]) -> Any:
    """The columns of files; those with the same columns have the same end of the name."""
    pa, pq = need("pyarrow"), need("pyarrow.parquet")
    one_each = {name.rsplit("-", 1)[-1] if month else "": name for name in names}
    schemas = [pq.read_schema(folder / name).remove_metadata() for _, name in sorted(one_each.items())]
    united = pa.unify_schemas(schemas) if schemas else pa.schema([])
    levels = max((_levels(field.type) for field in united), default=0)
    if levels > DEPTH:
        raise _TooDeepError(f"columns nested {levels} levels deep, and Delta describes {DEPTH}")
    for name in month:
        united = united.append(pa.field(name, pa.string()))
    return united


class _TooDeepError(Exception):
    """Columns that are nested deeper than readers of Delta's JSON follow."""


def _levels(type: Any) -> int:
    inside = [type.field(at).type for at in range(type.num_fields)]
    return 1 + max(map(_levels, inside), default=0)


def _delta(schema: Any) -> Any:
    deltalake = need("deltalake")
    return deltalake.Schema.from_arrow(schema)


def _add(transaction: Any, folder: pathlib.Path, name: str, rows: int, size: int) -> Any:
    month, _, _ = name.rpartition("/")
    changed = int((folder / name).stat().st_mtime * 1000)
    values = {"month": month.removeprefix("month=")} if month else {}
    return transaction.AddAction(name, size, values, changed, True, json.dumps({"numRecords": rows}))


def _remove(transaction: Any, folder: pathlib.Path, name: str) -> Any:
    month, _, _ = name.rpartition("/")
    values = {"month": month.removeprefix("month=")} if month else {}
    return transaction.RemoveAction(path=name, deletion_timestamp=0, data_change=True, partition_values=values)


def _main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m rovelog.lake LAKE", file=sys.stderr)
        return 2
    changed = delta(arguments[0])
    for table, version in changed.versions.items():
        print(f"{table}: version {version}")
    for table, why in changed.refused.items():
        print(f"{table}: not a Delta table: {why}", file=sys.stderr)
    return 3 if changed.refused else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
