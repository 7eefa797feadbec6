"""Imports logs with the plug-in for PlotJuggler, and compares the numbers of rows with `rovelog info`.

usage: plotjuggler.py ROVELOG PLUGIN SDK REAL

SDK is a checkout of PlotJuggler/plotjuggler_sdk. Its loader opens the plug-in.
"""

import pathlib
import re
import subprocess
import sys

import rovelog_cli

rovelog, plugin, sdk, real = (pathlib.Path(arg).resolve() for arg in sys.argv[1:])
program = plugin.parent / "plotjuggler-oracle"
includes = ["pj_base/include", "pj_plugins/include", "pj_plugins/dialog_protocol/include", "pj_plugins/src"]
sources = [
    "pj_base/src/data_source_host_views.cpp",
    "pj_plugins/src/data_source_library.cpp",
    "pj_plugins/src/detail/vtable_validation.cpp",
]
compile_it = ["c++", "-std=c++20", "-O1", "-g", "-o", str(program), str(pathlib.Path(__file__).with_suffix(".cpp"))]
compile_it += [f"-I{sdk / folder}" for folder in includes] + [str(sdk / source) for source in sources] + ["-ldl"]
subprocess.run(compile_it, check=True)

first = real / "ulog/sample_log_small.ulg"
logs = [first] + sorted(path for path in real.rglob("*") if path.suffix in {".ulg", ".rld", ".bag", ".vel"})
lines = subprocess.run([program, plugin, *logs], stdout=subprocess.PIPE, text=True, errors="replace")
if lines.returncode != 0:
    sys.exit(f"{program.name} ended with {lines.returncode}")
imported: dict[str, dict[str, int]] = {}
messages = refused = columns = 0
for line in lines.stdout.splitlines():
    log, kind, *rest = line.split("\t")
    if kind == "topic":
        imported.setdefault(log, {})[rest[0]] = int(rest[1])
        columns += int(rest[2])
    if kind == "message" and (lost := re.fullmatch(r"(.*): (\d+) records cannot be decoded", rest[0])):
        imported[log][lost[1]] += int(lost[2])
    messages += kind == "message"
    refused += kind == "error"
topics, differences = rovelog_cli.unequal_counts(rovelog, imported)
print(f"{len(imported)} logs, {topics} topics, {columns} columns, {messages} messages, {refused} logs without rows")
print(f"{differences} topics have another number of rows")
sys.exit(differences > 0)
