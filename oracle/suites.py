"""Runs the tests of a package with the package itself or with its drop-in.

usage: suites.py run PACKAGE original|drop-in FOLDER OUT    (FOLDER: tests as in the source package)
       suites.py tool PACKAGE original|drop-in MODULE FUNCTION ARGS...

`run` writes the outcome of each test to OUT as JSON. The tests call `tool` as a program of the package. An import hook
replaces the package by the drop-in, so the tests are unchanged.
"""

import importlib
import importlib.abc
import importlib.util
import io
import json
import os
import pathlib
import stat
import sys
import unittest
import warnings

DROP_INS = {name: f"rovelog.compat.{name}" for name in ("pyulog", "rocketlogger", "rosbag")}
# Programs that the tests call: name, module, function.
TOOLS = {
    "pyulog": [("ulog_migratedb", "pyulog.migrate_db", "main")],
    "rocketlogger": [],
    "rosbag": [("rosbag", "rosbag", "rosbagmain")],
}
PATTERN = "test_*.py"


class DropIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports `rovelog.compat.NAME` and its modules in place of `NAME`."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != self.package:
            return None
        place = DROP_INS[self.package] + name[len(self.package):]
        if importlib.util.find_spec(place) is None:
            return None
        return importlib.util.spec_from_loader(name, self, origin=place)

    def create_module(self, spec):
        module = importlib.import_module(spec.origin)
        # The import system sets the spec of NAME on the module; `exec_module` restores the original.
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec


def install(package, which):
    if which == "drop-in":
        sys.meta_path.insert(0, DropIn(package))


class Outcomes(unittest.TestResult):
    """The outcome of each test."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def note(self, test, outcome, text=""):
        self.found[".".join(test.id().split(".")[-3:])] = [outcome, text]

    def addSuccess(self, test):
        self.note(test, "passed")

    def addFailure(self, test, error):
        self.note(test, "failed", self.summary(error))

    def addError(self, test, error):
        self.note(test, "failed", self.summary(error))

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test, error):
        self.note(test, "fails as expected")

    def addUnexpectedSuccess(self, test):
        self.note(test, "passed unexpectedly")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note(test, "failed", self.summary(error))

    @staticmethod
    def summary(error):
        lines = str(error[1]).strip().splitlines()
        return f"{error[0].__name__}: {lines[0] if lines else ''}"


def programs(package, which, folder):
    """Creates a folder with the programs of the package, to be added to PATH."""
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for name, module, function in TOOLS[package]:
        program = folder / name
        words = [sys.executable, os.path.abspath(__file__), "tool", package, which, module, function]
        program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in words) + ' "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def run(package, which, folder, out):
    os.environ["PATH"] = f"{programs(package, which, folder + '-programs').resolve()}{os.pathsep}{os.environ['PATH']}"
    out = os.path.abspath(out)
    # Tests open files relative to the top of the source package.
    os.chdir(folder)
    sys.path.insert(0, os.getcwd())
    install(package, which)
    tests = unittest.TestSuite()
    for path in sorted(pathlib.Path().glob(f"**/{PATTERN}")):
        name = ".".join(path.with_suffix("").parts)
        tests.addTests(unittest.defaultTestLoader.loadTestsFromName(name))
    outcomes = Outcomes()
    streams = sys.stdout, sys.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        sys.stdout = sys.stderr = io.StringIO()
        try:
            tests.run(outcomes)
        finally:
            sys.stdout, sys.stderr = streams
    with open(out, "w") as file:
        json.dump(outcomes.found, file, indent=1, sort_keys=True)


def tool(package, which, module, function, *args):
    install(package, which)
    sys.argv = [module, *args]
    sys.exit(getattr(importlib.import_module(module), function)())


if __name__ == "__main__":
    {"run": run, "tool": tool}[sys.argv[1]](*sys.argv[2:])
