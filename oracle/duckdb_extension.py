"""Compares the tables of the DuckDB extension with the Parquet files that `rovelog export` writes.

usage: duckdb_extension.py ROVELOG EXTENSION REAL

DuckDB reads both. For each topic of each real log, these values must be equal:

- the number of rows
- for each column, the number of values, the sum of numbers, and the sum of the hashes of all values as text
- the rows of an ASOF join of two topics, and the rows that `rovelog export --join` writes

Intended differences are counted and listed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pyarrow.parquet

FORMATS = ("ulog", "rld", "rosbag12", "rosbag20", "vel")
SUFFIXES = {".ulg", ".rld", ".bag", ".active", ".vel"}
# Columns of the extension before the fields of a topic.
FIRST = ["log", "topic", "instance", "seq", "t_ns", "time"]
COUNTED = {}


def count(what, number=1):
    COUNTED[what] = COUNTED.get(what, 0) + number


def run(binary, *args):
    done = subprocess.run([binary, *map(str, args)], capture_output=True, check=False, timeout=600)
    assert done.returncode in (0, 1, 2, 3), f"{args[0]}: exit {done.returncode}"
    return done.returncode in (0, 3), done.stdout


def quoted(name):
    return '"' + str(name).replace('"', '""') + '"'


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def columns(db, source):
    return [(row[0], row[1]) for row in db.execute(f"DESCRIBE {source}").fetchall()]


def pairs(ours, theirs):
    """Returns pairs of expressions that must be equal. The Parquet file has the fields in the same
    order. Its times have microseconds, and the following column has nanoseconds.
    """
    found = [("t_ns", "t_ns", "BIGINT")]
    fields = iter(theirs)
    for name, kind in ours[len(FIRST):]:
        other, other_kind = next(fields)
        mine, theirs_ = quoted(name), quoted(other)
        if kind == "TIMESTAMP_NS":
            exact, _ = next(fields)
            assert exact.startswith(f"{other}_ns"), f"{exact} is not the column with the nanoseconds of {other}"
            mine, theirs_, kind = f"epoch_ns({mine})", quoted(exact), "BIGINT"
        elif "TIMESTAMP" in kind:
            # A nested time. Parquet has the same digits, but DuckDB reads it with a time zone.
            mine, theirs_ = (f"replace(({text})::VARCHAR, '+00', '')" for text in (mine, theirs_))
            kind = "VARCHAR"
        else:
            plain = kind.replace("[]", "")
            assert other_kind == kind or "[" in plain, f"{name}: {kind} and {other_kind}"
        found.append((mine, theirs_, kind))
    assert next(fields, None) is None, "the Parquet file has more columns"
    return found


def sums(db, table, where, expressions):
    parts = ["count(*)"]
    for text, kind in expressions:
        parts += [f"count({text})", f"sum(hash(({text})::VARCHAR)::HUGEINT)"]
        if kind.endswith("INT") or kind in ("FLOAT", "DOUBLE", "INTEGER"):
            finite = f"isfinite({text})" if kind in ("FLOAT", "DOUBLE") else "true"
            total = f"fsum({text})" if kind in ("FLOAT", "DOUBLE") else f"sum({text})"
            parts.append(f"{total} FILTER ({finite})")
    return db.execute(f"SELECT {', '.join(parts)} FROM {table} {where}").fetchall()[0]


def equal(mine, theirs):
    """Returns True if all results are equal. DuckDB adds floats in any order, so their sums differ
    in the last digits.
    """
    close = lambda a, b: isinstance(a, float) and abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return len(mine) == len(theirs) and all(a == b or close(a, b) for a, b in zip(mine, theirs))


def compare(db, log, file):
    """Compares the table of a topic. Returns the name of the topic and its number of rows."""
    metadata = {k.decode(): v.decode() for k, v in (pyarrow.parquet.read_schema(file).metadata or {}).items()}
    topic, instance = metadata["rovelog.topic"], metadata.get("rovelog.instance")
    name = topic if instance is None else f"{topic}/{instance}"
    parquet = f"read_parquet({literal(file)})"
    rows = db.execute(f"SELECT count(*) FROM {parquet}").fetchall()[0][0]
    table = f"read_log({literal(log)}, topic := {literal(name)})"
    where = f"WHERE instance IS NOT DISTINCT FROM {'NULL' if instance is None else instance.split('#')[0]}"
    if rows == 0:
        count("topics without rows, which the extension does not have")
        return name, 0
    described = columns(db, f"FROM {table}")
    assert [column for column, _ in described[:len(FIRST)]] == FIRST, described
    theirs = [column for column in columns(db, f"FROM {parquet}") if column[0] not in ("t_ns", "time")]
    both = pairs(described, theirs)
    mine = sums(db, table, where, [(text, kind) for text, _, kind in both])
    want = sums(db, parquet, "", [(text, kind) for _, text, kind in both])
    if not equal(mine, want):
        raise AssertionError(f"{name}: {mine} is not {want}: {[text for text, _, _ in both]}")
    count("rows", rows)
    count("columns", len(both))
    return name, rows


def join(db, binary, log, folder, names):
    """Compares an ASOF join of the two topics with the most rows with the join of `rovelog`."""
    left, right = names
    out = Path(folder, "joined.parquet")
    done, _ = run(binary, "export", "-q", log, "-o", out, "--on", left, "--join", right, "--method", "previous", "--force")
    if not done:
        return count("pairs of topics that rovelog refuses to join")
    read = lambda name: f"read_log({literal(log)}, topic := {literal(name)})"
    found = [name for name, kind in columns(db, f"FROM {read(right)}")[len(FIRST):] if kind in ("FLOAT", "DOUBLE", "INTEGER")]
    if not found:
        return count("topics without numbers, which are not joined")
    field = found[0]
    joined = f"{right.removesuffix('/0')}.{field}"
    if joined not in [name for name, _ in columns(db, f"FROM read_parquet({literal(out)})")]:
        return count("joined columns of another name")
    # If several rows have the same time, DuckDB uses any of them, and rovelog uses the last one.
    last = f"(SELECT * FROM {read(right)} QUALIFY row_number() OVER (PARTITION BY t_ns ORDER BY seq DESC) = 1)"
    mine = db.execute(
        f"SELECT count(*), count(r.{quoted(field)}), sum(hash(l.t_ns, r.{quoted(field)}::VARCHAR)::HUGEINT) "
        f"FROM {read(left)} l ASOF LEFT JOIN {last} r ON l.t_ns >= r.t_ns WHERE l.t_ns IS NOT NULL"
    ).fetchall()[0]
    want = db.execute(
        f"SELECT count(*), count({quoted(joined)}), sum(hash(t_ns, {quoted(joined)}::VARCHAR)::HUGEINT) "
        f"FROM read_parquet({literal(out)})"
    ).fetchall()[0]
    assert mine == want, f"{left} with {right}.{field}: {mine} is not {want}"
    count("joined rows", mine[0])


def problems(db, binary, log):
    """Compares the problems with those of `rovelog check`."""
    done, text = run(binary, "check", "-q", "-f", "json", log)
    if not done:
        return
    want = sorted((p["code"], int(p["start"])) for p in json.loads(text)["problems"])
    got = db.execute(f"SELECT code, first_byte FROM log_problems({literal(log)}) WHERE first_byte IS NOT NULL").fetchall()
    assert sorted(got) == want, f"problems: {sorted(got)[:3]} and {want[:3]}"
    count("problems", len(got))


def main(binary, extension, real):
    db = duckdb.connect(config={"allow_unsigned_extensions": True})
    db.execute(f"LOAD {literal(extension)}")
    db.execute("SET TimeZone = 'UTC'")
    failed = 0
    logs = [log for name in FORMATS for log in sorted(Path(real, name).glob("*")) if log.suffix in SUFFIXES]
    for log in logs:
        with tempfile.TemporaryDirectory() as folder:
            try:
                done, _ = run(binary, "export", "-q", log, "-o", folder, "--to", "parquet", "--force")
                if not done:
                    count("logs that rovelog does not export")
                    continue
                files = sorted(Path(folder).glob("*.parquet"))
                found = [compare(db, log, file) for file in files]
                largest = sorted((name for name, rows in found if rows), key=lambda name: -dict(found)[name])[:2]
                if len(largest) == 2:
                    join(db, binary, log, folder, largest)
                problems(db, binary, log)
                count("logs")
            except (AssertionError, duckdb.Error, StopIteration) as error:
                print(f"{log.parent.name}/{log.name}: {type(error).__name__}: {str(error)[:600]}")
                failed += 1
    for what, number in sorted(COUNTED.items()):
        print(f"{number:>12} {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
