"""Checks the estimator: innovations, test ratios and flags between take-off and landing.

Writes a CSV file. Usage: estimator_report.py LOG OUT
"""

import csv
import sys

import numpy as np
import pyulog
from pyulog import ULog

ulog = ULog(sys.argv[1])
data = {(elem.name, elem.multi_id): elem.data for elem in ulog.data_list}
if not any(name == "estimator_status" for name, _ in data):
    raise SystemExit("no estimator_status")
status = ulog.get_dataset("estimator_status").data
start, end = status["timestamp"][0], status["timestamp"][-1]
metrics = {"start_s": start / 1e6, "duration_s": (end - start) / 1e6}

for name in ("mag_test_ratio", "vel_test_ratio", "pos_test_ratio", "hgt_test_ratio", "tas_test_ratio"):
    if name in status:
        ratio = status[name]
        metrics[name + "_max"] = float(np.amax(ratio))
        metrics[name + "_mean"] = float(np.mean(ratio))
        metrics[name + "_percentage_red"] = 100.0 * np.mean(ratio > 1.0)
for bit in range(14):
    flags = ((2**bit & status["innovation_check_flags"]) > 0) * 1 if "innovation_check_flags" in status else np.zeros(1)
    metrics[f"innovation_fail_{bit}"] = float(np.mean(flags))
for bit in range(16):
    control = status["control_mode_flags"].astype(int) >> bit & 1
    metrics[f"control_mode_{bit}_changes"] = int(np.count_nonzero(np.diff(control)))
states = sorted(key for key in status if key.startswith("states["))
metrics["states_var"] = float(sum(np.var(status[key]) for key in states))
imu = ulog.get_dataset("vehicle_attitude").data
dt = np.diff(imu["timestamp"].astype(np.int64)) * 1e-6
metrics["imu_dt_mean"], metrics["imu_dt_max"] = float(dt.mean()), float(dt.max())
metrics["limit"] = ulog.initial_parameters.get("EKF2_GPS_P_NOISE")
metrics["landed"] = len(ulog.get_dataset("vehicle_land_detected").list_value_changes("landed"))
assert isinstance(ulog, pyulog.ULog) and isinstance(ulog.data_list[0], ULog.Data)

with open(sys.argv[2], "w", newline="") as file:
    writer = csv.DictWriter(file, fieldnames=["name", "value"])
    writer.writeheader()
    for name, value in metrics.items():
        writer.writerow({"name": name, "value": str(value)})
print(open(sys.argv[2]).read())
