"""Runs every command over every shape of hostile log, and holds time and memory to ratios.

usage: hostile.py ROVELOG SIZE [--quick] [--only TEXT] [--rows]

Each log is made in two sizes, SIZE and a quarter of it, in a temporary folder. For each run of ROVELOG:

- the processor time is at most so many times that of `cat` over as many bytes as were read and written, measured
  now on this machine, plus what `info` of a tiny log takes;
- the memory is at most a multiple of these bytes, plus that of `info` of a tiny log;
- from the quarter to the whole, time and memory grow by four, with some tolerance.

A command may refuse a log (exit code 1 or 2), which takes nothing: each has to read one of the shapes to its end.

Prints a table of the slowest and the largest for each format, as Markdown, and fails where one of them does not hold.
--quick takes fewer commands and the tolerance that a build with debug assertions needs.
"""

import argparse
import collections
import os
import pathlib
import resource
import shutil
import sys
import tempfile

import hostile_bag2
import hostile_shapes

SHAPES = {**hostile_shapes.SHAPES, "rosbag": {**hostile_shapes.SHAPES["rosbag"], **hostile_bag2.SHAPES}}

# Processor time per byte read or written, as a multiple of that of `cat`: on a quiet machine 20 MB take about 2 s.
TIME = 300
# Bytes of memory for each byte read: 20 MB may take 300 MB.
MEMORY = 14
# How much more than four times a run over four times as many bytes may take; below FLOOR starts nothing is told.
GROWTH, GROWTH_QUICK = 1.6, 2.2
FLOOR = 40
# Bytes of memory that are not told: what this script has of its own hides them.
UNSEEN = 16 << 20
# Tables that a log can fill have up to 65 536 entries, topics or channels, which a small log reaches as well.
TABLES = 150 << 20
# A build with debug assertions takes so many times as long.
UNOPTIMIZED = 12
# A run that takes so many times what it may is ended.
PATIENCE = 4

# What is beyond a limit and stays so for now: shape, command, and why.
CHANNELS = "131 070 channels, each with its names and columns"
FIELDS = "8192 columns with their buffers"
ALIKE = "rows whose times come again and again are sorted in windows of 8 MiB; a small log is one window"
SCHEMAS = "60 000 topics, each with a schema and a channel"
SIGNALS = "10 000 lines, each with its values"
CONNECTIONS = "65 536 connections, each with its publisher, definition and columns"
CHUNKS = "more than 200 000 chunks, each told with its state and what it lost"
BZ2 = "bz2 sorts a million short messages that are alike: three times as long as the original program takes"
KNOWN = {
    ("parameters.ulg", "params"): "870 000 parameters, each held with its defaults and changes",
    ("parameters.ulg", "params changed"): "the same",
    ("parameters.ulg", "diff"): "the same, of two logs",
    ("formats.ulg", "merge"): "600 000 formats, held by both logs, by what merges them and by the writer",
    ("changes.ulg", "export mcap"): "800 000 changes of a parameter, held to be written between the records",
    ("infos.ulg", "export mcap"): "infos, held to be written in front of the records",
    ("types.ulg", "export mcap"): SCHEMAS,
    ("undefined-topics.bag", "export mcap"): SCHEMAS,
    ("undefined-topics.bag", "export ros2"): SCHEMAS,
    ("wide.ulg", "export parquet"): FIELDS,
    ("wide.bag", "export parquet"): FIELDS,
    ("sources.vel", "stats"): "460 000 fields, each with its sums",
    ("sources.vel", "extract"): "a file for each of more than 400 000 images",
    ("dropouts.ulg", "split"): "dropouts without a row have one time: the search for a cut passes over all of them each time",
    ("empty-unknown.ulg", "split"): "the same, of messages of unknown kinds",
    **{("v2-connections.bag", name): CONNECTIONS for name in ("stats", "check", "check json", "export bag2", "export bz2")},
    **{(f"v2-{shape}.bag", f"export {kind}"): SCHEMAS for shape in ("connections", "undefined-connections") for kind in ("mcap", "ros2")},
    **{(f"v2-{shape}-chunks.bag", "recover"): CHUNKS for shape in ("empty", "huge")},
    **{(f"v2-{shape}.bag", "export bz2"): BZ2 for shape in ("displaced-no-index", "random-times")},
    **{(shape, f"export {kind}"): ALIKE for shape in ("same-stamps.rld", "random-stamps.rld") for kind in ("parquet", "arrow", "csv")},
    **{("channels.rld", name): CHANNELS for name in ("stats", "states", "plot", "plot svg", "report", "export parquet", "export arrow", "export csv")},
    **{
        (shape, name): SIGNALS
        for shape in ("topics.ulg", "types.ulg", "wide.ulg", "wide.bag", "sources.vel")
        for name in ("plot", "plot svg")
    },
}

