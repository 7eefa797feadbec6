"""Measures every command on every kind of hostile log, and compares time and memory with limits.

usage: hostile.py ROVELOG SIZE [--quick] [--only TEXT] [--rows]

Each log is written in two sizes, SIZE and a quarter of it, to a temporary folder. The limits of a run are ratios to
measurements on the same machine:

- The processor time is at most TIME times that of `cat` per byte read and written, plus twice that of `info` of a tiny log.
- The memory is at most MEMORY times the bytes read, plus that of `info` of a tiny log.
- From the small to the large log, time and memory grow by at most four times GROWTH.

A command may refuse a log (exit code 1 or 2), which costs nothing. So it must read at least one kind of log to its end.

Prints a Markdown table with the worst time and memory of each command. Fails if a run exceeds a limit without a reason in
KNOWN. --quick runs fewer commands, with the tolerance of a build with debug assertions.
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

# Processor time per byte, as a multiple of that of `cat`. On a quiet machine 20 MB take about 2 s.
TIME = 300
# Bytes of memory per byte read. 20 MB may take 300 MB.
MEMORY = 14
# Tolerance for the growth of time and memory. Runs shorter than FLOOR / 4 starts of `rovelog` count as that long.
GROWTH, GROWTH_QUICK = 1.6, 2.2
FLOOR = 40
# Smaller memory in bytes cannot be measured, because the memory of this script hides it.
UNSEEN = 16 << 20
# Memory in bytes that any run may use: small logs can also have 65 536 topics or channels.
TABLES = 150 << 20
# A build with debug assertions takes this many times as long.
UNOPTIMIZED = 12
# A run is killed at this many times its limit.
PATIENCE = 4

# Runs that exceed a limit: shape and command -> reason.
CHANNELS = "131 070 channels, each with its names and columns"
FIELDS = "8192 columns with their buffers"
ALIKE = "rows with repeated times are sorted in windows of 8 MiB, and a small log is one window"
SCHEMAS = "60 000 topics, each with a schema and a channel"
SIGNALS = "10 000 lines, each with its values"
TOPICS = "65 536 topics, each with its type, times and sums: 5 % above the limit"
CONNECTIONS = "65 536 connections, each with its publisher, definition and columns"
CHUNKS = "more than 200 000 chunks, each reported with its state and losses"
BZ2 = "bz2 sorts a million similar short messages, which takes three times as long as in the original program"
KNOWN = {
    ("parameters.ulg", "params"): "870 000 parameters, each kept with its defaults and changes",
    ("parameters.ulg", "params changed"): "the same",
    ("parameters.ulg", "diff"): "the same, of two logs",
    ("formats.ulg", "merge"): "600 000 formats, kept by both logs, by the merge and by the writer",
    ("changes.ulg", "export mcap"): "800 000 changes of a parameter, kept to be written between the records",
    ("infos.ulg", "export mcap"): "infos, kept to be written before the records",
    ("types.ulg", "export mcap"): SCHEMAS,
    ("types.ulg", "stats"): TOPICS,
    ("undefined-topics.bag", "stats"): TOPICS,
    ("undefined-topics.bag", "findings"): TOPICS,
    ("undefined-topics.bag", "export mcap"): SCHEMAS,
    ("undefined-topics.bag", "export ros2"): SCHEMAS,
    ("wide.ulg", "export parquet"): FIELDS,
    ("wide.bag", "export parquet"): FIELDS,
    ("sources.vel", "stats"): "460 000 fields, each with its sums",
    ("amplified.ulg", "stats"): "up to a million fields, each with its sums; more are refused",
    ("sources.vel", "extract"): "a file for each of more than 400 000 images",
    ("dropouts.ulg", "split"): "dropouts without a row have one time, so each search for a cut scans all of them",
    ("empty-unknown.ulg", "split"): "the same, with messages of unknown types",
    **{("v2-connections.bag", name): CONNECTIONS for name in ("stats", "findings", "check", "check json", "export bag2", "export bz2")},
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
    "findings": ["findings", "LOG"],
    "du": ["du", "LOG"],
    "dump": ["dump", "LOG"],
    "check": ["check", "LOG"],
    "check json": ["check", "LOG", "-f", "json"],
    "diff": ["diff", "LOG", "LOG"],
    "recover": ["recover", "LOG", "-o", "OUT/out"],
    "scrub": ["scrub", "LOG", "-o", "OUT/out"],
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

# One file per topic for 60 000 topics is requested output, so only topics with short names are exported.
FEW = "[^0-9]{0,8}[0-9]{0,2}|t/[0-9]{1,2}|Laser.*|Velodyne.*"

# Formats whose logs have no common clock.
MERGE_BOOT = {"merge": [*COMMON["merge"], "--time-base", "boot"]}


def common(*absent):
    """Returns the commands of every format except some."""
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
    },
}

QUICK = ["info", "cat", "stats", "merge", "export mcap", "report"]


def write(path, make, size):
    """Writes a log in a process of its own, because the peak memory of this one counts for all processes that it forks."""
    pid = os.fork()
    if pid == 0:
        path.write_bytes(make(size))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, f"{path.name} cannot be made"


def bytes_in(folder):
    """Returns the size in bytes and the number of the files in a folder."""
    size, count = 0, 0
    with os.scandir(folder) as entries:
        for entry in entries:
            below = bytes_in(entry) if entry.is_dir() else (entry.stat().st_size, 1)
            size, count = size + below[0], count + below[1]
    return size, count


def measured(command, folder, read, limit, stdin=None):
    """Runs a command, for at most `limit` seconds of processor time."""
    seconds = int(limit) + 1
    # Not vfork: the peak memory of a process that vfork creates includes that of this one.
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
    """Costs on this machine: the start of `rovelog`, and a byte of `cat`."""

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
    """Runs a command in a folder of its own, over a log that has `size` bytes when it is decompressed."""
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
    return report(rows, options)


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
    """Returns the best of up to three measurements, because a busy machine can slow one down."""
    found = measure()
    for _ in range(2):
        if holds(found):
            break
        found = min(found, measure(), key=lambda row: max(row.time, row.memory, row.growth))
    return found


def row(machine, factor, rovelog, names, command, logs, folder):
    """Runs a command on both logs, and compares the runs with the limits."""

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


def report(rows, options):
    """Prints the table, which has the worst shape by time and by memory for each command. Returns the exit code."""
    print("| format | command | longest | of its limit | largest | of its limit |\n|---|---|---|---|---|---|")
    for key in sorted({(row.format, row.command) for row in rows}):
        of = [row for row in rows if (row.format, row.command) == key]
        time, memory = max(of, key=lambda row: row.time), max(of, key=lambda row: row.memory)
        print(
            f"| {key[0]} | {key[1]} | {time.large.seconds:.2f} s ({time.shape}) | {time.time:.2f} "
            f"| {memory.large.memory / 1e6:.0f} MB ({memory.shape}) | {memory.memory:.2f} |"
        )
    known = [row for row in rows if (row.shape, row.command) in KNOWN and max(row.time, row.memory, row.growth) > 1]
    if known:
        print("\n| above a limit | command | of its time | of its memory | of its growth | reason |\n|---|---|---|---|---|---|")
    for row in known:
        ratios = f"{row.time:.2f} | {row.memory:.2f} | {row.growth:.2f}"
        print(f"| {row.shape} | {row.command} | {ratios} | {KNOWN[row.shape, row.command]} |")
    broken = [row for row in rows if not holds(row)]
    print(f"\n{len(rows)} runs in two sizes, {len(broken)} above a limit without a reason")
    for row in broken:
        print(shown(row))
    refused = [] if options.only else unread(rows)
    for format, command in refused:
        print(f"{format}: {command} reads none of the shapes")
    return 1 if broken or refused else 0


def unread(rows):
    """Returns the commands that refuse every log of a format, so that nothing was measured."""
    read = {(row.format, row.command) for row in rows if row.large.code in (0, 3)}
    return sorted({(row.format, row.command) for row in rows} - read)


if __name__ == "__main__":
    sys.exit(main())
