"""The program `ulog_extract_gps_dump`: writes the raw communication with a GPS receiver to
files.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np

from rovelog.compat.pyulog.core import ULog

TO_DEVICE = 1 << 7
"""Bit of the length that is set for bytes sent to the receiver."""


def _folder(name: str) -> str:
    """Returns the name of a folder. Raises an error if the folder does not exist."""
    if not os.path.isdir(name):
        raise argparse.ArgumentTypeError(f"The directory {name} does not exist")
    return name


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Extract the raw gps communication from an ULog file")
    parser.add_argument("filename", metavar="file.ulg", help="ULog input file")
    parser.add_argument(
        "-o", "--output", help="Output directory (default is CWD)", metavar="DIR", type=_folder
    )
    parser.add_argument("-x", "--ignore", action="store_true", help="Ignore string parsing exceptions")
    parser.add_argument(
        "-i",
        "--instance",
        type=int,
        help="GPS instance. Use 0 (default) for main GPS, 1 for secondary GPS receiver.",
        default=0,
    )
    args = parser.parse_args()
    ulog = ULog(args.filename, ["gps_dump"], args.ignore)
    if not ulog.data_list:
        print(f"File {args.filename} does not contain gps_dump messages!")
        sys.exit(0)
    data = ulog.data_list[0].data
    if "len" not in data or "data[0]" not in data:
        print("Error: gps_dump message has wrong format")
        sys.exit(-1)
    if ulog.dropouts:
        print(f"Warning: file contains {len(ulog.dropouts)} dropouts")
    prefix = os.path.basename(args.filename)
    prefix = prefix[:-4] if prefix.lower().endswith(".ulg") else prefix
    prefix = os.path.join(args.output or "", f"{prefix}_{args.instance}")
    names = f"{prefix}_to_device.dat", f"{prefix}_from_device.dat"
    print(f"Creating files {names[0]} and {names[1]}")
    width = sum(name.startswith("data[") for name in data)
    bytes_of = np.stack([data[f"data[{index}]"] for index in range(width)], axis=1)
    instances = data.get("instance", np.zeros(len(data["len"]), np.uint8))
    with open(names[0], "wb") as to_device, open(names[1], "wb") as from_device:
        for length, instance, row in zip(data["len"].tolist(), instances.tolist(), bytes_of, strict=True):
            if instance == args.instance:
                out = to_device if length & TO_DEVICE else from_device
                out.write(row[: length & ~TO_DEVICE].tobytes())


if __name__ == "__main__":
    main()
