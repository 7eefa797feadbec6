"""Reads all logs through the C interface with nanoarrow, and compares the numbers of rows and the summaries with `rovelog info`.

usage: hosts.py ROVELOG PREFIX NANOARROW CORPUS [REAL]

PREFIX is the folder with the installed C library, NANOARROW the folder with nanoarrow.c. Then opens more than 1000 logs
under valgrind, which must find no leak and no invalid access.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import rovelog_cli

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
topics, differences = rovelog_cli.unequal_counts(rovelog, counted)
print(f"{topics} topics of {len(counted)} logs: {differences} with another number of rows")

library = ctypes.CDLL(str(prefix / "lib/librovelog.so"))
library.rovelog_open.restype = library.rovelog_info.restype = ctypes.c_void_p
library.rovelog_open.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
for function in (library.rovelog_info, library.rovelog_close, library.rovelog_free_text):
    function.argtypes = [ctypes.c_void_p]


def summary(log: str) -> dict[str, object]:
    """Returns the summary of a log by the C interface."""
    # As `rovelog info`, by the index.
    handle = library.rovelog_open(os.fsencode(log), 1)
    text = library.rovelog_info(handle)
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        library.rovelog_free_text(text)
        library.rovelog_close(handle)


def is_part(ours: object, theirs: object) -> bool:
    """Returns True if all keys and values of our document are in the other one."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(key in theirs and is_part(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_part, ours, theirs))
    return ours == theirs


for log in counted:
    ours, theirs = summary(log), rovelog_cli.document(rovelog, "info", log)
    # `info` sorts topics by their names.
    for topics_of in (ours["topics"], theirs["topics"]):
        topics_of.sort(key=lambda topic: topic["name"])
    for key, value in ours.items():
        if key not in theirs or not is_part(value, theirs[key]):
            differences += 1
            print(f"{log}: {key}: {str(value)[:200]} and {str(theirs.get(key))[:200]}")
print(f"{len(counted)} summaries")



def blocks_at_end(opens: int) -> int:
    """Returns the number of blocks that are still allocated when the program ends. Fails at a leak or invalid access."""
    leaks = ["--leak-check=full", "--errors-for-leak-kinds=definite,indirect", "--error-exitcode=1"]
    # valgrind reports undefined values in optimized code of `rosbag12`, which has no `unsafe`.
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
