"""Ingest of logs into a lake by Spark or Sail, and Delta tables over the Parquet files of a lake.

    rovelog ingest flights/ -o lake/ --engine spark
    python -m rovelog.lake lake/

`ingest` adds logs to a lake on the workers of a Spark or Sail session. To ingest on one machine,
use `rovelog ingest` without an engine.

`delta` adds a Delta log, the folder `_delta_log`, to each table. The Parquet files are not written
again. The table `_logs` is updated last, so readers of Delta see a new log only when all tables
have its rows. A call without new logs writes nothing. If a call was killed, the next call completes
it. `delta` needs `pip install rovelog[lake]`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rovelog import _core, _engines
from rovelog._errors import MissingFileError
from rovelog._optional import require

try:
    import fcntl
except ImportError:
    # Windows has no `fcntl`. Callers must not run two writers at the same time there.
    fcntl = None  # type: ignore[assignment]

FILES = b"rovelog.files"
"""Metadata key of a file in `_logs`. The value lists the files of other tables with rows of the
same logs.
"""

MAX_DEPTH = 24
"""Maximum number of nested lists and structs that all Delta readers accept."""


class Changed(NamedTuple):
    """Result of `delta`."""

    versions: dict[str, int]
    """Folder of a changed table -> its new version."""
    refused: dict[str, str]
    """Folder of a table that cannot be a Delta table -> reason. Its Parquet files can still be
    read. If an earlier call created the Delta table, it lacks the logs that were added since then.
    """


class Ingested(NamedTuple):
    """Result of `ingest`."""

    ok: int
    """Number of logs that were added completely."""
    partial: int
    """Number of logs that were added with a loss."""
    failed: int
    """Number of logs that could not be added. The table `_logs` has the reason for each."""
    known: int
    """Number of logs that were already in the lake."""
    gone: int
    """Number of packs of logs whose damaged files cannot be restored, because a log is gone."""
    same: int
    """Number of logs with the same content as another log."""
    files: int
    """Number of written files."""
    removed: int
    """Number of removed files that an earlier, killed run had left."""
    splits: list[str]
    """Descriptions of topics with rows in another table than the one with their name."""


def ingest(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    spark: Any,
    *,
    jobs: int | None = None,
    pack_bytes: int = 128 << 20,
    retry_quarantined: bool = False,
    tell: Callable[[dict[str, Any]], object] | None = None,
) -> Ingested:
    """Adds logs to a lake on the workers of a Spark or Sail session.

    The result is the same as that of `rovelog ingest`. Workers need this package, and access to the
    logs and the lake under the same paths. This process divides the logs into packs of about
    `pack_bytes`, runs `jobs` tasks at a time (default: one per processor of this machine), and
    commits their results. `tell` is called with the row of each log in `_logs`.

    Raises RovelogError if a source has no logs, or if the lake cannot be written.
    """
    several = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    report = tell or (lambda row: None)
    done = _core.lake_ingest(
        [os.fspath(source) for source in several],
        os.fspath(lake),
        _engines.caller(spark),
        (jobs or os.cpu_count() or 1, pack_bytes, retry_quarantined),
        lambda row: report(json.loads(row)),
    )
    return Ingested(**done)


def delta(lake: str | os.PathLike[str]) -> Changed:
    """Creates the Delta tables of a lake. If they exist, updates the tables to which logs have been
    added since the last call.

    Raises MissingFileError if the folder is not a lake.
    """
    root = pathlib.Path(lake)
    if not (root / "_logs").is_dir():
        raise MissingFileError("the folder is not a lake, because it has no table _logs", path=str(root), next="create a lake with rovelog ingest LOGS -o LAKE")
    changed = Changed({}, {})
    with _lock(root):
        for table, files in _tables(root).items():
            try:
                version = _update(root / table, files)
            except _RefusedError as error:
                changed.refused[table] = str(error)
                continue
            if version is not None:
                changed.versions[table] = version
    return changed


@contextlib.contextmanager
def _lock(root: pathlib.Path) -> Iterator[None]:
    """Context manager that holds the lock of `rovelog ingest`, so that the lake does not change."""
    with open(root / "_rovelog" / "lock", "a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _tables(root: pathlib.Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Returns the files of each table, as a dict from the folder of the table to {file -> (number
    of rows, size in bytes)}. `_logs` is the last table.
    """
    pq = require("pyarrow.parquet")
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
    """Updates a table so that it contains exactly these files. Returns the new version of the
    table, or None if nothing has changed.
    """
    deltalake, transaction = require("deltalake"), require("deltalake.transaction")
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
    have = {} if table is None else {field.name: field.type for field in table.schema().fields}
    if table is not None and any(have.get(field.name, field.type) != field.type for field in _delta(schema).fields):
        # Delta cannot change the type of a column. So the new version of the table replaces all
        # columns and files.
        schema = _schema(folder, sorted(files), month)
        actions = [_add(transaction, folder, name, *files[name]) for name in sorted(files)]
        transaction.create_table_with_add_actions(str(folder), _delta(schema), actions, "overwrite", month)
    elif table is None:
        transaction.create_table_with_add_actions(str(folder), _delta(schema), actions, "error", month)
    else:
        more = [field for field in _delta(schema).fields if field.name not in have]
        if more:
            table.alter.add_columns(more)
        if gone:
            actions += [_remove(transaction, folder, name) for name in gone]
        table.create_write_transaction(actions, "append", table.schema(), month)
    version: int = deltalake.DeltaTable(str(folder)).version()
    return version


