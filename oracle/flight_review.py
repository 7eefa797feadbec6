"""Compares the plots of a report with what Flight Review computes for the same log.

Flight Review draws data of pyulog; the expressions are those of its app/plot_app/configured_plots.py
(commit 26c8707). Each point that a report draws must be a sample of Flight Review's, at its time and
with its value, and the extremes must be equal.

usage: flight_review.py ROVELOG REAL
"""

import base64
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pyulog import ULog
from pyulog.px4 import PX4ULog

# Points of a report are 32-bit numbers, angles are computed from 32-bit quaternions.
RELATIVE, ABSOLUTE, DEGREES = 2e-6, 1e-6, 2e-3
# Minimum number of compared lines. If fewer lines are compared, this script contains a mistake.
ENOUGH = 30
# Logs of three generations of PX4.
LOGS = ("sample_logging_tagged_and_default_params.ulg", "sample_log_small.ulg", "pyulog__sample_2016_original.ulg")


def degrees(field):
    return lambda data: np.rad2deg(data[field].astype(np.float64))


def same(field):
    return lambda data: data[field]


def gps_altitude(data):
    return data["altitude_msl_m"] if "altitude_msl_m" in data else data["alt"] * 0.001


ATT, ATT_SP, LOCAL, LOCAL_SP = (
    "vehicle_attitude",
    "vehicle_attitude_setpoint",
    "vehicle_local_position",
    "vehicle_local_position_setpoint",
)
GPS, SENSORS, BATTERY, STICKS = "vehicle_gps_position", "sensor_combined", "battery_status", "manual_control_setpoint"


def lines(log):
    """Returns (title, line) -> (topic, instance, function) as Flight Review chooses them for this log."""
    names = {data.name for data in log.data_list}
    fields = {data.name: data.data for data in log.data_list if data.multi_id == 0}
    found = {}

    def add(title, line, topic, function, instance=0):
        found[title, line] = (topic, instance, function)

    new_rates = "vehicle_angular_velocity" in names
    for i, axis in enumerate(["roll", "pitch", "yaw"]):
        add(f"{axis.capitalize()} angle", axis, ATT, degrees(axis))
        add(f"{axis.capitalize()} angle", "set point", ATT_SP, degrees(f"{axis}_d"))
        rate = ("vehicle_angular_velocity", f"xyz[{i}]") if new_rates else (ATT, f"{axis}speed")
        add(f"{axis.capitalize()} rate", f"{axis} rate", rate[0], degrees(rate[1]))
        add(f"{axis.capitalize()} rate", "set point", "vehicle_rates_setpoint", degrees(axis))
    add("Altitude", "GPS", GPS, gps_altitude)
    baro = "vehicle_air_data" if "vehicle_air_data" in names else SENSORS
    add("Altitude", "barometer", baro, same("baro_alt_meter"))
    add("Altitude", "estimate", "vehicle_global_position", same("alt"))
    add("Altitude", "set point", "position_setpoint_triplet", lambda data: np.where(data["current.valid"], data["current.alt"], np.nan))
    for axis in "xyz":
        add(f"Local position {axis.upper()}", axis, LOCAL, same(axis))
        add(f"Local position {axis.upper()}", "set point", LOCAL_SP, same(axis))
        add("Velocity", f"v{axis}", LOCAL, same(f"v{axis}"))
        add("Velocity", f"v{axis} set point", LOCAL_SP, same(f"v{axis}"))
    sticks = fields.get(STICKS, {})
    old = "roll" not in sticks
    for line, field, of_old in [("roll", "roll", "y"), ("pitch", "pitch", "x"), ("yaw", "yaw", "r"), ("throttle", "throttle", "z")]:
        add("Manual control", line, STICKS, same(of_old if old else field))
    for i in "12":
        add("Manual control", f"aux {i}", STICKS, same(f"aux{i}"))
    torque = "vehicle_torque_setpoint" in names
    for i, line in enumerate(["roll", "pitch", "yaw"]):
        topic, field = ("vehicle_torque_setpoint", f"xyz[{i}]") if torque else ("actuator_controls_0", f"control[{i}]")
        add("Actuator controls", line, topic, same(field))
    for i, axis in enumerate("xyz"):
        add("Raw acceleration", axis, SENSORS, same(f"accelerometer_m_s2[{i}]"))
        add("Raw angular speed", axis, SENSORS, degrees(f"gyro_rad[{i}]"))
        magnetometer = "vehicle_magnetometer" if "vehicle_magnetometer" in names else SENSORS
        add("Magnetic field", axis, magnetometer, same(f"magnetometer_ga[{i}]"))
    for i in range(4):
        add("Vibration metrics", f"IMU {i}", "vehicle_imu_status", same("accel_vibration_metric"), i)
    add("Distance sensor", "distance", "distance_sensor", same("current_distance"))
    # Without a distance sensor, the report has no such panel (docs/reference/plots.md).
    if "distance_sensor" in names:
        add("Distance sensor", "estimate", LOCAL, same("dist_bottom"))
    for line, field in [("eph [m]", "eph"), ("epv [m]", "epv"), ("hdop", "hdop"), ("vdop", "vdop"),
                        ("speed [m/s]", "s_variance_m_s"), ("satellites", "satellites_used"), ("fix type", "fix_type")]:
        add("GPS uncertainty", line, GPS, same(field))
    add("GPS noise and jamming", "noise per ms", GPS, same("noise_per_ms"))
    add("GPS noise and jamming", "jamming indicator", GPS, same("jamming_indicator"))
    add("Battery voltage", "voltage", BATTERY, same("voltage_v"))
    add("Battery voltage", "filtered", BATTERY, same("voltage_filtered_v"))
    add("5 V supply", "5 V supply", "system_power", same("voltage5v_v"))
    add("Battery current", "current", BATTERY, same("current_a"))
    add("Battery discharged", "discharged", BATTERY, same("discharged_mah"))
    add("Battery remaining", "remaining", BATTERY, same("remaining"))
    add("CPU and RAM", "CPU load", "cpuload", same("load"))
    add("CPU and RAM", "RAM", "cpuload", same("ram_usage"))
    return found


