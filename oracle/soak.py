"""Measures memory and open files of one process that reads thousands of logs.

usage: soak.py ROVELOG CORPUS FOLDER [FACTOR]

FOLDER is emptied and filled with hard links to the logs of the corpus, so the content is the same for every
number of logs. FACTOR multiplies the numbers of logs. Prints a Markdown table. Fails if memory or open files
grow with the number of logs by more than is allowed below.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

COUNTS = (1000, 5000, 10_000)
# Logs per process of the runs that use several processes.
BATCH = 1000
# Memory with the most logs may be this many times that with the fewest.
MAX_GROWTH = 1.5
# `view` keeps a row for each log, so its memory may grow by this many MB per log.
MAX_VIEW_GROWTH = 0.002
# Memory of `view` differs by a few MB between runs.
VIEW_NOISE = 5
MAX_MORE_FILES = 4
# Damaged and refused logs are part of the corpus, so a command may report them.
EXIT_CODES = (0, 1, 3)


class Peak:
    """The largest memory in MB and number of open files of the observed processes."""

    def __init__(self):
        self.megabytes, self.files = 0, 0

    def observe(self, pid):
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            files = len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return  # The process has ended.
        kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        self.megabytes = max(self.megabytes, *(int(value) / 1000 for value in kilobytes), 0)
        self.files = max(self.files, files)


def run(command, folder, peak):
    """Runs a command to its end and observes its process meanwhile."""
    with open(folder / "errors", "w") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
    while process.poll() is None:
        peak.observe(process.pid)
        time.sleep(0.005)
    if process.returncode not in EXIT_CODES:
        sys.exit(f"{' '.join(map(str, command[:4]))} ... ended with {process.returncode}")


def single(*args):
    """Reads all logs in one process."""
    return lambda rovelog, folder, peak: run([rovelog, *args, folder / "logs"], folder, peak)


def batches(*args):
    """Reads the logs in one process after the other, BATCH logs in each."""

    def measure(rovelog, folder, peak):
        logs = sorted((folder / "logs").iterdir())
        for start in range(0, len(logs), BATCH):
            run([rovelog, *args, *logs[start : start + BATCH]], folder, peak)

    return measure


def view(rovelog, folder, peak):
    """Requests the row and the page of every log from `rovelog view`."""
    # Each thread of the server has an arena of glibc, which keeps freed memory. How much they keep differs by 70 MB
    # between runs, so that a growth could not be seen. A single arena shows what the server itself keeps.
    process = subprocess.Popen(
        [rovelog, "view", "--no-open", folder / "logs"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    try:
        line = process.stdout.readline()
        address = next((word for word in line.split() if word.startswith("http://")), None)
        if not address:
            sys.exit(f"rovelog view printed no address: {line}")

        def get(path):
            try:
                with urllib.request.urlopen(address.rstrip("/") + "/" + path) as response:
                    return response.read()
            except urllib.error.HTTPError:
                return b""  # A few logs of the corpus are refused.

        count, shown = len(json.loads(get("logs"))["logs"]), 0
        for number in range(count):
            get(f"logs/{number}/row")
            shown += b"topics" in get(f"logs/{number}")
            peak.observe(process.pid)
        if shown * 3 < count * 2:
            sys.exit(f"rovelog view showed only {shown} of {count} logs")
    finally:
        process.kill()
        process.wait()


RUNS = {
    "`info -f csv`": single("info", "-f", "csv"),
    "`info -f ndjson`": single("info", "-f", "ndjson"),
    f"`info`, {BATCH} logs in each process": batches("info", "-f", "csv"),
    "`check -f json`": single("check", "-f", "json"),
    "`export --to mcap`": single("export", "--to", "mcap", "--force", "-q", "-o", "exported"),
    "`view`, every log shown": view,
}


def link(corpus, folder, count):
    """Replaces the folder by one with `count` links to logs of the corpus."""
    shutil.rmtree(folder, ignore_errors=True)
    logs = folder / "logs"
    logs.mkdir(parents=True)
    formats = [entry for entry in sorted(corpus.iterdir()) if entry.is_dir() and entry.name not in ("expected", "generator")]
    sources = [path for entry in formats for path in sorted(entry.iterdir())]
    for number in range(count):
        source = sources[number % len(sources)]
        # The number comes first because the end of a name may make a log part of another one.
        target = logs / f"{number}-{source.name}"
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, target)


def main():
    rovelog, corpus, folder, *factor = sys.argv[1:]
    rovelog, corpus, folder = (pathlib.Path(path).resolve() for path in (rovelog, corpus, folder))
    failed = []
    print("| command | logs | seconds | memory, MB | open files |\n|---|---|---|---|---|")
    for name, measure in RUNS.items():
        first = None
        for count in (count * int(*factor or [1]) for count in COUNTS):
            link(corpus, folder, count)
            peak, start = Peak(), time.monotonic()
            measure(rovelog, folder, peak)
            seconds = time.monotonic() - start
            print(f"| {name} | {count} | {seconds:.1f} | {peak.megabytes:.0f} | {peak.files} |", flush=True)
            first = first or (count, peak)
            allowed = first[1].megabytes * MAX_GROWTH
            if measure is view:
                allowed = first[1].megabytes + MAX_VIEW_GROWTH * (count - first[0]) + VIEW_NOISE
            if peak.megabytes > allowed or peak.files > first[1].files + MAX_MORE_FILES:
                failed.append(f"{name} of {count} logs")
    shutil.rmtree(folder)
    if failed:
        sys.exit(f"memory or open files grow with the number of logs: {', '.join(failed)}")


main()
