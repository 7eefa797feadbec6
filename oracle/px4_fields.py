"""Writes `crates/ulog-format/src/px4/fields.txt`: units of PX4's fields, and names of their values.

usage: px4_fields.py PX4_MSGS > crates/ulog-format/src/px4/fields.txt

PX4_MSGS is a clone of https://github.com/PX4/px4_msgs, the message definitions of the releases of
PX4-Autopilot (BSD-3-Clause, Copyright (c) PX4 Development Team). Only facts are used: the unit that
the comment of a field states, and the constants of the message that are the values of a field.
`CURATED` has units from the release notes and the code of PX4.
"""

import collections
import re
import subprocess
import sys

RELEASES = [
    ("1.9", "fa23ccb"),
    ("1.10", "66dabd9"),
    ("1.11", "586aade"),
    ("1.12", "7ff28b1"),
    ("1.13", "v1.13.0"),
    ("1.14", "v1.14.0"),
    ("1.15", "v1.15.4"),
    ("1.16", "v1.16.2"),
    ("1.17", "release/1.17"),
    ("1.18", "release/1.18"),
]

# Unit in comments, in lower case -> unit as it is shown.
UNITS = {
    "m": "m metre metres meter meters",
    "m/s": "m/s meters/sec metres/sec meter/s metres/s meters/s m/sec meters/second",
    "m/s^2": "m/s^2 m/s/s m/s2 metres/sec^2 meters/sec^2 m/s^-2 metres/s^2 m/s²",
    "m^2": "m^2",
    "m^2/s^2": "(m/s)^2 m^2/s^2",
    "rad": "rad radian radians",
    "rad/s": "rad/s radians/sec radian/s rad/sec radians/s",
    "rad/s^2": "rad/s^2 rad/s/s",
    "rad^2": "rad^2",
    "deg": "deg degree degrees",
    "deg/s": "deg/s",
    "us": "us microseconds microsecond",
    "ms": "ms milliseconds millisecond",
    "s": "s sec seconds second",
    "V": "v volt volts",
    "A": "a amp ampere amperes amps",
    "mA": "ma",
    "W": "w watt watts",
    "mAh": "mah",
    "Wh": "wh",
    "Ohm": "ohm",
    "degC": "degc °c celsius celcius",
    "K": "k kelvin",
    "Pa": "pa pascal pascals",
    "kPa": "kpa",
    "hPa": "hpa",
    "mbar": "millibar mbar",
    "G": "gauss ga",
    "kg/m^3": "kg/m^3",
    "%": "% percent",
    "rpm": "rpm",
    "Hz": "hz",
    "MHz": "mhz",
    "dBm": "dbm",
    "dB": "db",
    "min": "minutes",
    "N": "n newton newtons",
    "cm^3": "cm^3",
    "cm^3/min": "cm^3/min",
    "KiB/s": "kib/s",
    "MB": "mb",
}
SPELT = {word: unit for unit, words in UNITS.items() for word in words.split()}

# Units that no comment states: (pattern of topics, pattern of fields) -> unit.
CURATED = [
    ("vehicle_angular_velocity.*", "xyz", "rad/s"),
    ("vehicle_angular_velocity.*", "xyz_derivative", "rad/s^2"),
    ("vehicle_acceleration", "xyz", "m/s^2"),
    ("sensor_combined", "magnetometer_ga", "G"),
    ("sensor_combined", "baro_alt_meter", "m"),
    ("sensor_combined", "baro_temp_celcius", "degC"),
    ("sensor_(accel|gyro|mag|baro)", "temperature", "degC"),
    ("vehicle_global_position.*", "eph|epv", "m"),
    ("(vehicle_gps_position|sensor_gps)", "eph|epv", "m"),
    ("(vehicle_gps_position|sensor_gps)", "vel_(n|e|d)_m_s|vel_m_s", "m/s"),
    ("battery_status", "voltage.*|ocv_estimate.*|max_cell_voltage_delta", "V"),
    ("battery_status", "current.*", "A"),
    ("battery_status", "discharged_mah|capacity", "mAh"),
    ("battery_status", "internal_resistance_estimate", "Ohm"),
    ("battery_status", "temperature", "degC"),
    ("system_power", "voltage5v_v", "V"),
    ("distance_sensor", "(current|min|max)_distance", "m"),
    ("vehicle_local_position.*", "x|y|z|eph|epv|dist_bottom|hagl_min|hagl_max|ref_alt", "m"),
    ("vehicle_local_position.*", "vx|vy|vz|z_deriv|evh|evv|dist_bottom_rate|vxy_max|vz_max", "m/s"),
    ("vehicle_local_position.*", "ax|ay|az", "m/s^2"),
    ("vehicle_local_position.*", "acceleration", "m/s^2"),
    ("vehicle_local_position.*", "heading|yaw", "rad"),
    ("vehicle_local_position.*", "yawspeed", "rad/s"),
    ("vehicle_attitude", "rollspeed|pitchspeed|yawspeed", "rad/s"),
    (".*", "timestamp.*", "us"),
    # Units by the end of the field name.
    (".*", ".*_(rad_s|rads)", "rad/s"),
    (".*", ".*_m_s2", "m/s^2"),
    (".*", ".*_m_s", "m/s"),
    (".*", ".*_rad", "rad"),
    (".*", ".*_pa", "Pa"),
    (".*", ".*_(celcius|celsius)", "degC"),
]

