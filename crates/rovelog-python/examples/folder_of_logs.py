"""Prints a table of all logs in a folder: duration, records, lost bytes, lowest battery voltage.

python folder_of_logs.py FOLDER
"""

import pathlib
import sys

import polars as pl

import rovelog as rl

rows = []
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.ulg")):
    with rl.open(path) as log:
        lowest = None
        if "battery_status" in log:
            lowest = log["battery_status"].select("voltage_v").to_polars()["voltage_v"].min()
        rows.append(
            {
                "log": path.name,
                "state": log.state,
                "seconds": None if log.duration is None else log.duration.total_seconds(),
                "records": log.records,
                "lost_bytes": log.info.lost_bytes,
                "lowest_voltage": lowest,
            }
        )
print(pl.DataFrame(rows).sort("seconds", descending=True, nulls_last=True))
