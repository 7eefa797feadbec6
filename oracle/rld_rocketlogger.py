"""Compares, value by value, what rocketlogger and rovelog read from the same RLD files.

usage: rld_rocketlogger.py ROVELOG FOLDER...

Compares raw integers, bits and timestamps of every row. If rocketlogger refuses a file or reads fewer rows, its message
must be listed below with a reason.
"""

import pathlib
import subprocess
import sys
import warnings

import numpy as np
from rocketlogger.data import RocketLoggerData

# Messages of rocketlogger -> reason why rovelog reads the file (rules of docs/formats/rld.md).
INTENDED = {
    "file magic mismatch": "version 1 (D1)",
    "inconsistent number of samples": "contradicting counts: the size decides (D15)",
    "invalid header length": "a header length that contradicts its parts (D6)",
    "KeyError: 'Undefined channel unit": "unknown units and tables of writer bugs (D3, D29, D30)",
    "UnicodeDecodeError": "text that is no ASCII (D4, D13)",
    "file size": "cut and continued files, short last blocks (D14, D16, D17)",
    "TypeError: data type '<": "values of other sizes, more than 64 bits (D8, D9)",
    "IndexError": "links outside of the table (D11), logs without channels",
    "ZeroDivisionError": "a rate or blocks of 0 (D19, D27)",
    "OverflowError": "stamps that are no times (D26)",
    "ValueError: name already used": "two channels of one name (D3)",
    "does not match header size": "headers that are cut or contradict themselves (D6, D18)",
    "Unsupported RocketLogger data file version": "a version that nobody has described (D18)",
}

# Files in which only rocketlogger finds rows.
REFUSED = {"no-channels": "rows of no bytes (D19)"}


def peer(path):
    """Reads a log with rocketlogger. If rocketlogger rejects the log, returns the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return RocketLoggerData(str(path), join_files=False), None
    except Exception as error:  # pylint: disable=broad-except
        return None, f"{type(error).__name__}: {error}"


def ours(binary, path):
    """Returns the names, raw columns and timestamps that rovelog reads. Returns None if rovelog
    rejects the log.
    """
    done = subprocess.run([binary, "rld", "csv", "-q", str(path)], capture_output=True, check=False)
    if done.returncode not in (0, 3):
        return None
    text = done.stdout.decode("utf-8", "replace")
    head, _, body = text.partition("\n,")
    titles, _, body = body.partition("\n")
    names = [title.split(" [")[0] for title in titles.split(",")]
    rows = [line.split(",") for line in body.splitlines()]
    stamps = []
    for row in rows:
        if row[0]:
            sec, nsec = row[0].split(".")
            stamps.append(int(sec) * 1_000_000_000 + int(nsec))
    columns = [np.array([int(row[i + 1]) for row in rows], dtype=object) for i in range(len(names))]
    return names, columns, stamps


def compare(binary, path):
    """Returns 'equal' or the intended difference. Raises an error for any other difference."""
    mine, (log, refusal) = ours(binary, path), peer(path)
    if refusal is not None:
        for words, why in INTENDED.items():
            if words in refusal:
                return f"rocketlogger refuses ({refusal[:60]}): {why}" + ("" if mine else "; so does rovelog")
        raise AssertionError(f"{path.name}: rocketlogger refuses, unexpectedly: {refusal}")
    if mine is None and path.stem in REFUSED:
        return f"rovelog refuses: {REFUSED[path.stem]}"
    if mine is None:
        raise AssertionError(f"{path.name}: rovelog refuses what rocketlogger reads")
    names, columns, stamps = mine
    theirs = [channel["name"].rstrip("\0") for channel in log._header["channels"]]
    if len(names) != len(theirs):
        raise AssertionError(f"{path.name}: {names} and {theirs}")
    rows = None
    for i, column in enumerate(columns):
        values = np.asarray(log._data[i]).astype(object).ravel()
        rows = len(values)
        if rows > len(column) or not np.array_equal(values, column[:rows]):
            raise AssertionError(f"{path.name}: channel {names[i]} differs")
    their_stamps = np.asarray(log._timestamps_realtime, dtype="datetime64[ns]").ravel().astype(np.int64)
    # Timestamps above 64 bits of nanoseconds are exact in rovelog, and wrap around in rocketlogger (D26).
    wrapped = sum(not -(2**63) <= stamp < 2**63 for stamp in stamps)
    pairs = list(zip(their_stamps.tolist(), stamps))
    if len(pairs) < len(their_stamps):
        raise AssertionError(f"{path.name}: {len(stamps)} stamps, rocketlogger has {len(their_stamps)}")
    if any(theirs != stamp for theirs, stamp in pairs if -(2**63) <= stamp < 2**63):
        raise AssertionError(f"{path.name}: stamps differ")
    if wrapped:
        return f"equal but for {wrapped} stamps that are no times (D26)"
    total = len(columns[0]) if columns else 0
    if rows is not None and rows < total:
        return f"equal in its {rows} of {total} rows: a last block that is not full (D14)"
    return f"equal: {total} rows, {len(names)} channels"


def main():
    binary, failed, counted = sys.argv[1], [], {"equal": 0, "intended": 0}
    for folder in sys.argv[2:]:
        logs = sorted(pathlib.Path(folder).glob("*.rld"))
        print(f"{len(logs)} logs of {pathlib.Path(folder).name}")
        for path in logs:
            try:
                result = compare(binary, path)
                counted["equal" if result.startswith("equal:") else "intended"] += 1
                print(f"  {path.name}: {result}")
            except AssertionError as error:
                failed.append(str(error))
                print(f"  DIFFERS {error}")
    print(f"{counted['equal']} equal, {counted['intended']} otherwise as intended, {len(failed)} differ")
    return 1 if failed or not counted["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