# Comments whose unit is not that of the field.
WRONG = {("vehicle_command_ack", "result_param1")}

# Fields of releases before the first one in PX4_MSGS.
OLDER = {
    "sensor_combined": {"magnetometer_ga": "G", "baro_alt_meter": "m", "baro_temp_celcius": "degC"},
    "vehicle_attitude": {"rollspeed": "rad/s", "pitchspeed": "rad/s", "yawspeed": "rad/s"},
    "vehicle_local_position_setpoint": {"yaw": "rad", "yawspeed": "rad/s"},
    "vehicle_attitude_setpoint": {"roll_body": "rad", "pitch_body": "rad", "yaw_body": "rad"},
    "vehicle_gps_position": {"eph": "m", "epv": "m"},
    "system_power": {"voltage5v_v": "V"},
    "airspeed": {"indicated_airspeed_m_s": "m/s", "true_airspeed_m_s": "m/s", "air_temperature_celsius": "degC"},
    "battery_status": {"capacity": "mAh"},
}

# Constants that mark the end of an enumeration.
ENDS = re.compile(r"(^|_)(MAX|COUNT|NUM|ENUM_END)$|^NUM_")
UPPER = "NED ENU FRD RTL GPS GNSS VTOL RC EV IMU ESC ESCS EKF RTK UAVCAN CAN USB UART PWM LED MAVLINK ADSB DGPS 2D 3D I2C ADC"
UPPER = set(UPPER.split())
FLAGS = re.compile(r"flag|mask|bits|bitfield|faults|fields|counter|timestamp|instance|version", re.I)


def git(folder, *args):
    return subprocess.run(["git", "-C", folder, *args], capture_output=True, check=True, text=True).stdout


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def messages(folder, revision):
    """Returns topic -> lines of its definition."""
    found = {}
    for path in git(folder, "ls-tree", "--name-only", revision, "msg/").splitlines():
        if path.endswith(".msg"):
            text = git(folder, "show", f"{revision}:{path}")
            topics = [topic for line in re.findall(r"^# TOPICS (.*)$", text, re.M) for topic in line.split()]
            for topic in topics or [snake(path[4:-4])]:
                found[topic] = text
            found.setdefault(snake(path[4:-4]), text)
    return found


def unit_of(comment):
    for word in re.findall(r"\[([^\]@]+)\]", comment):
        if word.strip().lower() in SPELT:
            return SPELT[word.strip().lower()]
    # A scaled integer does not have the unit of the comment.
    if re.search(r"\b1?e-?\d|\*|\b10\^|/ ?100|centi|milli[dm]|scaled|normali[sz]ed", comment, re.I):
        return None
    if re.search(r"cel[sc]ius", comment, re.I):
        return "degC"
    words = re.findall(r"\(([^()]+)\)", comment) + re.findall(r"\bin (?:units of )?([^ ,.;()]+)", comment)
    words = [word.strip().lower() for word in words]
    units = {SPELT[word] for word in words if word in SPELT and not (len(word) == 1 and word in "asnkvw")}
    return units.pop() if len(units) == 1 else None