def drawn(binary, log):
    """Returns the start of a report in microseconds, and (title, line) -> (seconds, values)."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        done = subprocess.run([binary, "report", "-q", log, "-o", page], capture_output=True, check=False, timeout=120)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"report {log}: {done.stderr.decode()}")
        text = page.read_text()
    start = re.search(r"<th>start</th><td>[^<]*?\(?(?:boot clock )?([\d.]+) s", text).group(1)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))
    titles = re.findall(r'<figure data-panel="\d+"><figcaption><b>(.*?)(?: <small>.*?)?</b>', text)
    found = {}
    for title, panel in zip(titles, data["panels"], strict=True):
        for series in panel["series"]:
            seconds = np.frombuffer(base64.b64decode(series["t"]), "<f8")
            found[title, series["name"]] = (seconds, np.frombuffer(base64.b64decode(series["v"]), "<f4"))
    return round(float(start) * 1e6), found


def compare(where, title, start, ours, times, theirs):
    """Returns differences between drawn points and Flight Review's samples."""
    seconds, values = ours
    micros = start + np.round(seconds * 1e6).astype(np.int64)
    theirs = theirs.astype(np.float64)
    tolerance = DEGREES if "angle" in title else ABSOLUTE
    order = np.argsort(times, kind="stable")
    times, theirs = times[order].astype(np.int64), theirs[order]
    close = lambda a, b: np.isclose(a, b, RELATIVE, tolerance, equal_nan=True)
    wrong = []
    for at, value in zip(micros, values):
        # The start is rounded to a microsecond.
        low, high = np.searchsorted(times, at - 1), np.searchsorted(times, at + 1, "right")
        if not np.isnan(value) and not close(theirs[low:high], value).any():
            wrong.append(f"{where}: {value} at {at} us; Flight Review has {theirs[low:high]}")
    inside = theirs[(times >= micros.min()) & (times <= micros.max())]
    inside = inside[np.isfinite(inside)]
    for name, of in [("minimum", np.min), ("maximum", np.max)]:
        if not close(of(values[np.isfinite(values)]), of(inside)):
            wrong.append(f"{where}: {name} {of(values[np.isfinite(values)])}, Flight Review's {of(inside)}")
    return wrong


def main(binary, logs):
    wrong, compared = [], 0
    for log in logs:
        start, ours = drawn(binary, log)
        theirs = ULog(str(log))
        PX4ULog(theirs).add_roll_pitch_yaw()
        points, of_log = 0, 0
        expected = lines(theirs)
        for key, line in ours.items():
            if key not in expected:
                continue
            topic, instance, function = expected[key]
            data = [data for data in theirs.data_list if data.name == topic and data.multi_id == instance]
            if not data:
                wrong.append(f"{log} {key}: drawn, but Flight Review has no {topic}")
                continue
            wrong += compare(f"{log} {key}", key[0], start, line, data[0].data["timestamp"], function(data[0].data))
            of_log += 1
            points += len(line[0])
        # Lines that only Flight Review draws. Lines that only consist of records far outside of the
        # flight are ignored.
        last = start + max(seconds.max() for seconds, _ in ours.values() if len(seconds)) * 1e6
        for key, (topic, instance, function) in expected.items():
            data = [data for data in theirs.data_list if data.name == topic and data.multi_id == instance]
            try:
                values = function(data[0].data) if data and key not in ours else np.array([])
            except KeyError:
                continue
            if len(values):
                times = data[0].data["timestamp"]
                values = values[(times >= start) & (times <= last)]
            if np.isfinite(values.astype(np.float64)).any():
                wrong.append(f"{log} {key}: not drawn")
        compared += of_log
        print(f"{Path(log).name}: {of_log} lines, {points} points")
    print("\n".join(wrong[:40]))
    print(f"{compared} lines compared, {len(wrong)} differences")
    if wrong or compared < ENOUGH:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], [Path(sys.argv[2], "ulog", log) for log in LOGS])
