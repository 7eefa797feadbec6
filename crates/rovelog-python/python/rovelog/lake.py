"""Lakes made by the workers of an engine, and Delta tables over the Parquet files of a lake.

    rovelog ingest flights/ -o lake/ --engine spark
    python -m rovelog.lake lake/

`ingest` has the packs of a lake made by the workers of Spark or Sail; without an engine, the command
line does that.

`delta` gives each table a `_delta_log` next to its files; no file is written again. The table `_logs`
comes last: its new version is the moment at which new logs are visible to readers of Delta. A second
call without new logs writes nothing, and a call after one that was killed completes it. Needs
`pip install rovelog[lake]`.
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


class Ingested(NamedTuple):
    """What became of the logs."""

    ok: int
    """Logs that are in the lake with this run, whole."""
    partial: int
    """Logs of which a part was lost."""
    failed: int
    """Logs that are not in the lake, with a row that says why."""
    known: int
    """Logs that were in the lake before."""
    same: int
    """Logs with the same content as another one."""
    files: int
    """Files that were written."""
    removed: int
    """Files of a run that was killed, which were removed."""
    splits: list[str]
    """Topics with rows that are not in the table of their name, as text."""


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
    """Adds logs to a lake, as `rovelog ingest` does, with the workers of a session of Spark or Sail.

    Workers need this package, and the logs and the lake under the same paths. This process divides the logs into packs of
    about `pack_bytes`, has `jobs` of them made at a time (default: one per processor of this machine), and commits them.
    `tell` gets the row of each log.

    Raises RovelogError if a source has no logs, or the lake cannot be written.
    """
    several = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    told = tell or (lambda row: None)
    done = _core.lake_ingest(
        [os.fspath(source) for source in several],
        os.fspath(lake),
        _engines.caller(spark),
        (jobs or os.cpu_count() or 1, pack_bytes, retry_quarantined),
        lambda row: told(json.loads(row)),
    )
    return Ingested(**done)


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
    have = {} if table is None else {field.name: field.type for field in table.schema().fields}
    if table is not None and any(have.get(field.name, field.type) != field.type for field in _delta(schema).fields):
        # Delta cannot change the type of a column, so the table starts again with the same files.
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
    pa = need("pyarrow")
    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _schema(folder: pathlib.Path, names: list[str], month: list[str]) -> Any:
    """The columns of files; those with the same columns have the same end of the name."""
    pa, pq = need("pyarrow"), need("pyarrow.parquet")
    one_each = {name.rsplit("-", 1)[-1] if month else "": name for name in names}
    schemas = [pq.read_schema(folder / name).remove_metadata() for _, name in sorted(one_each.items())]
    # Files that were added before a column became wider have the narrower type.
    united = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
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
    return 3 if done.partial or done.failed else 0


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