Run = collections.namedtuple("Run", "seconds memory read written code")
Row = collections.namedtuple("Row", "format shape command small large time memory growth")


COMMON = {
    "info": ["info", "LOG"],
    "info json": ["info", "LOG", "-f", "json"],
    "topics": ["topics", "LOG"],
    "schema": ["schema", "LOG"],
    "cat": ["cat", "LOG", "-f", "ndjson"],
    "cat -": ["cat", "-", "-f", "ndjson"],
    "cat text": ["cat", "LOG"],
    "messages": ["messages", "LOG"],
    "stats": ["stats", "LOG"],
    "du": ["du", "LOG"],
    "check": ["check", "LOG"],
    "check json": ["check", "LOG", "-f", "json"],
    "diff": ["diff", "LOG", "LOG"],
    "recover": ["recover", "LOG", "-o", "OUT/out"],
    "slice": ["slice", "LOG", "-o", "OUT/out", "-S", "+1s", "-n", "nothing"],
    "latched": ["cat", "LOG", "-f", "ndjson", "-S", "+1s", "-l", ".*"],
    "split": ["split", "LOG", "-o", "OUT/parts", "--size", "SIXTH"],
    "merge": ["merge", "LOG", "LOG", "-o", "OUT/out"],
    "export parquet": ["export", "LOG", "-o", "OUT/tables", "--to", "parquet", "-y", "FEW"],
    "export arrow": ["export", "LOG", "-o", "OUT/tables", "--to", "arrow", "-y", "FEW"],
    "export csv": ["export", "LOG", "-o", "OUT/tables", "--to", "csv", "-y", "FEW"],
    "export ndjson": ["export", "LOG", "-o", "OUT/out.ndjson"],
    "export mcap": ["export", "LOG", "-o", "OUT/out.mcap"],
    "track": ["track", "LOG", "-o", "OUT/out.kml"],
    "track csv": ["track", "LOG", "-f", "csv"],
    "plot": ["plot", "LOG", "--all"],
    "plot svg": ["plot", "LOG", "--all", "-o", "OUT/out.svg"],
    "report": ["report", "LOG", "-o", "OUT/out.html"],
}

# A file for each of 60 000 topics is what was asked for: tables are made of topics with short names.
FEW = "[^0-9]{0,8}[0-9]{0,2}|t/[0-9]{1,2}|Laser.*|Velodyne.*"

# Logs of which nothing says that they are of one clock.
MERGE_BOOT = {"merge": [*COMMON["merge"], "--time-base", "boot"]}


def common(*absent):
    """The commands of every format, without those that do not apply."""
    return {name: command for name, command in COMMON.items() if name not in absent}


COMMANDS = {
    "ulog": {
        **COMMON,
        **MERGE_BOOT,
        "params": ["params", "LOG"],
        "params changed": ["params", "LOG", "--changed"],
        "events": ["events", "LOG"],
        "recover stale": ["recover", "LOG", "-o", "OUT/out", "--drop-stale"],
        "export pyulog": ["export", "LOG", "-o", "OUT/tables", "--to", "csv", "--dialect", "pyulog", "-y", "FEW"],
        "ulog dropouts": ["ulog", "dropouts", "LOG"],
        "ulog infos": ["ulog", "infos", "LOG"],
        "ulog gps-dump": ["ulog", "gps-dump", "LOG", "-o", "OUT/out"],
    },
    "rosbag": {
        **COMMON,
        "export bag2": ["export", "LOG", "-o", "OUT/out.bag", "--to", "bag2"],
        "export bz2": ["export", "LOG", "-o", "OUT/out.bag", "--to", "bag2", "--compression", "bz2"],
        "export ros2": ["export", "LOG", "-o", "OUT/out.mcap", "--ros2"],
        "extract": ["extract", "LOG", "-o", "OUT/files"],
        "bag reindex": ["bag", "reindex", "LOG", "-o", "OUT/out.bag"],
    },
    "vel": {
        **common("messages"),
        **MERGE_BOOT,
        "own types": ["cat", "LOG", "-f", "ndjson", "--types", "TYPES"],
        "export raw": ["export", "LOG", "-o", "OUT/out.mcap", "--raw"],
        "extract": ["extract", "LOG", "-o", "OUT/files"],
        "extract packets": ["extract", "LOG", "-o", "OUT/files", "--only", "packets"],
    },
    "rld": {
        **common("track", "track csv"),
        "energy": ["stats", "LOG", "--energy", "--power", "V1*I1"],
        "windows": ["stats", "LOG", "--energy", "--power", "V1*I1", "--window", "1s"],
        "states": ["stats", "LOG", "--by", "D1", "--runs"],
        "export full": ["export", "LOG", "-o", "OUT/out.mcap", "--full"],
        "export logger": ["export", "LOG", "-o", "OUT/out.csv", "--dialect", "rocketlogger"],
        "rld csv": ["rld", "csv", "LOG", "-o", "OUT/out.csv"],
        "rld scrub": ["rld", "scrub", "LOG", "-o", "OUT/out"],
    },
}

