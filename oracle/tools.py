"""Runs the code blocks of docs/tools/*.md in order.

usage: tools.py DOCS REAL [PAGE...]

Each page runs in a folder with `flight.ulg`, `old.bag`, `drive.vel` and `logs/`. Python blocks of a page share one scope.
SQL blocks are run by DuckDB with the extension that the variable ROVELOG_DUCKDB names. The others are run by bash. A
block after `<!-- file: NAME -->` is written to this file. Pages that need the C library only run if they are named. A
block after `<!-- needs: NAME -->` is skipped, with a note, if neither a module nor a
program has this name.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

docs, logs = (pathlib.Path(arg).resolve() for arg in sys.argv[1:3])
BLOCK = re.compile(r"(?:<!-- needs: (\S+) -->\n)?```(python|bash|sql)\n(.*?)```", re.DOTALL)
SOURCE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
HOSTS = {"c", "julia", "matlab", "r"}
FILES = {
    "flight.ulg": "ulog/sample_log_small.ulg",
    "logs/a.ulg": "ulog/sample_log_small.ulg",
    "logs/b.ulg": "ulog/sample_logging_tagged_and_default_params.ulg",
    "old.bag": "rosbag12/indexed.bag",
    "drive.vel": "vel/vlp16.vel",
}
# The first failed command ends a block. rovelog reports data that a format cannot hold with exit code 3.
START = 'set -e\nrovelog() { command rovelog "$@" || [ $? = 3 ]; }\n'
# Workers of Spark run the same interpreter.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])


def run(page: pathlib.Path) -> None:
    scope: dict[str, object] = {}
    done = 0
    if page.stem == "matlab":
        shutil.copy(docs.parent / "crates/rovelog-ffi/examples/rovelog_topic.c", ".")
    for name, source in SOURCE.findall(page.read_text(encoding="utf-8")):
        pathlib.Path(name).write_text(source, encoding="utf-8")
    for needs, kind, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if needs and importlib.util.find_spec(needs) is None and shutil.which(needs) is None:
            print(f"SKIPPED: {page.name}: {needs} is not installed")
            continue
        if kind == "python":
            exec(compile(code, page.name, "exec"), scope)
        elif kind == "sql":
            import duckdb

            connection = duckdb.connect(config={"allow_unsigned_extensions": True})
            connection.execute(f"LOAD '{os.environ['ROVELOG_DUCKDB']}'")
            print(connection.execute(code).fetchall()[:3])
        else:
            ended = subprocess.run(["bash", "-c", START + code])
            if ended.returncode != 0:
                sys.exit(f"{page.name}: exit code {ended.returncode}:\n{code}")
        done += 1
    print(f"{page.name}: {done} blocks ran", flush=True)


names = sys.argv[3:]
for page in sorted((docs / "tools").glob("*.md")):
    if page.stem not in names if names else page.stem in HOSTS:
        continue
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("logs").mkdir()
        for name, log in FILES.items():
            shutil.copy(logs / log, name)
        run(page)
        os.chdir("/")
