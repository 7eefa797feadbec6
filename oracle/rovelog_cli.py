"""Runs the `rovelog` program and returns its output in the forms that the checks compare."""

import json
import re
import subprocess


class Refused(RuntimeError):
    """rovelog rejects the log."""


def run(binary, *args):
    """Returns the standard output. The exit code 3 (done, but data was lost) is not a failure."""
    done = subprocess.run([binary, *args], capture_output=True, check=False, timeout=120)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"rovelog {' '.join(args)}: exit {done.returncode}: {done.stderr.decode()}")
    if done.returncode == 1:
        raise Refused(f"rovelog {' '.join(args)}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def document(binary, command, log):
    return json.loads(run(binary, command, "-q", "-f", "json", str(log)))


def unequal_counts(binary, counted):
    """Prints topics whose numbers of rows differ from the numbers of records of `info`. `counted` has the number of rows
    for each log and topic. Returns how many topics were compared, and how many differ.
    """
    compared = differ = 0
    for log, rows in counted.items():
        for topic in document(binary, "info", log)["topics"]:
            # A row of a Velodyne topic is a point. Topics whose name has control characters are escaped in `info`.
            if topic["name"] in rows and "Velodyne" not in topic["name"]:
                compared += 1
                if rows[topic["name"]] != topic["count"]:
                    differ += 1
                    print(f"{log}: {topic['name']}: {rows[topic['name']]} rows, {topic['count']} records")
    return compared, differ


def records(binary, log):
    """Yields the records of `cat`."""
    for line in run(binary, "cat", "-q", "-f", "ndjson", str(log)).splitlines():
        yield json.loads(line)


def names_of(value, prefix=""):
    """Yields the names of the leaves of a value, as pyulog writes them: `a[0].b`."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from names_of(item, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from names_of(item, f"{prefix}[{index}]")
    else:
        yield prefix


def push_leaves(value, out):
    if isinstance(value, dict):
        for item in value.values():
            push_leaves(item, out)
    elif isinstance(value, list):
        for item in value:
            push_leaves(item, out)
    else:
        out.append(value)


def topics(binary, log):
    """Returns topic -> (names of the leaves, columns of JSON values). Rows are in file order."""
    rows = {}
    for record in records(binary, log):
        leaves = []
        push_leaves(record["data"], leaves)
        known = rows.get(record["topic"])
        if known is None:
            known = rows[record["topic"]] = (list(names_of(record["data"])), [])
        known[1].append((record["seq"], leaves))
    found = {}
    for topic, (names, numbered) in rows.items():
        numbered.sort(key=lambda row: row[0])
        if any(len(leaves) != len(names) for _, leaves in numbered):
            raise RuntimeError(f"{topic}: rows of different shapes")
        found[topic] = (names, [list(column) for column in zip(*(leaves for _, leaves in numbered))])
    return found


def topic_key(topic):
    """Splits `t/0#2` into name, instance and series."""
    name, instance, series = re.fullmatch(r"(.*)/(\d+)(?:#(\d+))?", topic).groups()
    return name, int(instance), int(series or 1)


def escaped(content):
    """Returns the text that rovelog writes for the bytes of a text. If they are not UTF-8, the invalid
    bytes and the backslashes are escaped.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def unescaped(text):
    """Returns the bytes for which rovelog writes a text with escapes. The opposite of `escaped`."""

    def byte(found):
        return b"\\" if found[1] == b"\\" else bytes([int(found[1][1:], 16)])

    return re.sub(rb"\\(\\|x[0-9a-f]{2})", byte, text.encode())