def spelt(name):
    words = [word if word in UPPER else word.lower() for word in name.split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def enumeration(names, prefix):
    """Returns value -> name for the constants that start with `prefix`."""
    found = {}
    for name, value in names.items():
        rest = name[len(prefix) :]
        if name.startswith(prefix) and rest and not ENDS.search(rest) and not rest.startswith("UNUSED"):
            if not re.match(r"FREE\d*$", rest):
                found.setdefault(value, spelt(rest))
    is_flags = len(found) > 3 and all(value & (value - 1) == 0 for value in found)
    return found if len(found) > 1 and not is_flags else {}


def fields(text):
    """Returns field -> (unit, {value: name})."""
    found, constants, order = {}, {}, []
    for line in text.splitlines():
        code, _, comment = line.partition("#")
        constant = re.match(r"(u?int\d+|char|byte)\s+([A-Z][A-Z0-9_]*)\s*=\s*(-?\d+|0x[0-9a-fA-F]+)\s*$", code.strip())
        field = re.match(r"([A-Za-z0-9_/]+)(\[\d*\])?\s+([a-z][A-Za-z0-9_]*)\s*$", code.strip())
        if constant:
            constants[constant[2]] = int(constant[3], 0)
            order.append(("constant", constant[2]))
        elif field:
            found[field[3]] = (field[1], comment)
            order.append(("field", field[3]))
    result = {}
    for name, (kind, comment) in found.items():
        unit = None if kind == "bool" or name.endswith("_integral") else unit_of(comment)
        names = {}
        is_whole = re.fullmatch(r"u?int(8|16|32)", kind) and not FLAGS.search(name)
        if is_whole and not re.search(r"bit ?mask|bit ?field|bits", comment, re.I):
            said = re.search(r"@enum ([A-Z0-9_ ]+)", comment) or re.search(r"\b([A-Z][A-Z0-9_]*_)(?:\*|XX)", comment)
            prefixes = [word.rstrip("_") + "_" for word in said[1].split()] if said else []
            prefixes.append(name.upper() + "_")
            # Constants right after the field that have a common prefix.
            place = order.index(("field", name))
            after = []
            for what, constant in order[place + 1 :]:
                if what != "constant":
                    break
                after.append(constant)
            common = re.match(r"(.*_)", commonprefix(after)) if len(after) > 1 else None
            last = name.split("_")[-1].upper()
            if common and last in common[1].split("_"):
                prefixes.append(common[1])
            for prefix in prefixes:
                names = enumeration(constants, prefix)
                if names:
                    break
        result[name] = (None if names else unit, names)
    return result


def commonprefix(names):
    if not names:
        return ""
    least, most = min(names), max(names)
    for i, char in enumerate(least):
        if i >= len(most) or char != most[i]:
            return least[:i]
    return least


def curated(topic, field):
    for topics, names, unit in CURATED:
        if re.fullmatch(topics, topic) and re.fullmatch(names, field):
            return unit
    return None


def main():
    folder = sys.argv[1]
    units = collections.defaultdict(dict)
    names = collections.defaultdict(list)
    for release, revision in RELEASES:
        for topic, text in messages(folder, revision).items():
            for field, (unit, values) in fields(text).items():
                # The unit of the latest release that states one.
                unit = (unit or curated(topic, field)) if (topic, field) not in WRONG else None
                if unit and field != "timestamp":
                    units[topic][field] = unit
                if values:
                    groups = names[topic, field]
                    # Names of values, if no two releases contradict each other.
                    same = groups and all(values.get(v, n) == n for v, n in groups[-1][1].items())
                    if same:
                        groups[-1] = (release, {**groups[-1][1], **values})
                    else:
                        groups.append((release, values))
    for topic, older in OLDER.items():
        units[topic] = {**older, **units[topic]}
    bodies = collections.defaultdict(list)
    for topic in sorted(set(units) | {topic for topic, _ in names}):
        lines = []
        for field in sorted(set(units[topic]) | {field for other, field in names if other == topic}):
            groups = names.get((topic, field), [])
            if not groups:
                lines.append(f"{field}\t{units[topic][field].replace('^', '')}")
            for number, (release, values) in enumerate(groups):
                until = "" if number == len(groups) - 1 else release
                text = "|".join(f"{value} {name}" for value, name in sorted(values.items()))
                lines.append(f"{field}\t\t{until}\t{text}")
        bodies["\n".join(lines)].append(topic)
    first, last = RELEASES[0][0], RELEASES[-1][0]
    print(f"# Units of PX4's fields, and names of their values: facts of the message definitions of PX4")
    print(f"# {first} to {last}, https://github.com/PX4/px4_msgs, BSD-3-Clause, PX4 Development Team.")
    print("# Written by oracle/px4_fields.py. Topics; then field, unit, last release of the names")
    print("# (major.minor, empty: up to now), names by value.")
    for body, topics in sorted(bodies.items(), key=lambda item: item[1]):
        print(f"= {' '.join(topics)}\n{body}")


main()
