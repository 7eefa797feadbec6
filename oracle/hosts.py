"""Reads all logs through the C interface with nanoarrow, and compares the numbers of rows with `rovelog info`.

usage: hosts.py ROVELOG PREFIX NANOARROW CORPUS [REAL]

PREFIX is the folder with the installed C library, NANOARROW the folder with nanoarrow.c. Then opens more than 1000 logs
under valgrind, which must find no leak and no invalid access.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

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



def blocks_at_end(opens: int) -> int:
    """Returns the number of blocks that are still allocated when the program ends. Fails at a leak or invalid access."""
    leaks = ["--leak-check=full", "--errors-for-leak-kinds=definite,indirect", "--error-exitcode=1"]
    # The compiler evaluates both sides of `&&` at once in safe code, which valgrind reports as undefined values.
    leaks.append("--undef-value-errors=no")
    with tempfile.NamedTemporaryFile("r") as report:
        run("valgrind", f"--log-file={report.name}", *leaks, program, str(opens), *corpus)
        found = re.search(r"in use at exit: [\d,]+ bytes in ([\d,]+) blocks", report.read())
    return int(found[1].replace(",", "")) if found else 0


if shutil.which("valgrind") is None:
    print("SKIPPED: valgrind is not installed")
else:
    # Tables that are made once, when a log needs them, stay allocated. A second pass must add nothing.
    once, twice = blocks_at_end(len(corpus)), blocks_at_end(2 * len(corpus))
    print(f"valgrind: {once} blocks are in use after {len(corpus)} opens, {twice} after {2 * len(corpus)}")
    differences += once != twice
sys.exit(differences > 0)
