"""Compares, value by value, what pyulog and rovelog read from the same ULog files.

usage: ulog_pyulog.py ROVELOG CORPUS [REAL]

The text of every difference must be in `intended_pyulog.py` with its rule. An entry without its difference fails too.
Floats are compared bit for bit at their own width. All NaNs are equal, because JSON has only one.
"""

import json
import pathlib
import resource
import signal
import sys

import numpy as np

import pyulog_columns
import rovelog_cli
from intended_pyulog import INTENDED, REASONS

SECONDS = 20
LEVELS = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"]


class TooLong(Exception):
    pass


def read_with_pyulog(path):
    """Reads a log with pyulog. Returns the name of its exception if it fails."""

    def stop(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return pyulog_columns.read(path)
    except Exception as error:  # pylint: disable=broad-except
        return type(error).__name__
    finally:
        signal.alarm(0)


def bits(column, dtype):
    """Returns a column as integers that are equal if the values are. All NaNs become one integer."""
    if dtype.kind != "f":
        return np.asarray(column)
    values = np.asarray(column, dtype=dtype)
    plain = values.view(f"u{dtype.itemsize}").copy()
    plain[np.isnan(values)] = np.array(np.nan, dtype=dtype).view(f"u{dtype.itemsize}")
    return plain


def ours_as_bits(column, dtype, is_bool):
    if dtype.kind == "f":
        # The shortest digits of an f32 give the same f32 by way of f64.
        return bits(np.array([float(value) for value in column], dtype=np.float64).astype(dtype), dtype)
    if is_bool:
        if not all(isinstance(value, bool) for value in column):
            raise RuntimeError("a bool that is none")
        return np.array(column, dtype=np.int8)
    return np.array([int(value) for value in column], dtype=dtype)


def their_columns(data):
    """Returns name -> (type, column). Char arrays are joined into texts, and padding is left out."""
    found, padding = {}, 0
    for field in data.field_data:
        name, column = field.field_name, data.data[field.field_name]
        if any(part.startswith("_padding") for part in name.split(".")):
            padding += 1
        elif field.type_str == "char":
            # `name[3]` is the fourth byte of `name`.
            base = name[: name.rindex("[")] if name.endswith("]") else name
            found.setdefault(base, ("char", []))[1].append(column)
        else:
            found[name] = (field.type_str, column)
    for name, (kind, column) in found.items():
        if kind == "char":
            rows = np.stack(column, axis=1).astype(np.uint8)
            found[name] = (kind, [rovelog_cli.escaped(bytes(row).split(b"\0")[0]) for row in rows])
    return found, padding


def native(value):
    """Returns a value that can be compared quickly."""
    return value.item() if isinstance(value, np.generic) else value


def missing_rows(theirs, ours):
    """Returns the number of additional rows of rovelog, or None if it lacks rows of pyulog or their order differs."""
    at, extra = 0, 0
    for row in ours:
        if at < len(theirs) and theirs[at] == row:
            at += 1
        else:
            extra += 1
    return extra if at == len(theirs) else None


def compare_topic(name, data, names, columns, tally):
    """Returns the differences of one topic."""
    theirs, padding = their_columns(data)
    if padding:
        tally["padding"][name] = padding
    if list(theirs) != names:
        yield f"{name}: columns {sorted(set(theirs) ^ set(names))}, or their order, differ"
        return
    pairs = []
    for column, (kind, values) in zip(columns, theirs.values()):
        if kind == "char":
            pairs.append((values, column))
            continue
        dtype = np.dtype(values.dtype)
        if kind == "bool":
            values = (values != 0).astype(np.int8)
        pairs.append((bits(values, dtype), ours_as_bits(column, dtype, kind == "bool")))
    count, their_count = len(columns[0]), len(pairs[0][0])
    if count != their_count:
        left, right = (list(zip(*(map(native, pair[side]) for pair in pairs))) for side in (0, 1))
        extra = missing_rows(left, right)
        if extra is None:
            yield f"{name}: {count} rows, pyulog {their_count}, not all of them among ours"
            return
        tally["more"][name] = (extra, their_count)
        count = their_count
        pairs = []
    for column, (left, right) in zip(names, pairs):
        same = left == right if isinstance(left, list) else np.array_equal(left, right)
        if not same:
            yield f"{name}.{column}: values differ"
    tally["columns"] += len(names)
    tally["rows"] += count
    tally["values"] += count * len(names)


def compare_topics(log, ours, tally):
    series, theirs = {}, {}
    # pyulog has the series of one name in the reverse order of their subscriptions.
    for data in reversed(log.data_list):
        key = (data.name, data.multi_id)
        series[key] = series.get(key, 0) + 1
        theirs[(*key, series[key])] = data
    mine = {rovelog_cli.topic_key(topic): value for topic, value in ours.items()}
    for key in sorted(theirs.keys() | mine.keys()):
        name = f"{key[0]}/{key[1]}" + (f"#{key[2]}" if key[2] > 1 else "")
        if key not in mine:
            yield f"{name}: only pyulog has it"
        elif key not in theirs:
            yield f"{name}: {len(mine[key][1][0]) if mine[key][1] else 0} rows, pyulog has none"
        else:
            tally["topics"] += 1
            yield from compare_topic(name, theirs[key], *mine[key], tally)
    padding, more = tally.pop("padding"), tally.pop("more")
    if padding:
        yield f"{sum(padding.values())} padding columns in {len(padding)} topics only pyulog shows"
    if len(more) > 3:
        extra, known = (sum(pair[side] for pair in more.values()) for side in (0, 1))
        yield f"{len(more)} topics: {extra} rows more than pyulog's {known}, which are all among ours"
    else:
        for name, (extra, known) in more.items():
            yield f"{name}: {extra} rows more than pyulog's {known}, which are all among ours"


def same_value(left, right):
    if isinstance(left, float) or isinstance(right, float):
        left, right = np.float32(left), np.float32(right)
        return left.tobytes() == right.tobytes() or (np.isnan(left) and np.isnan(right))
    return type(left) is type(right) and left == right


def value_of(json_value, kind=None):
    """Returns a number of a JSON document. Floats that JSON cannot represent are texts."""
    if isinstance(json_value, str):
        return float(json_value) if json_value in ("NaN", "inf", "-inf") else int(json_value)
    return float(json_value) if kind == "float32" else json_value


def compare_parameters(log, params, tally):
    def table(what, theirs, ours):
        tally["parameters"] += len(theirs)
        for name in sorted(theirs.keys() | ours.keys()):
            if name not in ours or name not in theirs:
                yield f"{what} {name}: only {'pyulog' if name in theirs else 'rovelog'} has it"
            elif not same_value(theirs[name], ours[name]):
                yield f"{what} {name}: {ours[name]!r}, pyulog {theirs[name]!r}"

    def ours(key):
        found = ((param["name"], param[key], param["type"]) for param in params)
        return {name: value_of(value, kind) for name, value, kind in found if value is not None}

    yield from table("parameter", log.initial_parameters, ours("value"))
    for bit, key in ((0, "system_default"), (1, "setup_default")):
        theirs = log.get_default_parameters(bit) if log.has_default_parameters else {}
        yield from table(key, theirs, ours(key))
    changes = [
        (change["offset"], int(change["t_ns"]) // 1000, param["name"], value_of(change["value"], param["type"]))
        for param in params
        for change in param["changes"]
    ]
    mine = [change[1:] for change in sorted(changes)]
    tally["changes"] += len(mine)
    if len(mine) != len(log.changed_parameters):
        yield f"{len(mine)} changed parameters, pyulog {len(log.changed_parameters)}"
    for (time, name, value), change in zip(log.changed_parameters, mine):
        if (time, name) != change[:2] or not same_value(value, change[2]):
            yield f"change {change}: pyulog {(time, name, value)}"


def compare_texts(log, messages, tally):
    theirs = [(text.timestamp, None, text.log_level, text.message) for text in log.logged_messages]
    for tag, texts in log.logged_messages_tagged.items():
        theirs += [(text.timestamp, str(tag), text.log_level, text.message) for text in texts]
    mine = [(int(m["t_ns"]) // 1000, m["source"], m["severity"] + ord("0"), m["text"]) for m in messages]
    tally["texts"] += len(mine)
    if any(m["level"] != LEVELS[m["severity"]] for m in messages):
        yield "a level's name and number disagree"
    # Grouped by source, as in pyulog.
    sources = {text[1] for text in theirs + mine}
    for source in sorted(sources, key=str):
        left = [text for text in theirs if text[1] == source]
        right = [text for text in mine if text[1] == source]
        if len(left) != len(right):
            yield f"{len(right)} texts of source {source}, pyulog {len(left)}"
        for a, b in zip(left, right):
            if a != b:
                yield f"text {b[3]!r} of level {b[2]}: pyulog {a[3]!r} of level {a[2]}" + (
                    "" if a[0] == b[0] else f", times {b[0]} and {a[0]}"
                )


# Info messages in the details of `info`: key -> path.
INFOS = {
    "ver_hw": ("hardware", "ver_hw"),
    "ver_hw_subtype": ("hardware", "ver_hw_subtype"),
    "sys_mcu": ("hardware", "sys_mcu"),
    "sys_name": ("software", "name"),
    "ver_sw": ("software", "commit"),
    "ver_sw_branch": ("software", "branch"),
    "sys_os_name": ("system", "sys_os_name"),
    "replay": ("replay",),
}


def compare_info(log, info, tally):
    for what, theirs, ours in (
        ("start", log.start_timestamp, info["start_ns"]),
        ("end", log.last_timestamp, info["end_ns"]),
    ):
        mine = None if ours is None else int(ours) // 1000
        if mine != theirs:
            yield f"{what} {mine}, pyulog {theirs}"
    details = info["details"]
    dropouts = [dropout.duration for dropout in log.dropouts]
    shown = details.get("dropouts") or {"count": "0", "total_ms": "0", "longest_ms": "0"}
    mine = tuple(int(shown[key] or 0) for key in ("count", "total_ms", "longest_ms"))
    tally["dropouts"] += len(dropouts)
    if mine != (len(dropouts), sum(dropouts), max(dropouts, default=0)):
        yield f"dropouts {mine}, pyulog {(len(dropouts), sum(dropouts), max(dropouts, default=0))}"
    for key, place in INFOS.items():
        theirs, ours = log.msg_info_dict.get(key), details
        for step in place:
            ours = ours.get(step) if isinstance(ours, dict) else None
        if theirs is None:
            continue
        tally["infos"] += 1
        if ours != theirs:
            yield f"info {key}: {ours!r}, pyulog {theirs!r}"


def compare(binary, path):
    """Returns all differences, and the number of compared values."""
    tally = dict.fromkeys(
        ("topics", "columns", "rows", "values", "parameters", "changes", "texts", "dropouts", "infos"), 0
    )
    log = read_with_pyulog(path)
    if isinstance(log, str):
        rovelog_cli.topics(binary, path)
        return [f"pyulog fails: {log}"], tally
    tally["padding"], tally["more"] = {}, {}
    found = list(compare_topics(log, rovelog_cli.topics(binary, path), tally))
    found += compare_parameters(log, rovelog_cli.document(binary, "params", path)["params"], tally)
    found += compare_texts(log, rovelog_cli.document(binary, "messages", path)["messages"], tally)
    found += compare_info(log, rovelog_cli.document(binary, "info", path), tally)
    return found, tally


def check(name, found, tally, used):
    """Prints the line of a log. Returns whether all differences are intended."""
    intended = INTENDED.get(name, {})
    what = ", ".join(f"{count} {kind}" for kind, count in tally.items() if count)
    wrong = [f"  UNEXPLAINED {line}" for line in found if line not in intended]
    wrong += [f"  NOT SEEN ANY MORE {line}" for line in intended if line not in found]
    state = "DIFFERS" if wrong else "as intended" if found else "equal"
    print(f"{state:11} {name}: {what or 'nothing to compare'}")
    for line in found:
        if line in intended:
            used.setdefault(intended[line], []).append((name, line))
    print("".join(f"{line}\n" for line in wrong), end="")
    return not wrong


def main():
    binary, corpus, real = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    # Limits the memory that pyulog uses for hostile logs.
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    logs = [(path.stem, path) for folder in real for path in sorted(pathlib.Path(folder, "ulog").glob("*.ulg"))]
    lossy = 0
    for path in sorted(corpus.glob("ulog/*.ulg")):
        truth = json.loads((corpus / "expected" / "ulog" / f"{path.stem}.json").read_text())
        if truth["open"] != "ok" or truth["lost"]:
            lossy += 1
            continue
        logs.append((f"corpus/{path.stem}", path))
    good, used, total = True, {}, {}
    for name, path in logs:
        found, tally = compare(binary, path)
        good &= check(name, found, tally, used)
        for kind, count in tally.items():
            total[kind] = total.get(kind, 0) + count
    print(f"\n{lossy} corpus logs with losses, or refused, are not compared.")
    print(f"{len(logs)} logs: " + ", ".join(f"{count} {kind}" for kind, count in total.items()))
    print("\nIntended differences:")
    for rule in sorted(used, key=lambda rule: (len(rule), rule)):
        print(f"\n{rule}: {REASONS[rule]}")
        for name, line in used[rule]:
            print(f"  {name}: {line}")
    stale = sorted(name for name in INTENDED if name not in dict(logs) and (real or name.startswith("corpus/")))
    if stale:
        print(f"\nno such log: {', '.join(stale)}")
    sys.exit(0 if good and not stale else 1)


main()
