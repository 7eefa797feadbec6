"""Reads the ROS bags and the MCAP files for ROS 2 that `rovelog export` writes from ULog and VEL logs.

usage: export_ros.py ROVELOG FOLDER..

Readers are rosbags (with the stored definitions, and with its own definitions of the standard types) and
mcap-ros2-support. The records are compared with `rovelog cat`. The messages of standard types are compared with values
that are computed from the records with rotation matrices, independently of the quaternions in the export.
"""

import base64
import collections
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import rovelog_cli
from export_bags import same, with_mcap_ros2
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

OWN = {1: get_typestore(Stores.ROS1_NOETIC), 2: get_typestore(Stores.ROS2_HUMBLE)}
# The readers have no definitions of these packages.
UNKNOWN = ("ulog_msgs", "vel_msgs", "velodyne_msgs")
# From the axes of PX4 to those of ROS: of the world, and of the vehicle.
WORLD = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
VEHICLE = np.diag([1, -1, -1])


def bag_messages(path):
    """Yields the topic, type, time and message of a bag. Standard types must have the md5 sum of the reader."""
    seen = collections.Counter()
    with AnyReader([path]) as reader:
        for connection in reader.connections:
            if not connection.msgtype.startswith(UNKNOWN):
                _, digest = OWN[1].generate_msgdef(connection.msgtype, ros_version=1)
                assert digest == connection.digest, f"{connection.msgtype}: {connection.digest} but {digest}"
        for connection, time, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            if not connection.msgtype.startswith(UNKNOWN) and seen[connection.topic] < 50:
                known = OWN[1].deserialize_ros1(raw, connection.msgtype)
                assert str(known) == str(message), f"{connection.topic}: {known} but {message}"
            seen[connection.topic] += 1
            yield connection.topic, connection.msgtype, time, message


