"""Runs the blocks of docs/tools/*.md, in order, over real logs: tools.py DOCS LOGS [PAGE...].

A page has a folder with `flight.ulg`, `old.bag`, `drive.vel` and `logs/`. Blocks of Python share one
scope, others are run by bash. A block with `<!-- needs: NAME -->` before it is skipped, with a line
that says so, if neither a module nor a program has this name.
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
BLOCK = re.compile(r"(?:<!-- needs: (\S+) -->\n)?```(python|bash)\n(.*?)```", re.DOTALL)
FILES = {
    "flight.ulg": "ulog/sample_log_small.ulg",
    "logs/a.ulg": "ulog/sample_log_small.ulg",
    "logs/b.ulg": "ulog/sample_logging_tagged_and_default_params.ulg",
    "old.bag": "rosbag12/indexed.bag",
    "drive.vel": "vel/vlp16.vel",
}
# The first command that fails ends a block; data that a format cannot hold is reported with exit code 3.
START = 'set -e\nrovelog() { command rovelog "$@" || [ $? = 3 ]; }\n'
# Workers of an engine run the same interpreter.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])


def run(page: pathlib.Path) -> None:
    scope: dict[str, object] = {}
    done = 0
    for needs, kind, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if needs and importlib.util.find_spec(needs) is None and shutil.which(needs) is None:
            print(f"SKIPPED: {page.name}: {needs} is not installed")
            continue
        if kind == "python":
            exec(compile(code, page.name, "exec"), scope)
        else:
            ended = subprocess.run(["bash", "-c", START + code])
            if ended.returncode != 0:
                sys.exit(f"{page.name}: exit code {ended.returncode}:\n{code}")
        done += 1
    print(f"{page.name}: {done} blocks ran", flush=True)


names = sys.argv[3:]
for page in sorted((docs / "tools").glob("*.md")):
    if names and page.stem not in names:
        continue
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("logs").mkdir()
        for name, log in FILES.items():
            shutil.copy(logs / log, name)
        run(page)
        os.chdir("/")
