"""Compares the outcomes of test suites with the table in a page.

usage: suites_table.py PAGE [PACKAGE ORIGINAL DROP_IN]...    (ORIGINAL, DROP_IN: written by suites.py)

The table is between two comments of PAGE. BLESS=1 rewrites it. A test that passes with the original but not with the
drop-in must be in `intended_suites.py`, and a reason there that no test needs is an error.
"""

import json
import os
import pathlib
import sys

from intended_suites import ABSENT, INTENDED

START, END = "<!-- suites -->\n", "<!-- end of suites -->\n"
TITLES = {
    "pyulog": "pyulog 1.3.0, `test/`",
    "rocketlogger": "rocketlogger 2.1.3, `tests/`",
    "rosbag": "rosbag 1.15.15, `test_bag.py` and `test_roundtrip.py`",
}
GOOD = ("passed", "fails as expected")


def compared(package, original, drop_in):
    """Returns the row of a package, the reasons below the table, and the unexpected outcomes."""
    reasons, wrong, used = {}, [], set()
    passed = [name for name, (outcome, _) in original.items() if outcome in GOOD]
    for name, (outcome, text) in sorted(original.items()):
        if outcome in GOOD:
            if drop_in.get(name, [None])[0] == outcome:
                continue
            reason = INTENDED[package].get(name)
            used.add(name)
            if reason is None:
                wrong.append(f"{package}: {name}: {' '.join(drop_in.get(name, ['missing']))}")
        elif outcome == "skipped":
            reason = f"skipped by the suite: {text}"
        else:
            reason = next((why for start, why in ABSENT.get(package, {}).items() if text.startswith(start)), None)
            if reason is None:
                wrong.append(f"{package}: {name} with the original: {text}")
        if reason is not None:
            reasons.setdefault(reason, []).append(name.rpartition(".")[2])
    wrong += [f"{package}: {name} passes, but has a reason" for name in INTENDED[package] if name not in used]
    same = [name for name in passed if drop_in.get(name, [None])[0] == original[name][0]]
    row = f"| {TITLES[package]} | {len(original)} | {len(passed)} | {len(same)} |"
    return row, [(package, reason, names) for reason, names in reasons.items()], wrong


def table(runs):
    rows, reasons, wrong = [], [], []
    for package, original, drop_in in runs:
        row, more, unexpected = compared(package, *(json.loads(pathlib.Path(path).read_text()) for path in (original, drop_in)))
        rows.append(row)
        reasons += more
        wrong += unexpected
    lines = ["| suite | tests | pass with the original | of these with the drop-in |", "|---|---|---|---|", *rows, ""]
    lines += ["| tests that do not pass | reason |", "|---|---|"]
    for package, reason, names in reasons:
        lines.append(f"| {package}: " + ", ".join(f"`{name}`" for name in names) + f" | {reason} |")
    return "\n".join(lines) + "\n", wrong


def lines_of(packages, text):
    """Returns the lines of the table about these packages."""
    starts = tuple(start for package in packages for start in (f"| {TITLES[package]} |", f"| {package}: "))
    return [line for line in text.splitlines() if line.startswith(starts)]


def main():
    page = pathlib.Path(sys.argv[1])
    runs = sys.argv[2:]
    found, wrong = table(list(zip(runs[::3], runs[1::3], runs[2::3])))
    print(found, end="")
    text = page.read_text()
    before, _, rest = text.partition(START)
    current, _, after = rest.partition(END)
    # If a suite is not installed, only the lines of the others are compared, and the table cannot be rewritten.
    packages = runs[::3]
    is_whole = set(packages) == set(TITLES)
    if os.environ.get("BLESS") == "1" and is_whole:
        page.write_text(before + START + "\n" + found + "\n" + END + after)
    elif lines_of(packages, current) != lines_of(packages, found) or (is_whole and current.strip() != found.strip()):
        wrong.append(f"{page} has another table: run again with BLESS=1" + ("" if is_whole else " and all suites"))
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
