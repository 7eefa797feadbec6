"""Loads a flight for a report: some topics, events, parameters, texts and angles.

Usage: load_flight.py LOG
"""

import sys

import numpy as np
from pyulog import ULog
from pyulog.px4 import PX4ULog
from pyulog.px4_events import PX4Events

TOPICS = ["battery_status", "cpuload", "vehicle_attitude", "vehicle_local_position", "vehicle_status", "event", "sensor_combined"]


class ULogException(Exception):
    pass


def load(name):
    try:
        ulog = ULog(name, TOPICS, disable_str_exceptions=False)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ULogException() from error
    # Outliers of the first row are overwritten in place.
    for d in ulog.data_list:
        t = d.data["timestamp"]
        if len(t) > 1 and t[0] > t[1]:
            t[0] = t[1]
    return ulog


ulog = load(sys.argv[1])
px4 = PX4ULog(ulog)
px4.add_roll_pitch_yaw()
events = PX4Events()
events.set_default_json_definitions_cb(lambda already: None)
print("type", px4.get_mav_type(), px4.get_estimator(), ulog.get_version_info_str(), ulog.get_version_info())
print("hardware", ulog.msg_info_dict.get("ver_hw"), sorted(ulog.msg_info_multiple_dict))
print("duration", (ulog.last_timestamp - ulog.start_timestamp) / 1e6, "dropouts", [(d.timestamp, d.duration) for d in ulog.dropouts])
print("parameters", sorted(ulog.initial_parameters.items())[:20], ulog.changed_parameters[:5], ulog.has_default_parameters)
print("texts", [(m.timestamp, m.log_level_str(), m.message) for m in ulog.logged_messages])
print("events", events.get_logged_events(ulog))
for d in ulog.data_list:
    print(d.name, d.multi_id, len(d.field_data), {name: float(np.nansum(values.astype(float))) for name, values in d.data.items()})
try:
    status = ulog.get_dataset("vehicle_status")
    print("modes", status.list_value_changes("nav_state"))
except (KeyError, IndexError, ValueError) as error:
    print(type(error).__mro__[-3].__name__)
