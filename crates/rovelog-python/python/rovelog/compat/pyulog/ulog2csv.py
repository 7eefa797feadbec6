"""The program `ulog2csv`: writes each dataset of a ULog to a CSV file, in the format of pyulog."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

import numpy as np

from rovelog.compat.pyulog.core import ULog

ELEMENT = re.compile(r"(.*)\[(.*?)\]")
"""Name of an array element: `text[3]`."""


def read_string_data(data: ULog.Data, field_name: str, array_size: int, data_index: int) -> str:
    """Returns the text in an array of characters, up to the first zero."""
    codes = [int(data.data[f"{field_name}[{index}]"][data_index]) for index in range(array_size)]
    return "".join(map(chr, codes[: codes.index(0)] if 0 in codes else codes))


def first_at(times: Any, seconds: int | None, otherwise: int) -> int:
    """Returns the index of the first row at or after a time. As in pyulog, raises IndexError if
    there is no such row.
    """
    return int(np.flatnonzero(times >= seconds * 1e6)[0]) if seconds else otherwise


def _columns(data: ULog.Data, rows: range) -> dict[str, list[str]]:
    """Returns the columns as text, with `timestamp` as the first. An array of characters is one
    column.
    """
    texts: dict[str, int] = {}
    names: list[str] = []
    for field in data.field_data:
        element = ELEMENT.fullmatch(field.field_name)
        if field.field_name.startswith("_padding"):
            continue
        if element and field.type_str == "char":
            name, index = element[1], int(element[2])
            texts[name] = max(index + 1, texts.get(name, 0))
            if index == 0:
                names.append(name)
        else:
            names.append(field.field_name)
    names.remove("timestamp")
    return {
        name: [read_string_data(data, name, texts[name], row) for row in rows]
        if name in texts
        else [str(value) for value in data.data[name][rows.start : rows.stop]]
        for name in ["timestamp", *names]
    }


def convert_ulog2csv(
    ulog_file_name: str,
    messages: str | None,
    output: str | None,
    delimiter: str,
    time_s: int | None,
    time_e: int | None,
    disable_str_exceptions: bool = False,
) -> None:
    """Writes the datasets to CSV files.

    - `messages`: names of datasets, separated by commas
    - `output`: folder of the files, by default that of the log
    - `time_s`, `time_e`: limits of the rows in seconds on the log clock
    """
    ulog = ULog(ulog_file_name, messages.split(",") if messages else None, disable_str_exceptions)
    prefix = ulog_file_name[:-4] if ulog_file_name.lower().endswith(".ulg") else ulog_file_name
    if output:
        prefix = os.path.join(output, os.path.basename(prefix))
    for data in ulog.data_list:
        times = data.data["timestamp"]
        name = f"{prefix}_{data.name.replace('/', '_')}_{data.multi_id}.csv"
        print(f"Writing {name} ({len(times)} data points)")
        rows = range(first_at(times, time_s, 0), first_at(times, time_e, len(times)))
        columns = _columns(data, rows)
        with open(name, "w", encoding="utf-8") as out:
            out.write(delimiter.join(columns) + "\n")
            out.writelines(delimiter.join(row) + "\n" for row in zip(*columns.values(), strict=True))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Convert ULog to CSV")
    parser.add_argument("filename", metavar="file.ulg", help="ULog input file")
    parser.add_argument(
        "-m",
        "--messages",
        help="Only consider given messages. Must be a comma-separated list of names, like 'sensor_combined,vehicle_gnss'",
    )
    parser.add_argument("-d", "--delimiter", help="Use delimiter in CSV (default is ',')", default=",")
    parser.add_argument(
        "-o", "--output", help="Output directory (default is same as input file)", metavar="DIR"
    )
    parser.add_argument("-i", "--ignore", action="store_true", help="Ignore string parsing exceptions")
    parser.add_argument(
        "-ts", "--time_s", type=int, help="Only convert data after this timestamp (in seconds)"
    )
    parser.add_argument("-te", "--time_e", type=int, help="Only convert data upto this timestamp (in seconds)")
    args = parser.parse_args()
    if args.output and not os.path.isdir(args.output):
        print(f"Creating output directory {args.output}")
        os.mkdir(args.output)
    convert_ulog2csv(
        args.filename, args.messages, args.output, args.delimiter, args.time_s, args.time_e, args.ignore
    )


if __name__ == "__main__":
    main()
