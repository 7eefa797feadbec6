"""Joins frames of all topics by time, and makes a frame of a power trace, as notebooks do.

Usage: notebook.py FLIGHT POWER
"""

import sys

import pandas as pd
from pyulog.core import ULog
from rocketlogger.data import RocketLoggerData

ulog = ULog(sys.argv[1], ["vehicle_attitude", "sensor_combined", "battery_status"])
frames = {}
for d in ulog.data_list:
    frame = pd.DataFrame(d.data)
    frame["timestamp"] = pd.to_timedelta(frame["timestamp"] - frame["timestamp"][0], unit="us")
    frames[f"{d.name}_{d.multi_id}"] = frame.set_index("timestamp")
print(sorted((name, frame.shape) for name, frame in frames.items()))
attitude = frames["vehicle_attitude_0"]
attitude.iloc[0, 0] = 7
attitude["rollspeed"] = attitude[[name for name in attitude if name.startswith("q[")]].sum(axis=1)
print(attitude.describe().round(3).to_string())
joined = pd.merge_asof(frames["sensor_combined_0"], attitude, left_index=True, right_index=True)
print(joined.resample("1s").mean().round(3).to_string())
print({m.log_level: m.message for m in ulog.logged_messages})

data = RocketLoggerData(sys.argv[2])
print(data._header["sample_rate"], data.get_channel_names())
trace = data.get_dataframe(["V1", "I1L"])
trace.index = pd.to_timedelta(trace.index, unit="s")
print(trace.resample("1s").mean().round(6).to_string(), trace["V1"].rolling(100).mean().iloc[-1].round(6))
