"""The program `ulog_params`: prints the parameters of a ULog as CSV, for Octave, or for
QGroundControl.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rovelog.compat.pyulog.core import ULog

FLOAT, INT = 9, 6
"""Numbers of the parameter types in MAVLink, which QGroundControl files contain."""
DEFAULTS = {"system": 0, "current_setup": 1}


def get_defaults(ulog: ULog, default: str) -> dict[str, int | float]:
    """Returns the default values of the kind `system` or `current_setup`."""
    if not ulog.has_default_parameters:
        raise AssertionError("Log does not contain default parameters")
    if default not in DEFAULTS:
        raise ValueError(f"invalid value '{default}' for --default")
    return ulog.get_default_parameters(DEFAULTS[default])


def _csv(ulog: ULog, params: dict[str, int | float], delimiter: str, initial: bool, timestamps: bool) -> Iterator[str]:
    for name in sorted(params):
        changes = [(time, value) for time, changed, value in ulog.changed_parameters if changed == name]
        if initial and not timestamps:
            changes = []
        yield delimiter.join([name, *map(str, [params[name], *(value for _, value in changes)])])
        if timestamps:
            yield delimiter.join(["timestamp", *map(str, [0, *(time for time, _ in changes)])])


def _octave(ulog: ULog, params: dict[str, int | float], initial: bool) -> Iterator[str]:
    for name in sorted(params):
        values = [params[name]]
        if not initial:
            values += [value for _, changed, value in ulog.changed_parameters if changed == name]
        yield f"# name {name}"
        if len(values) == 1:
            yield "# type: scalar"
            yield str(values[0])
        else:
            yield "# type: matrix"
            yield "# rows: 1"
            yield f"# columns: {len(values)}"
            yield "".join(f"{value} " for value in values)


def _qgc(params: dict[str, int | float]) -> Iterator[str]:
    for name in sorted(params):
        kind = FLOAT if isinstance(params[name], float) else INT
        yield f"1\t1\t{name}\t{params[name]}\t{kind}"


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Extract parameters from an ULog file")
    parser.add_argument("filename", metavar="file.ulg", help="ULog input file")
    parser.add_argument("-l", "--delimiter", help="Use delimiter in CSV (default is ',')", default=",")
    parser.add_argument(
        "-i", "--initial", action="store_true", help="Only extract initial parameters. (octave|csv)"
    )
    parser.add_argument(
        "-t", "--timestamps", action="store_true", help="Extract changed parameters with timestamps. (csv)"
    )
    parser.add_argument("-f", "--format", help="csv|octave|qgc", default="csv")
    parser.add_argument("output_filename", metavar="params.txt", nargs="?", help="Output filename (default=stdout)")
    parser.add_argument("--ignore", action="store_true", help="Ignore string parsing exceptions")
    parser.add_argument(
        "-d",
        "--default",
        help="Select default param values instead of configured values (implies --initial). "
        "Valid values: system|current_setup",
    )
    args = parser.parse_args()
    ulog = ULog(args.filename, [] if args.initial else None, args.ignore)
    params = ulog.initial_parameters if args.default is None else get_defaults(ulog, args.default)
    initial = args.initial or args.default is not None
    forms = {
        "csv": lambda: _csv(ulog, params, args.delimiter, initial, args.timestamps),
        "octave": lambda: _octave(ulog, params, initial),
        "qgc": lambda: _qgc(params),
    }
    lines = [line + "\n" for line in forms[args.format]()] if args.format in forms else []
    if args.output_filename is None:
        sys.stdout.writelines(lines)
    else:
        with open(args.output_filename, "w", encoding="utf-8") as out:
            out.writelines(lines)


if __name__ == "__main__":
    main()