def _paths(table: Any) -> list[str]:
    pa = require("pyarrow")
    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _schema(folder: pathlib.Path, names: list[str], month: list[str]) -> Any:
    """Returns the columns of all files.

    The part of a file name after the last `-` is a hash of the columns, so only one file per hash
    is read.
    """
    pa, pq = require("pyarrow"), require("pyarrow.parquet")
    one_each = {name.rsplit("-", 1)[-1] if month else "": name for name in names}
    schemas = [pq.read_schema(folder / name).remove_metadata() for _, name in sorted(one_each.items())]
    # A column may have a narrower type in older files. The permissive mode chooses the wider type.
    try:
        united = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
    except pa.ArrowTypeError as error:
        raise _RefusedError(f"the type of a column differs between files, and no type can represent both: {error}") from error
    levels = max((_levels(field.type) for field in united), default=0)
    if levels > MAX_DEPTH:
        raise _RefusedError(f"the columns are nested {levels} levels deep, but Delta supports only {MAX_DEPTH}")
    for name in month:
        united = united.append(pa.field(name, pa.string()))
    return united


class _RefusedError(Exception):
    """Raised if a table has columns that Delta does not support."""


def _levels(type: Any) -> int:
    inside = [type.field(at).type for at in range(type.num_fields)]
    return 1 + max(map(_levels, inside), default=0)


def _delta(schema: Any) -> Any:
    deltalake = require("deltalake")
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


def _ingest(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m rovelog.lake ingest", description="Add logs to a lake by an engine.")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("-o", dest="lake", required=True, metavar="LAKE")
    parser.add_argument("--engine", choices=["spark", "sail"], default="spark")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--pack-bytes", type=int, default=128 << 20)
    parser.add_argument("--retry-quarantined", action="store_true")
    parser.add_argument("--ndjson", action="store_true")
    args = parser.parse_args(arguments)

    def tell(row: dict[str, Any]) -> None:
        if args.ndjson:
            shown = {key: row[key] for key in ("uri", "id", "format", "status", "error", "pack")}
            counts = {key: str(row[key]) for key in ("size", "records", "lost_bytes")}
            print(json.dumps({"schema": "rovelog.ingest/1", **shown, **counts}), flush=True)
        elif row["status"] == "failed":
            print(f"{row['uri']}: not added: {row['error']}", file=sys.stderr)

    with _engines.session(args.engine) as spark:
        done = ingest(
            args.sources,
            args.lake,
            spark,
            jobs=args.jobs,
            pack_bytes=args.pack_bytes,
            retry_quarantined=args.retry_quarantined,
            tell=tell,
        )
    for split in done.splits:
        print(split, file=sys.stderr)
    numbers = {what: number for what, number in done._asdict().items() if what != "splits"}
    counts = ", ".join(f"{number} {what}" for what, number in numbers.items() if number)
    print(f"logs: {counts or 'nothing to do'}", file=sys.stderr)
    return 3 if done.partial or done.failed or done.gone else 0


def _main(arguments: list[str]) -> int:
    if arguments[:1] == ["ingest"]:
        return _ingest(arguments[1:])
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