QUICK = ["info", "cat", "stats", "merge", "export mcap", "report"]


def write(path, make, size):
    """Makes a log in a process of its own: what this one holds would be counted to all that it starts."""
    pid = os.fork()
    if pid == 0:
        path.write_bytes(make(size))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, f"{path.name} cannot be made"


def bytes_in(folder):
    """Bytes and number of the files in a folder."""
    size, count = 0, 0
    with os.scandir(folder) as entries:
        for entry in entries:
            below = bytes_in(entry) if entry.is_dir() else (entry.stat().st_size, 1)
            size, count = size + below[0], count + below[1]
    return size, count


def measured(command, folder, read, limit, stdin=None):
    """Runs a command to its end, or to so many seconds of processor time."""
    seconds = int(limit) + 1
    # Not by vfork: a program that is started so is told to be as large as this one has ever been.
    pid = os.fork()
    if pid == 0:
        try:
            for fd, path, how in (
                (0, stdin or os.devnull, os.O_RDONLY),
                (1, folder / "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
                (2, folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            ):
                os.dup2(os.open(path, how, 0o644), fd)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    _, status, usage = os.wait4(pid, 0)
    written, files = bytes_in(folder)
    seconds = usage.ru_utime + usage.ru_stime
    return Run(seconds, usage.ru_maxrss * 1024, read, written + files * 4096, os.waitstatus_to_exitcode(status))


class Machine:
    """What this machine takes for what everything needs."""

    def __init__(self, rovelog, folder):
        tiny = folder / "tiny.vel"
        tiny.write_bytes(hostile_shapes.SHAPES["vel"]["sound.vel"](200))
        work = folder / "work"
        work.mkdir()
        starts = [measured([rovelog, "info", str(tiny)], work, 200, 60) for _ in range(9)]
        self.start = min(run.seconds for run in starts)
        self.memory = max(run.memory for run in starts)
        log = folder / "bytes"
        write(log, hostile_shapes.SHAPES["vel"]["sound.vel"], 8 << 20)
        cats = [measured(["cat", *[str(log)] * 8], work, 0, 60) for _ in range(5)]
        self.byte = min(run.seconds for run in cats) / (64 << 20)
        shutil.rmtree(work)


def run(rovelog, command, log, size, folder, limit):
    """One run in a folder of its own, over a log of so many bytes, unpacked."""
    work = folder / "work"
    work.mkdir()
    types = folder / "types"
    if "TYPES" in command:
        types.write_bytes(hostile_shapes.v_own_types(size))
    words = {"TYPES": str(types), "LOG": str(log), "SIXTH": str(max(4096, size // 6)), "FEW": FEW}
    words = [words.get(word, word.replace("OUT", str(work), 1) if word.startswith("OUT/") else word) for word in command]
    stdin = log if "-" in words else None
    found = measured([rovelog, *words], work, size * max(1, command.count("LOG")), limit, stdin)
    shutil.rmtree(work)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rovelog")
    parser.add_argument("size", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", action="store_true", help="print every run")
    options = parser.parse_args()
    rovelog = str(pathlib.Path(options.rovelog).resolve())
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        rows = matrix(rovelog, pathlib.Path(folder), options)
    return told(rows, options)


def matrix(rovelog, folder, options):
    machine = Machine(rovelog, folder)
    factor = UNOPTIMIZED if options.quick else 1
    print(f"start {machine.start * 1e3:.1f} ms, {machine.memory / 1e6:.1f} MB; cat {machine.byte * 1e9:.3f} ns a byte", file=sys.stderr)
    rows = []
    for format, shapes in SHAPES.items():
        commands = COMMANDS[format]
        for shape, make in shapes.items():
            wanted = [name for name in (QUICK if options.quick else commands) if options.only in f"{format} {shape} {name}."]
            if not wanted:
                continue
            logs = []
            for name, size in (("small", options.size // 4), ("large", options.size)):
                path = folder / f"{name}-{shape}"
                write(path, make, size)
                logs.append((path, size))
            for name in wanted:
                rows.append(best(lambda: row(machine, factor, rovelog, (format, shape, name), commands[name], logs, folder)))
                if options.rows:
                    print(shown(rows[-1]), file=sys.stderr, flush=True)
            for path, _ in logs:
                path.unlink()
    return rows


def best(measure):
    """The best of up to three measurements: a busy machine makes one of them longer."""
    found = measure()
    for _ in range(2):
        if holds(found):
            break
        found = min(found, measure(), key=lambda row: max(row.time, row.memory, row.growth))
    return found


def row(machine, factor, rovelog, names, command, logs, folder):
    """Both runs of a command, and how they compare with what they may take."""

    def may(found):
        return factor * (2 * machine.start + TIME * machine.byte * (found.read + found.written))

    limit = PATIENCE * factor * (1 + TIME * machine.byte * 2 * logs[1][1])
    small, large = (run(rovelog, command, log, size, folder, limit) for log, size in logs)
    bytes_grown = max(4, (large.read + large.written) / (small.read + small.written))
    grown = (large.seconds - machine.start) / max(small.seconds - machine.start, FLOOR * machine.start / 4) / bytes_grown
    held = (large.memory - machine.memory) / max(small.memory - machine.memory, UNSEEN) / 4
    memory = (large.memory - machine.memory) / max(MEMORY * large.read, TABLES)
    return Row(*names, small, large, large.seconds / may(large), memory, max(grown, held) / (GROWTH if factor == 1 else GROWTH_QUICK))


def shown(row):
    return (
        f"{row.format:7}{row.shape:24}{row.command:16}{row.small.seconds:7.2f}{row.large.seconds:7.2f} s "
        f"{row.small.memory / 1e6:6.0f}{row.large.memory / 1e6:6.0f} MB  out {row.large.written / 1e6:6.1f} MB  "
        f"code {row.large.code:3}  time {row.time:5.2f} memory {row.memory:5.2f} growth {row.growth:5.2f}"
        f"{'' if holds(row) else '  <--'}"
    )


def holds(row):
    known = (row.shape, row.command) in KNOWN
    return 0 <= row.large.code <= 3 and (known or max(row.time, row.memory, row.growth) <= 1)


def told(rows, options):
    """The table: for each format and command the worst shape by time and by memory."""
    print("| format | command | longest | of what it may | largest | of what it may |\n|---|---|---|---|---|---|")
    for key in sorted({(row.format, row.command) for row in rows}):
        of = [row for row in rows if (row.format, row.command) == key]
        time, memory = max(of, key=lambda row: row.time), max(of, key=lambda row: row.memory)
        print(
            f"| {key[0]} | {key[1]} | {time.large.seconds:.2f} s ({time.shape}) | {time.time:.2f} "
            f"| {memory.large.memory / 1e6:.0f} MB ({memory.shape}) | {memory.memory:.2f} |"
        )
    for row in rows:
        if (row.shape, row.command) in KNOWN and max(row.time, row.memory, row.growth) > 1:
            print(f"\nknown: {shown(row).strip()}: {KNOWN[row.shape, row.command]}")
    broken = [row for row in rows if not holds(row)]
    print(f"\n{len(rows)} runs in two sizes, {len(broken)} beyond what they may take")
    for row in broken:
        print(shown(row))
    refused = [] if options.only else unread(rows)
    for format, command in refused:
        print(f"{format}: {command} reads none of the shapes")
    return 1 if broken or refused else 0


def unread(rows):
    """The commands that refuse every log of a format: their time says nothing."""
    read = {(row.format, row.command) for row in rows if row.large.code in (0, 3)}
    return sorted({(row.format, row.command) for row in rows} - read)


if __name__ == "__main__":
    sys.exit(main())
