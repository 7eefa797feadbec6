"""Reads all logs through the C interface with nanoarrow, and compares the numbers of rows with `rovelog info`.

usage: hosts.py ROVELOG PREFIX NANOARROW CORPUS [REAL]

PREFIX is the folder with the installed C library, NANOARROW the folder with nanoarrow.c. Then opens 1000 logs under
valgrind, which must find no leak and no invalid access.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

rovelog, prefix, nanoarrow, *folders = (pathlib.Path(arg).resolve() for arg in sys.argv[1:])
SUFFIXES = {".ulg", ".rld", ".bag", ".vel"}
logs = sorted(str(path) for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES)
corpus = [log for log in logs if log.startswith(str(folders[0]))]
environment = os.environ | {
    "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"),
    "LD_LIBRARY_PATH": str(prefix / "lib"),
}


def run(*command: str) -> str:
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} ... ended with {done.returncode}")
    return done.stdout


source = pathlib.Path(__file__).with_name("hosts.c")
program = str(prefix.parent / "hosts")
flags = run("pkg-config", "--cflags", "--libs", "rovelog").split()
run("cc", "-O1", "-g", f"-I{nanoarrow}", str(source), str(nanoarrow / "nanoarrow.c"), *flags, "-o", program)

counted: dict[str, dict[str, int]] = {}
for line in run(program, str(len(logs)), *logs).splitlines():
    log, topic, rows = line.split("\t")
    counted.setdefault(log, {})[topic] = int(rows)
differences = topics = 0
for log, rows in counted.items():
    info = subprocess.run([rovelog, "info", "-f", "json", log], capture_output=True, text=True)
    for topic in json.loads(info.stdout)["topics"]:
        # A row of a Velodyne topic is a point. Control characters of names are escaped.
        if topic["name"] in rows and "Velodyne" not in topic["name"]:
            topics += 1
            if rows[topic["name"]] != topic["count"]:
                differences += 1
                print(f"{log}: {topic['name']}: {rows[topic['name']]} rows, {topic['count']} records")
print(f"{topics} topics of {len(counted)} logs: {differences} with another number of rows")

if shutil.which("valgrind") is None:
    print("SKIPPED: valgrind is not installed")
else:
    leaks = ["--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible", "--error-exitcode=1", "--quiet"]
    run("valgrind", *leaks, program, "1000", *corpus)
    print("1000 opens under valgrind: no leak, no invalid access")
sys.exit(differences > 0)
