"""Measures CPU time, wall time and peak memory of converters: export_times.py peers|own|flat ROVELOG LOG...

Each conversion is a process of its own. Its memory is sampled every few milliseconds, without the pages of the mapped log.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
# Number of runs for conversions that write gigabytes.
FEW = 3

PYULOG_PARQUET = """
import sys
import pyarrow, pyarrow.parquet
from pyulog import ULog
for data in ULog(sys.argv[1]).data_list:
    table = pyarrow.table({name: column for name, column in data.data.items()})
    path = f"{sys.argv[2]}/{data.name}_{data.multi_id}.parquet"
    pyarrow.parquet.write_table(table, path, compression="zstd", compression_level=3)
"""


def measure(command, runs):
    """Returns the medians of CPU and wall time, the peak memory, and the bytes written."""
    times, peak, written = [], 0, 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            arguments = [part.replace("OUT", folder) for part in command]
            start = time.monotonic()
            process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                try:
                    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                        if line.startswith("RssAnon:"):
                            peak = max(peak, int(line.split()[1]))
                except OSError:
                    pass
                time.sleep(0.004)
            wall = time.monotonic() - start
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, 3), f"{arguments[0]}: exit {code}"
            times.append((usage.ru_utime + usage.ru_stime, wall))
            written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    cpu = sorted(cpu for cpu, _ in times)[len(times) // 2]
    wall = sorted(wall for _, wall in times)[len(times) // 2]
    return cpu, wall, peak / 1000, written / 1e6


def table(heading, peer, works):
    print(f"| {heading} | CPU s | times {peer} | peak MB | written MB |\n|---|---|---|---|---|", flush=True)
    base = None
    for name, command, runs in works:
        seconds, _, peak, written = measure(command, runs)
        # The other converter is measured first. Each line is printed as soon as its result is
        # known.
        base = base or seconds
        print(f"| {name} | {seconds:.3f} | {base / seconds:.1f} | {peak:.0f} | {written:.0f} |", flush=True)
    print()


def peers(binary, log):
    python = [sys.executable, "-B"]
    export = [binary, "export", "-q", log]
    table("ULog to CSV, all topics", "ulog2csv", [
        ("ulog2csv", [*python, "-c", "import sys; sys.argv[0] = 'ulog2csv'; from pyulog.ulog2csv import main; main()", log, "-o", "OUT"], 1),
        ("rovelog, the same dialect", [*export, "-o", "OUT", "--to", "csv", "--dialect", "pyulog"], FEW),
        ("rovelog, its own", [*export, "-o", "OUT", "--to", "csv"], FEW),
    ])
    table("ULog to Parquet, all topics", "pyulog and pyarrow", [
        ("pyulog and pyarrow", [*python, "-c", PYULOG_PARQUET, log, "OUT"], 1),
        ("rovelog", [*export, "-o", "OUT", "--to", "parquet"], FEW),
    ])


def commands(binary, log):
    """Returns name and arguments of each conversion."""
    export = [binary, "export", "-q", log]
    return [
        ("CSV", [*export, "-o", "OUT", "--to", "csv"]),
        ("Parquet", [*export, "-o", "OUT", "--to", "parquet"]),
        ("Arrow IPC", [*export, "-o", "OUT", "--to", "arrow"]),
        ("NDJSON", [*export, "--to", "ndjson"]),
        ("MCAP, zstd 1", [*export, "-o", "OUT/log.mcap"]),
        ("MCAP, zstd 3", [*export, "-o", "OUT/log.mcap", "--compression", "zstd:3"]),
        ("MCAP, lz4", [*export, "-o", "OUT/log.mcap", "--compression", "lz4"]),
        ("MCAP, not compressed", [*export, "-o", "OUT/log.mcap", "--compression", "none"]),
        ("cat -f csv of one topic", [binary, "cat", "-q", "-f", "csv", "--topics", "sensor_combined", log]),
        ("stats", [binary, "stats", "-q", log]),
        ("check", [binary, "check", "-q", log]),
        ("report", [binary, "report", "-q", log, "-o", "OUT/log.html"]),
    ]


def own(binary, log):
    """Prints each conversion with one thread and with all."""
    print("| all topics | CPU s | CPU s, 1 thread | wall s | wall s, 1 thread | times | peak MB | written MB |\n|---|---|---|---|---|---|---|---|")
    for name, command in commands(binary, log):
        one = measure([*command, "--jobs", "1"], 1)
        cpu, wall, peak, written = measure(command, 1)
        print(f"| {name} | {cpu:.2f} | {one[0]:.2f} | {wall:.2f} | {one[1]:.2f} | {one[1] / wall:.2f} | {peak:.0f} | {written:.0f} |", flush=True)
    print()


def flat(binary, *logs):
    """Prints the time and memory per byte for logs of increasing size."""
    heads = "".join(f" {os.path.getsize(log) / 1e6:.0f} MB: ns/B | peak MB |" for log in logs)
    print(f"| command |{heads}\n|---|{'---|---|' * len(logs)}")
    names = ["check", "stats", "NDJSON", "MCAP, zstd 1", "CSV", "Parquet", "Arrow IPC"]
    for name in ["info", *names]:
        cells = ""
        for log in logs:
            known = dict(commands(binary, log))
            command = known.get(name, [binary, "info", "-q", log])
            cpu, _, peak, _ = measure(command, 1)
            cells += f" {cpu * 1e9 / os.path.getsize(log):.2f} | {peak:.0f} |"
        print(f"| {name} |{cells}", flush=True)
    print()


def main():
    part, binary, *logs = sys.argv[1:]
    for log in logs:
        print(f"{os.path.basename(log)}, {os.path.getsize(log)} bytes; CPU time is user + system")
    print()
    {"peers": peers, "own": own, "flat": flat}[part](binary, *logs)


main()