def mcap_messages(path):
    """Yields the topic, type, time and message of an MCAP file, decoded with the definitions in the file, and with the
    reader's own definitions of standard types.
    """
    stores, seen = {}, collections.Counter()
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            assert (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr")
            if schema.id not in stores:
                stores[schema.id] = get_typestore(Stores.EMPTY)
                stores[schema.id].register(get_types_from_msg(schema.data.decode(), schema.name))
            decoded = stores[schema.id].deserialize_cdr(message.data, schema.name)
            if not schema.name.startswith(UNKNOWN) and seen[channel.topic] < 50:
                known = OWN[2].deserialize_cdr(message.data, schema.name)
                assert str(known) == str(decoded), f"{channel.topic}: {known} but {decoded}"
            seen[channel.topic] += 1
            yield channel.topic, schema.name, message.log_time, decoded


def by_topic(messages):
    topics = collections.defaultdict(list)
    for topic, kind, time, message in messages:
        topics[topic].append((kind, time, message))
    return topics


def number(value):
    return float(value) if value is not None else math.nan


def single(value):
    """Returns a number that the log stores with 32 bits. JSON has the shortest decimal number for it."""
    return float(np.float32(number(value)))


def near(got, want, what, tolerance=1e-9):
    got, want = np.asarray(got, float), np.asarray(want, float)
    good = got.shape == want.shape and np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert good, f"{what}: {got} but {want}"


def vector(value):
    return [value.x, value.y, value.z]


def matrix(w, x, y, z):
    return np.array([
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ])


def of_message(q):
    return matrix(q.w, q.x, q.y, q.z)


def finite(values):
    return all(math.isfinite(number(value)) for value in values)


def word(name):
    out = re.sub("[^A-Za-z0-9]+", "_", name.replace("/-", "/minus_")).strip("_")
    return out if out[:1].isalpha() else f"t_{out}"


class Ulog:
    """Computes the messages of standard types that the records of a ULog become."""

    def __init__(self, rows):
        self.attitude = None
        self.rates = [math.nan] * 3
        names = sorted({row["topic"] for row in rows})
        key = rovelog_cli.topic_key

        def instances(kind):
            named = [name for name in names if re.fullmatch(rf"{kind}(/\d+)?(#\d+)?", name)]
            return sorted(named, key=lambda name: key(name)[1:] if "/" in name else (0, 1))

        self.first = {kind: (instances(kind) or [None])[0] for kind in ("sensor_combined", "vehicle_attitude", "vehicle_local_position")}
        self.batteries = instances("battery_status")

    def held(self, time):
        """Returns the attitude, unless it is older than 0.1 s."""
        known = self.attitude is not None and abs(time - self.attitude[0]) <= 100_000_000
        return self.attitude[1] if known else None

    def messages(self, row):
        """Yields pairs of a topic and a function that checks its next message."""
        topic, data, time = row["topic"], row["data"], int(row["t_ns"])
        if topic == self.first["vehicle_attitude"] and "q" in data and finite(data["q"]):
            self.attitude = (time, matrix(*map(single, data["q"])))
        if topic == self.first["sensor_combined"] and "accelerometer_m_s2" in data:
            rates = data.get("gyro_rad", data.get("gyro_rad_s"))
            force = data["accelerometer_m_s2"]
            self.rates = list(map(single, rates)) if finite(rates) else [math.nan] * 3
            if finite(rates) or finite(force):
                yield "/imu/data", lambda got: self.imu(got, rates, force, time)
        if topic == self.first["vehicle_local_position"]:
            valid = all(data.get(name) is not False for name in ("xy_valid", "z_valid"))
            place = [data.get(name) for name in "xyz"]
            if valid and finite(place) and self.held(time) is not None:
                yield "/odom", lambda got: self.odometry(got, data, time)
        if topic in self.batteries:
            index = self.batteries.index(topic)
            yield "/battery" + (f"_{index}" if index else ""), lambda got: self.battery(got, data)

    def imu(self, got, rates, force, time):
        for value, covariance, own in (
            (got.angular_velocity, got.angular_velocity_covariance, rates),
            (got.linear_acceleration, got.linear_acceleration_covariance, force),
        ):
            assert (covariance[0] == 0) == finite(own)
            if finite(own):
                near(vector(value), VEHICLE @ list(map(single, own)), "imu")
        held = self.held(time)
        assert (got.orientation_covariance[0] == -1) == (held is None)
        if held is not None:
            near(of_message(got.orientation), WORLD @ held @ VEHICLE, "orientation")

    def odometry(self, got, data, time):
        held = self.held(time)
        near(of_message(got.pose.pose.orientation), WORLD @ held @ VEHICLE, "orientation")
        near(vector(got.pose.pose.position), WORLD @ [single(data[name]) for name in "xyz"], "position")
        velocity = [single(data.get(name)) for name in ("vx", "vy", "vz")]
        if not all(data.get(name) is not False for name in ("v_xy_valid", "v_z_valid")) or not finite(velocity):
            velocity = [math.nan] * 3
        near(vector(got.twist.twist.linear), VEHICLE @ held.T @ velocity, "velocity", 1e-6)
        near(vector(got.twist.twist.angular), VEHICLE @ self.rates, "rates")
        assert (got.header.frame_id, got.child_frame_id) == ("map", "base_link")

    def battery(self, got, data):
        def known(*names):
            value = next((number(data[name]) for name in names if name in data), math.nan)
            return value if value >= 0 and math.isfinite(value) else math.nan

        near(got.voltage, known("voltage_v", "voltage_filtered_v"), "voltage", 1e-6)
        near(got.current, -known("current_a", "current_filtered_a"), "current", 1e-6)
        near(got.percentage, known("remaining"), "percentage", 1e-6)
        assert math.isnan(got.charge) and math.isnan(got.design_capacity)
        assert bool(got.present) == (data.get("connected") is not False)


class Vel:
    """Computes the messages of standard types that the records of a VEL log become."""

    SCANNERS = {"Hokuyo_URG-04LX": (1024, 384, 20, {682: 44, 726: 0, 769: 0}), "Hokuyo_UTM-30LX": (1440, 540, 23, {1081: 0})}

    def __init__(self, info):
        self.choices = {choice["what"]: choice["choice"] for choice in info.get("assumptions", [])}

    def messages(self, row):
        topic, data = row["topic"], row["data"]
        kind = re.split("[/#@]", topic)[0]
        source = topic[len(kind):]
        if kind == "VelodyneRawDataM" and "packets" in data:
            yield "/velodyne_packets", lambda got: self.packets(got, data)
        elif kind == "LaserRange2DDataM" and data.get("sensor_type") in self.SCANNERS and data["ranges"]:
            yield f"/{word('laser' + source)}/scan", lambda got: self.scan(got, data)
        elif kind == "GPSDataM" and "latitude" in data:
            yield "/gps/fix", lambda got: self.fix(got, data)
        elif kind == "RobotPoseM" and "quaternion" in data:
            yield "/imu/data", lambda got: self.pose(got, data)

    def packets(self, got, data):
        assert b"".join(bytes(packet.data) for packet in got.packets) == base64.b64decode(data["packets"])

    def scan(self, got, data):
        slits, front, minimum, first = self.SCANNERS[data["sensor_type"]]
        count = len(data["ranges"])
        step = first.get(count, front - count // 2)
        angles = (step + np.arange(count) - front) * 2 * np.pi / slits
        near(got.ranges, [r / 1000 if r >= minimum else np.nan for r in data["ranges"]], "ranges", 1e-6)
        near(got.angle_min + got.angle_increment * np.arange(count), angles, "angles", 1e-4)

    def fix(self, got, data):
        if got.status.status < 0:
            assert math.isnan(got.latitude)
            assert data["quality"] == 0 or not finite([data["latitude"], data["longitude"]]) or abs(number(data["latitude"])) > 90 or abs(number(data["longitude"])) > 180 or number(data["latitude"]) == 0, data
            return
        near(got.altitude, single(data["height"]) + single(data["geoid_height"]), "altitude")
        # The unit of the angles is inferred, so only one of three units must fit.
        own = number(data["latitude"])
        minutes = math.copysign(abs(own) // 100 + abs(own) % 100 / 60, own)
        assert any(abs(got.latitude - value) < 1e-9 for value in (own, math.degrees(own), minutes)), (got.latitude, own)

    def pose(self, got, data):
        own = np.array(list(map(single, data["quaternion"])))
        if got.orientation_covariance[0] == -1:
            assert not abs(np.linalg.norm(own) - 1) <= 0.05
        else:
            near(sorted(abs(own)), sorted(abs(np.array([got.orientation.w, *vector(got.orientation)]))), "orientation")
        assert got.angular_velocity_covariance[0] == -1


def export(binary, path, out, *options):
    done = subprocess.run([binary, "export", "-q", str(path), "-o", str(out), *options], capture_output=True, check=False)
    said = done.stderr.decode()
    if done.returncode in (0, 3):
        return True
    assert done.returncode in (1, 2) and "panicked" not in said, said
    return False


def compare(binary, path, folder):
    """Compares both files of a log. Returns the numbers of messages and of compared values of standard types."""
    bag, mcap = folder / "log.bag", folder / "log.mcap"
    for out in (bag, mcap):
        out.unlink(missing_ok=True)
    written = export(binary, path, bag)
    assert written == export(binary, path, mcap, "--ros2"), "only one file can be written"
    if not written:
        return 0, 0
    rows = list(rovelog_cli.records(binary, path))
    last = 0
    for row in rows:
        # A record without a time gets the time of the previous record.
        last = row["t_ns"] = int(row["t_ns"]) if row["t_ns"] is not None else last
    with open(mcap, "rb") as file:
        facts = {record.name: record.metadata for record in make_reader(file).iter_metadata()}["rovelog"]
    shift = int(facts.get("utc_offset_ns", 0))
    count = sum(1 for _ in with_mcap_ros2(mcap))
    standard = 0
    for ros, found in ((1, by_topic(bag_messages(bag))), (2, by_topic(mcap_messages(mcap)))):
        assert ros == 1 or sum(map(len, found.values())) == count
        if path.suffix == ".vel" and ros == 1 and "/velodyne_points" in found:
            clouds(binary, path, folder, found["/velodyne_points"])
        source = Ulog(rows) if path.suffix == ".ulg" else Vel({})
        taken = {topic: iter(messages) for topic, messages in found.items()}
        prefix = "/px4/" if path.suffix == ".ulg" else "/vel/"
        raw, used = collections.Counter(), collections.Counter()
        numbered = 0
        bases = collections.Counter(re.sub("/[0-9]+(#[0-9]+)?$", "", topic) for topic in {row["topic"] for row in rows})
        alone = {topic: bases[topic[:-2]] == 1 and topic.endswith("/0") for topic in {row["topic"] for row in rows}}
        names = {topic: prefix + word(topic[:-2] if alone[topic] else topic) for topic in alone}
        # If two topics would get the same name, the export numbers them.
        shared = {name for name, uses in collections.Counter(names.values()).items() if uses > 1}
        for row in rows:
            time = int(row["t_ns"]) + shift
            in_time = 0 <= time < (2**32 if ros == 1 else 2**31) * 10**9
            name = names[row["topic"]]
            numbered += name in shared and in_time
            kind = re.split("[/#@]", row["topic"])[0]
            if kind == "ImageM" and in_time and "source" in row["data"]:
                image(row, found, name, used)
                raw[name] = used[name]
            elif name in taken and in_time and name not in shared and kind != "LaserRange2DDataM":
                got = next(taken[name], None)
                assert got is not None, f"{name}: too few messages"
                assert facts.get("utc_rule", "").endswith("jumps") or got[1] == time, f"{name}: {got[1]} but {time}"
                # Arrays without elements are left out, because ROS 2 forbids them.
                data = {key: value for key, value in row["data"].items() if value != [] or hasattr(got[2], key)}
                assert same(got[2], data, ros == 2), f"{name}: {str(got[2])[:300]} but {str(data)[:300]}"
                raw[name] += 1
            for topic, check in source.messages(row):
                if not in_time:
                    continue
                got = next(taken.get(topic, iter(())), None)
                assert got is not None, f"{topic}: too few messages"
                check(got[2])
                standard += 1
        for name, messages in found.items():
            if name in shared or re.sub("_[0-9]+$", "", name) in shared:
                numbered -= len(messages)
            elif name.startswith(prefix) and "LaserRange2DDataM" not in name:
                assert raw[name] == len(messages), f"{name}: {len(messages)} messages, {raw[name]} records"
            words = {kind for kind, _, _ in messages}
            assert len(words) == 1 and re.fullmatch("(/[A-Za-z][A-Za-z0-9_]*)+", name) and "__" not in name, name
        assert numbered == 0 or path.suffix == ".vel", f"topics that share a name: {numbered} more records than messages"
        missing = {row["topic"] for row in rows} - {row["topic"] for row in rows if raw[names[row["topic"]]]}
        missing = {topic for topic in missing if names[topic] not in shared}
        assert path.suffix != ".ulg" or not missing or not all_in_time(rows, shift, ros), f"no messages of {missing}"
        if "/rosout" in found:
            texts = rovelog_cli.run(binary, "messages", "-q", "-f", "ndjson", str(path)).splitlines()
            assert len(texts) >= len(found["/rosout"])
    return count, standard


def image(row, found, raw, used):
    """Checks that the next message of one of the topics of a camera has the bytes of the image."""
    data = base64.b64decode(row["data"]["data"])
    frame = word("camera" + row["topic"][len("ImageM"):])
    for topic in (f"/{frame}/image/compressed", f"/{frame}/image", raw):
        following = found.get(topic, [])[used[topic]:][:1]
        if following and bytes(following[0][2].data) == data:
            used[topic] += 1
            return
    raise AssertionError(f"no message has the image at {row['offset']}")


def clouds(binary, path, folder, found):
    """Compares point clouds with the files that `rovelog extract` writes."""
    out = folder / "clouds"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([binary, "extract", "-q", str(path), "-o", str(out), "--only", "clouds", "--cloud", "npz"], capture_output=True, check=False)
    files = sorted(out.rglob("*.npz"))
    assert len(files) == len(found), f"{len(found)} clouds, {len(files)} files: {done.stderr.decode()}"
    dtype = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")])
    for file, (_, _, message) in zip(files, found):
        points = np.frombuffer(bytes(message.data), dtype)
        assert [field.name for field in message.fields] == list(dtype.names) and message.width == len(points)
        with np.load(file) as own:
            for name in dtype.names:
                assert np.array_equal(points[name], own["t" if name == "time" else name]), f"{file.name}: {name}"


def all_in_time(rows, shift, ros):
    return all(0 <= int(row["t_ns"]) + shift < (2**32 if ros == 1 else 2**31) * 10**9 for row in rows)


def main():
    binary, *folders = sys.argv[1:]
    wrong, logs, messages, standard = [], 0, 0, 0
    paths = [path for folder in folders for end in ("ulg", "vel") for path in sorted(pathlib.Path(folder).rglob(f"*.{end}"))]
    with tempfile.TemporaryDirectory() as temporary:
        for path in paths:
            try:
                count, of_standard = compare(binary, path, pathlib.Path(temporary))
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(f"{path.name}: {type(error).__name__}: {error}"[:600])
                continue
            logs += count > 0
            messages += count
            standard += of_standard
    print(f"{logs} logs with messages, {messages} messages, {standard} messages of standard types compared")
    if wrong:
        print("\n".join(wrong))
    sys.exit(bool(wrong))


main()
