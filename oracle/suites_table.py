"""Prints the table of the tests of other packages, and checks what does not pass.

usage: suites_table.py PAGE [PACKAGE ORIGINAL DROP_IN]...    (ORIGINAL, DROP_IN: written by suites.py)

The table stands in PAGE, between two comments; with BLESS=1, it is written there. A test that passes with the original and
not with the drop-in has to be in `intended_suites.py`; a reason there that no test needs is an error, too.
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
    """The row of a package, the reasons below the table, and what is not expected."""
    reasons, wrong, used = {}, [], set()
    passed = [name for name, (outcome, _) in original.items() if outcome in GOOD]
    for name, (outcome, text) in sorted(original.items()):
        if outcome in GOOD:
            if drop_in.get(name, [None])[0] == outcome:
                continue
            reason = INTENDED[package].get(name)
            used.add(name)
            if reason is None:
                wrong.append(f"{package}: {name}: {' '.join(drop_in.get(name, ['is not there']))}")
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


def of(packages, text):
    """The lines of a table that are about these packages."""
    starts = tuple(start for package in packages for start in (f"| {TITLES[package]} |", f"| {package}: "))
    return [line for line in text.splitlines() if line.startswith(starts)]


def main():
    page = pathlib.Path(sys.argv[1])
    words = sys.argv[2:]
    found, wrong = table(list(zip(words[::3], words[1::3], words[2::3])))
    print(found, end="")
    text = page.read_text()
    before, _, rest = text.partition(START)
    current, _, after = rest.partition(END)
    # A suite may not be here: then the lines of the others are compared, and none can be written.
    packages = words[::3]
    is_whole = set(packages) == set(TITLES)
    if os.environ.get("BLESS") == "1" and is_whole:
        page.write_text(before + START + "\n" + found + "\n" + END + after)
    elif of(packages, current) != of(packages, found) or (is_whole and current.strip() != found.strip()):
        wrong.append(f"{page} has another table: run again with BLESS=1" + ("" if is_whole else " and all suites"))
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
