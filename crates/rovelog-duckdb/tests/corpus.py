"""Tests the DuckDB extension with the test logs of the corpus.

usage: corpus.py EXTENSION CORPUS
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

import duckdb

SUFFIXES = {".ulg", ".rld", ".bag", ".active", ".vel", ".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip"}
# A log with several topics, of which `sensor_gps` has several instances, and a log with one topic.
MANY, ONE = "ulog/utc-gps-double.ulg", "rld/jitter.rld"


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def fails(db, query, *texts):
    try:
        db.execute(query).fetchall()
    except duckdb.Error as error:
        for text in texts:
            assert text in str(error), f"{query}: {error}"
    else:
        raise AssertionError(f"{query} does not fail")


def value(db, query):
    return db.execute(query).fetchall()[0][0]


def every_log(db, corpus):
    """Reads all topics of each log. A damaged log has all rows that its topics count, and any
    record without a row is a problem.
    """
    logs = rows = 0
    for log in sorted(path for path in corpus.rglob("*") if path.suffix in SUFFIXES):
        file = literal(log)
        problems = db.sql(f"SELECT name, message FROM log_problems({file})").fetchall()
        if any(name == "unreadable" for name, _ in problems):
            fails(db, f"FROM log_topics({file})", log.name)
            continue
        logs += 1
        lost = {}
        for name, message in problems:
            if found := name == "undecodable" and re.fullmatch(r"(.*): (\d+) records? cannot be decoded", message):
                lost[found[1]] = int(found[2])
        topics = db.sql(f"SELECT topic, instance, sum(count)::BIGINT FROM log_topics({file}) GROUP BY ALL").fetchall()
        for topic, instance, count in topics:
            base, mark, number = topic.partition("#")
            name = topic if instance is None else f"{base}/{instance}{mark}{number}"
            all_instances = sum(other for known, _, other in topics if known == topic)
            if all_instances == 0 or lost.get(name) == all_instances:
                fails(db, f"FROM read_log({file}, topic := {literal(topic)})", "has rows of")
                continue
            where = f"WHERE instance IS NOT DISTINCT FROM {'NULL' if instance is None else instance}"
            table = f"read_log({file}, topic := {literal(topic)}) {where} AND topic = {literal(topic)}"
            found = value(db, f"SELECT count(*) FROM (FROM {table})")
            # Each packet in a record of this topic is a row.
            assert topic == "VelodyneRawDataM" or found == count - lost.get(name, 0), f"{log.name} {name}: {found} rows, not {count} - {lost.get(name, 0)}"
            with_bytes = table.replace(") WHERE", ", blobs := true) WHERE")
            assert len(db.sql(f"FROM {with_bytes}").fetchall()) == found
            rows += found
        for function in ("log_messages", "log_events", "log_params", "log_findings"):
            db.sql(f"FROM {function}({file})").fetchall()
    print(f"{logs} logs, {rows} rows")


def one_log(db, corpus):
    """A log with one topic needs no topic, also as the name of a table."""
    log = corpus / ONE
    count = value(db, f"SELECT sum(count) FROM log_topics({literal(log)})")
    assert value(db, f"SELECT count(*) FROM {literal(log)}") == count
    assert value(db, f"SELECT count(*) FROM read_log({literal(log)})") == count
    fails(db, f"FROM {literal(corpus / MANY)}", MANY, "topics: ", "choose one with read_log('", "FROM log_topics(['")


def many_logs(db, corpus):
    """Logs with different columns have one schema, and their rows have the path of their log."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.ulg", "b.ulg"):
            shutil.copy(corpus / MANY, Path(folder, name))
        topic = value(db, f"SELECT topic FROM log_topics({literal(corpus / MANY)}) WHERE count > 0 LIMIT 1")
        each = value(db, f"SELECT count(*) FROM read_log({literal(corpus / MANY)}, topic := {literal(topic)})")
        for files in (literal(f"{folder}/*.ulg"), literal(folder), f"[{literal(folder + '/a.ulg')}, {literal(folder + '/b.ulg')}]"):
            rows = db.sql(f"SELECT log, count(*) FROM read_log({files}, topic := {literal(topic)}) GROUP BY ALL ORDER BY ALL").fetchall()
            assert rows == [(f"{folder}/a.ulg", each), (f"{folder}/b.ulg", each)], rows


def arguments(db, corpus):
    log = literal(corpus / MANY)
    topic = literal(value(db, f"SELECT topic FROM log_topics({log}) WHERE count > 1 LIMIT 1"))
    table = f"read_log({log}, topic := {topic}"
    first, last, count = db.execute(f"SELECT min(t_ns), max(t_ns), count(*) FROM {table})").fetchall()[0]
    assert value(db, f"SELECT count(*) FROM {table}, start := {first}, stop := {last})") == value(
        db, f"SELECT count(*) FROM {table}) WHERE t_ns < {last}")
    columns = [name for name, *_ in db.sql(f"DESCRIBE FROM {table})").fetchall()]
    field = columns[-1]
    only = [name for name, *_ in db.sql(f"DESCRIBE FROM {table}, fields := [{literal(field)}])").fetchall()]
    assert only == [*columns[:6], field], only
    assert db.sql(f"SELECT {field} FROM {table})").fetchall() == db.sql(f"SELECT {field} FROM {table}, fields := {literal(field)})").fetchall()
    prepared = f"SELECT count(*) FROM {table}) WHERE t_ns >= ?"
    assert [db.execute(prepared, [since]).fetchall()[0][0] for since in (first, last + 1)] == [count, 0]
    fails(db, "FROM read_log('missing.ulg')", "missing.ulg: no such file")
    fails(db, "FROM read_log(3)", "files must be a text")
    fails(db, "FROM read_log([])", "files must be a text")
    fails(db, f"FROM {table}, start := 1.5)", "start must be nanoseconds")
    for limit in ("stop := TIMESTAMP '1600-01-01'", "start := TIMESTAMP '2500-01-01'"):
        assert value(db, f"SELECT count(*) FROM {table}, {limit})") == 0, limit
    fails(db, f"FROM read_log({log}, topic := 'missing')", "missing", "log_topics(")
    with tempfile.NamedTemporaryFile(suffix=".ulg") as file:
        file.write(b"this is not a log")
        file.flush()
        fails(db, f"FROM log_topics({literal(file.name)})", file.name)
        assert value(db, f"SELECT name FROM log_problems({literal(file.name)})") == "unreadable"


def main(extension, corpus):
    db = duckdb.connect(config={"allow_unsigned_extensions": True})
    db.execute(f"LOAD {literal(extension)}")
    print(f"DuckDB {duckdb.__version__}")
    for test in (one_log, many_logs, arguments, every_log):
        test(db, Path(corpus))


if __name__ == "__main__":
    main(*sys.argv[1:])
