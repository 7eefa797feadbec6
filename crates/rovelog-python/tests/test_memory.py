"""If there is not enough memory, a log raises an exception. The process does not end, and no partial
output remains.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import crafted
import pytest

pytest.importorskip("resource", reason="this system has no limit of the memory")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory in use is read from /proc")

ROWS = 400_000
"""Number of rows of the log, whose columns need 11 MB."""

SCRIPT = """
import resource, sys
from pathlib import Path
import rovelog as rl
path, action, free = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
actions = {
    "open": lambda path: rl.open(path).info,
    "column": lambda path: rl.open(path)["fast"]["x"],
    "columns": lambda path: rl.open(path)["fast"].numpy(),
    "signals": lambda path: rl.open(path).signals("fast.x * 2"),
    "convert": lambda path: rl.convert(path, path.parent / "out.parquet", topics="fast"),
    "slice": lambda path: rl.open(path).slice(path.parent / "part.ulg", topics="fast"),
}
small = Path(sys.argv[4])
# Modules and threads that are used for the first time need memory until the process ends.
actions[action](small)
for file in small.parent.iterdir():
    if file != small:
        file.unlink()
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
limit = (used << 10) + free
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    actions[action](path)
    print("complete")
except (rl.RovelogError, MemoryError) as error:
    print("error", error)
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A large and a small log."""
    folder = tmp_path_factory.mktemp("memory")
    (folder / "large").mkdir()
    return crafted.large(folder / "large" / "large.ulg", ROWS), crafted.large(folder / "small.ulg", 10)


@pytest.mark.parametrize("action", ["open", "column", "columns", "signals", "convert", "slice"])
def test_insufficient_memory_is_an_exception(action: str, logs: tuple[Path, Path], tmp_path: Path) -> None:
    large, small = logs
    copy = tmp_path / "small.ulg"
    copy.write_bytes(small.read_bytes())
    outcomes = set()
    for mib in [0, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 2048]:
        for file in large.parent.iterdir():
            if file != large:
                file.unlink()
        words = [sys.executable, "-c", SCRIPT, large, action, str(mib << 20), copy]
        # With one arena, the memory does not depend on the number of threads.
        env = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
        # If a thread cannot get its own data, the C library ends the process.
        if "thread-local data" in done.stderr:
            continue
        assert done.returncode == 0, f"{mib} MiB: {done.stdout} {done.stderr}"
        outcomes.add(done.stdout.split()[0])
        if done.stdout.startswith("error"):
            assert [file.name for file in large.parent.iterdir()] == [large.name], f"{mib} MiB"
    assert outcomes == {"error", "complete"}
