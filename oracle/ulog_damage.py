"""Replays a plan of damage over a ULog and counts the rows that readers still find.

usage: ulog_damage.py ROVELOG REAL

A row is identified by its message id and timestamp. It must survive if its own bytes, its subscription and its formats
are untouched. All other rows that a reader returns are false. Prints the table in
docs/internals/reliability/damaged-ulog.md. Fails if another reader finds more rows than rovelog.
"""

import collections
import concurrent.futures
import hashlib
import json
import pathlib
import struct
import sys
import tempfile

import pyulog_columns
import rovelog_cli

KINDS = {
    "len": "5 bits of lengths flipped",
    "type": "5 bits of types flipped",
    "lost": "5 losses of 1 to 400 bytes",
    "zero": "5 sectors of 512 bytes zeroed",
    "noise": "3 blocks of 4 KiB random",
    "stale": "2 blocks of 32 KiB from elsewhere",
    "defs": "3 patches zeroed in the definitions",
}
RECORDED = ["ulog_cpp", "px4-ulog", "yule_log", "foxglove"]


def noise(key, size):
    blocks = (hashlib.sha256(f"{key}:{i}".encode()).digest() for i in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def damaged(base, edits):
    out, done = bytearray(), 0
    for kind, at, number, *rest in edits:
        out += base[done:at]
        size = 1 if kind == "xor" else number
        if kind == "xor":
            out.append(base[at] ^ number)
        elif kind == "zero":
            out += bytes(size)
        elif kind == "noise":
            out += noise(rest[0], size)
        elif kind == "copy":
            out += base[rest[0] : rest[0] + size]
        elif kind != "delete":
            raise ValueError(kind)
        done = at + size
    return bytes(out + base[done:])


def scan(data):
    """Returns the messages of an undamaged log: (start, end, type, payload)."""
    at = 16
    while at + 3 <= len(data):
        size, kind = struct.unpack_from("<HB", data, at)
        yield at, at + 3 + size, chr(kind), data[at + 3 : at + 3 + size]
        at += 3 + size


def subscriptions(data):
    """Returns `name/instance` -> message id."""
    found = {}
    for _, _, kind, payload in scan(data):
        if kind == "A":
            found[f"{payload[3:].decode()}/{payload[0]}"] = struct.unpack_from("<H", payload, 1)[0]
    return found


def survivors(data, edits):
    """Returns the rows that must survive: their bytes, their subscription and their formats are untouched.

    Every format of this log starts with `uint64_t timestamp`.
    """
    touched = [(at, at + (1 if kind == "xor" else number)) for kind, at, number, *_ in edits]

    def hit(start, end):
        return any(start < until and since < end for since, until in touched)

    types, broken, topics, rows = {}, set(), {}, collections.Counter()
    for start, end, kind, payload in scan(data):
        if kind == "F":
            name, fields = payload.decode().split(":", 1)
            types[name] = [field.split(" ")[0].split("[")[0] for field in fields.split(";") if field]
            if hit(start, end):
                broken.add(name)
        elif kind == "A":
            intact = not hit(start, end) and not is_broken(payload[3:].decode(), types, broken)
            topics[struct.unpack_from("<H", payload, 1)[0]] = intact
        elif kind == "D" and not hit(start, end):
            row = struct.unpack_from("<HQ", payload)
            if topics[row[0]]:
                rows[row] += 1
    return rows


def is_broken(name, types, broken):
    return name in broken or any(is_broken(inner, types, broken) for inner in types.get(name, ()))


def by_rovelog(binary, path, ids):
    rows = rovelog_cli.records(binary, path)
    # All rows of a topic that the undamaged log does not have are false.
    return collections.Counter((ids.get(row["topic"]), int(row["data"]["timestamp"])) for row in rows)


def by_pyulog(path):
    try:
        log = pyulog_columns.read(path)
    except Exception:  # pylint: disable=broad-except
        return collections.Counter()
    rows = collections.Counter()
    for data in log.data_list:
        rows.update((data.msg_id, int(time)) for time in data.data["timestamp"])
    return rows


def one(job):
    """Returns found and false rows of one damaged file for both readers."""
    binary, name, base, plan = job
    data = damaged(base, plan["edits"])
    if hashlib.sha256(data).hexdigest() != plan["sha256"]:
        raise RuntimeError(f"{name}: the replay differs from the plan")
    true_rows, ids = survivors(base, plan["edits"]), subscriptions(base)
    if true_rows.total() != plan["rows_that_must_survive"]:
        raise RuntimeError(f"{name}: {true_rows.total()} rows survive, the plan says otherwise")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"{name}.ulg")
        path.write_bytes(data)
        info = rovelog_cli.document(binary, "info", path)
        found = {"rovelog": by_rovelog(binary, path, ids), "pyulog": by_pyulog(path)}
    if sum(found["rovelog"].values()) != int(info["records"]):
        raise RuntimeError(f"{name}: cat and info of rovelog count different rows")
    counts = {}
    for reader, rows in found.items():
        good = (rows & true_rows).total()
        counts[reader] = (good, rows.total() - good)
    return name, counts


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2], "ulog")
    plan = json.loads((folder / "damage/plan.json").read_text())
    recorded = json.loads((folder / "damage/results.json").read_text())
    base = (folder / plan["base"]).read_bytes()
    jobs = [(binary, name, base, file) for name, file in plan["files"].items()]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        results = dict(pool.map(one, jobs))
    readers = ["rovelog", "pyulog", *RECORDED]
    heads = ["rovelog", "pyulog 1.3.0", *(f"{reader} (recorded)" for reader in RECORDED)]
    print("| damage, 6 files each | " + " | ".join(heads) + " |")
    print("|---" * (1 + len(heads)) + "|")
    total, worse, stray = collections.defaultdict(lambda: [0, 0, 0]), [], []
    for kind, words in KINDS.items():
        cells = []
        names = [name for name in plan["files"] if name.rsplit("_", 1)[0] == kind]
        for reader in readers:
            shares, false = [], 0
            for name in names:
                must = plan["files"][name]["rows_that_must_survive"]
                good, bad = results[name].get(reader) or recorded[name][reader]
                shares.append(100 * good / must)
                false += bad
                total[reader][0] += good
                total[reader][1] += must
                total[reader][2] += 0 if kind == "stale" else bad
                if reader == "rovelog":
                    best = max(results[name]["pyulog"][0], *(recorded[name][other][0] for other in RECORDED))
                    if good < best:
                        worse.append(f"{name}: {good} of {must} rows, a peer has {best}")
                if reader == "pyulog" and list(results[name]["pyulog"]) != recorded[name]["pyulog"]:
                    stray.append(f"{name}: {results[name]['pyulog']}, recorded {recorded[name]['pyulog']}")
            cells.append(f"{percent(sum(shares) / len(shares))} / {percent(min(shares))} / {false}")
        print(f"| {words} | " + " | ".join(cells) + " |")
    cells = [f"{percent(100 * total[r][0] / total[r][1])} / {total[r][2]}" for r in readers]
    print("| all 42: rows, and false rows without those of stale blocks | " + " | ".join(cells) + " |")
    for line in stray:
        print(f"note: pyulog now and as recorded: {line}", file=sys.stderr)
    for line in worse:
        print(f"worse than a peer: {line}", file=sys.stderr)
    sys.exit(1 if worse else 0)


def percent(value):
    """Returns a share in percent, never rounded up to 100."""
    if value == 100:
        return "100"
    return f"{min(value, 99.99):.2f}" if value > 99.9 else f"{min(value, 99.9):.1f}"


main()
