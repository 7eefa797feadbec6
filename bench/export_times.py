"""CPU time and peak memory of converters as whole processes: export_times.py ROVELOG LOG.

Memory is what a process holds itself, looked at every few milliseconds; pages of the mapped log are not counted.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
# For outputs without a peer, which take gigabytes.
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
    """Returns the median CPU time, the peak memory, and the bytes written."""
    times, peak, written = [], 0, 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            arguments = [part.replace("OUT", folder) for part in command]
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
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, 3), f"{arguments[0]}: exit {code}"
            times.append(usage.ru_utime + usage.ru_stime)
            written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return sorted(times)[len(times) // 2], peak / 1000, written / 1e6


def table(heading, peer, works):
    print(f"| {heading} | CPU s | times {peer} | peak MB | written MB |\n|---|---|---|---|---|", flush=True)
    base = None
    for name, command, runs in works:
        seconds, peak, written = measure(command, runs)
        # The peer comes first. Each line is printed as soon as it is known.
        base = base or seconds
        print(f"| {name} | {seconds:.3f} | {base / seconds:.1f} | {peak:.0f} | {written:.0f} |", flush=True)
    print()


def main():
    binary, log = sys.argv[1:3]
    print(f"{os.path.basename(log)}, {os.path.getsize(log)} bytes; CPU time (user + system), the middle of {RUNS} runs, of Python's one\n")
    python = [sys.executable, "-B"]
    export = [binary, "export", "-q", log]
    table("ULog to CSV, all topics", "ulog2csv", [
        ("ulog2csv", [*python, "-c", "import sys; sys.argv[0] = 'ulog2csv'; from pyulog.ulog2csv import main; main()", log, "-o", "OUT"], 1),
        ("rovelog, the same dialect", [*export, "-o", "OUT", "--to", "csv", "--dialect", "pyulog"], RUNS),
        ("rovelog, its own", [*export, "-o", "OUT", "--to", "csv"], RUNS),
    ])
    table("ULog to Parquet, all topics", "pyulog and pyarrow", [
        ("pyulog and pyarrow", [*python, "-c", PYULOG_PARQUET, log, "OUT"], 1),
        ("rovelog", [*export, "-o", "OUT", "--to", "parquet"], RUNS),
    ])
    table("all topics", "Arrow IPC", [
        ("Arrow IPC", [*export, "-o", "OUT", "--to", "arrow"], FEW),
        ("NDJSON", [*export, "-o", "OUT/log.ndjson"], 1),
        ("MCAP", [*export, "-o", "OUT/log.mcap"], 1),
        ("report", [binary, "report", "-q", log, "-o", "OUT/log.html"], FEW),
        ("plot of one signal, PNG", [binary, "plot", "-q", log, "sensor_combined.gyro_rad", "-o", "OUT/plot.png"], FEW),
    ])


main()
