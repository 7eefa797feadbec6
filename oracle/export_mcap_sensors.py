"""Compares MCAP files of VEL and RLD logs, read with mcap and mcap-protobuf-support, with `rovelog cat`.

usage: export_mcap_sensors.py ROVELOG REAL

Every value is compared with that of its record, and Foxglove's types with the schemas that Foxglove publishes. Point
clouds in files are read with numpy and laspy.
"""

import base64
import importlib
import math
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import laspy
import numpy as np
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
from rovelog_cli import document, records

# Steps per turn, the step ahead, the minimum range; the first step of a scan with this number of ranges.
SCANNERS = {
    "Hokuyo_URG-04LX": (1024, 384, 20, {682: 44, 726: 0, 769: 0}),
    "Hokuyo_UTM-30LX": (1440, 540, 23, {1081: 0}),
}
# First bytes of image files, and their formats.
FILES = {b"\xff\xd8\xff": "jpeg", b"\x89PNG": "png", b"BM": "bmp", b"RIFF": "webp", b"II*\0": "tiff", b"MM\0*": "tiff"}
FIELDS = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("t", "<f4")])


def read(path):
    """Returns topic -> (schema, times, messages), and the metadata records. Messages without a schema are bytes."""
    factory = DecoderFactory()
    topics = {}
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            if channel.topic not in topics:
                topics[channel.topic] = (schema.name if schema else None, [], [])
            topic = topics[channel.topic]
            decoder = factory.decoder_for(channel.message_encoding, schema) if schema else bytes
            topic[1].append(message.log_time)
            topic[2].append(decoder(message.data))
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
    for name, (schema, _, messages) in topics.items():
        if schema and schema.startswith("foxglove.") and messages:
            published(messages[0].DESCRIPTOR, name)
    return topics, metadata


def published(ours, topic):
    """Checks that every field of a type is one of Foxglove's, with the same number and type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(f"foxglove_schemas_protobuf.{ours.full_name.split('.')[1]}_pb2")
    compare_types(ours, getattr(module, ours.name).DESCRIPTOR, topic)


def compare_types(ours, theirs, topic):
    assert ours.full_name == theirs.full_name, f"{topic}: {ours.full_name}"
    for field in ours.fields:
        wanted = theirs.fields_by_name[field.name]
        same = all(getattr(field, what) == getattr(wanted, what) for what in ("number", "type", "has_presence"))
        assert same and field.is_repeated == wanted.is_repeated, f"{topic}: {field.full_name}"
        if field.enum_type:
            got = {value.name: value.number for value in field.enum_type.values}
            assert got == {value.name: value.number for value in wanted.enum_type.values}, field.full_name
        if field.message_type and field.message_type.full_name.startswith("foxglove."):
            compare_types(field.message_type, wanted.message_type, topic)


def export(binary, log, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log.mcap"
        command = [binary, "export", "-q", str(log), "-o", path, *options]
        done = subprocess.run(command, capture_output=True, check=False, timeout=600)
        if done.returncode == 2 and b"have no records" in done.stderr:
            return None
        assert done.returncode in (0, 3), done.stderr.decode()
        return (*read(path), done.stderr.decode())


def same(got, want, what):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape and np.array_equal(got, want, equal_nan=True), f"{what}: {got} but {want}"


def nanos(message):
    return message.timestamp.seconds * 1_000_000_000 + message.timestamp.nanos


def degrees(value, unit):
    if unit == "ddmm.mmmm":
        whole = abs(value) // 100
        return math.copysign(whole + (abs(value) - 100 * whole) / 60, value)
    return math.degrees(value) if unit == "radians" else value


def compare_vel(binary, log):
    made = export(binary, log)
    if made is None:
        return 0
    topics, metadata, said = made
    raw, _, _ = export(binary, log, "--raw")
    rows = list(records(binary, log))
    take = {name: iter(zip(times, messages)) for name, (_, times, messages) in topics.items()}
    take_raw = {name: iter(messages) for name, (_, _, messages) in raw.items()}
    shift = int(metadata["rovelog"].get("utc_offset_ns", 0))
    values = 0

    def channel(topic, *bases):
        """Returns the channels of a scanner or camera, which have its name."""
        source = topic[len(re.split("[/#]", topic)[0]):]
        return [base + source for base in bases]

    def following(name, time, what):
        got = next(take[name], None)
        assert got is not None, f"{name} lacks {what}"
        assert got[0] == time and nanos(got[1]) == time, f"{name}: {got[0]} but {time}"
        return got[1]

    for row in rows:
        topic, data, time = row["topic"], row["data"], int(row["t_ns"]) + shift
        kind = topic.split("/")[0].split("#")[0]
        if kind == "LaserRange2DDataM" and data["sensor_type"] in SCANNERS:
            slits, front, minimum, first = SCANNERS[data["sensor_type"]]
            count = len(data["ranges"])
            step = first.get(count, front - count // 2)
            scan_topic, cloud_topic = channel(topic, "/laser/scan", "/laser/points")
            scan, cloud = following(scan_topic, time, topic), following(cloud_topic, time, topic)
            want = np.array([r / 1000 if r >= minimum else np.nan for r in data["ranges"]])
            same(scan.ranges, want, topic)
            angles = (step + np.arange(count) - front) * 2 * np.pi / slits
            if count:
                assert abs(scan.start_angle - angles[0]) < 1e-12 and abs(scan.end_angle - angles[-1]) < 1e-12
            points = np.frombuffer(cloud.data, "<f4").reshape(-1, 3)
            known = ~np.isnan(want)
            xy = np.column_stack([want * np.cos(angles), want * np.sin(angles), 0 * angles])[known]
            assert points.shape == xy.shape and np.allclose(points, xy, rtol=1e-6, atol=1e-6), topic
            values += 3 * count
        elif kind == "ImageM":
            image, plain = channel(topic, "/camera/image", "/camera/image_raw")
            payload = base64.b64decode(data["data"])
            format = next((name for start, name in FILES.items() if payload.startswith(start)), None)
            if format:
                got = following(image, time, topic)
                assert got.data == payload and got.format == format
            elif f"{topic}:" not in said:
                got = following(plain, time, topic)
                assert got.data == payload and (got.width, got.height) == (data["width"], data["height"])
                assert got.step * got.height == len(payload)
            values += len(payload)
        elif kind == "GPSDataM":
            unit = metadata["info"]["position_unit"]
            at = degrees(data["latitude"], unit), degrees(data["longitude"], unit)
            valid = all(map(math.isfinite, at)) and abs(at[0]) <= 90 and abs(at[1]) <= 180 and at != (0, 0)
            if data["quality"] != 0 and valid:
                fix = following("/gps", time, topic)
                assert abs(fix.latitude - at[0]) < 1e-12 and abs(fix.longitude - at[1]) < 1e-12, fix
                assert fix.altitude == np.float32(data["height"])
                assert fix.HasField("heading") == (data["speed"] >= 1)
                if fix.HasField("heading"):
                    assert abs(fix.heading - math.radians(data["course"])) < 1e-7
                assert {item.key: item.value for item in fix.metadata}["satellites"] == str(data["satellites"])
                values += 5
        elif kind == "RobotPoseM":
            q = data["quaternion"]
            if abs(math.sqrt(sum(part * part for part in q)) - 1) <= 0.05:
                turned = following("/imu", time, topic).pose.orientation
                order, direction = metadata["info"]["quaternion"].split(" ")
                if order == "xyzw":
                    q = [q[3], *q[:3]]
                if direction == "world_to_body":
                    q = [q[0], *(-part for part in q[1:])]
                same([turned.w, turned.x, turned.y, turned.z], np.float32(q), topic)
                values += 4
        values += compare_own(take_raw, topic, kind, data)
    drawn = ("/laser", "/camera", "/gps", "/imu")
    left = [name for name, rest in take.items() if name.startswith(drawn) and next(rest, None) is not None]
    assert not left, f"more messages than records: {left}"
    return values + compare_clouds(binary, log, topics)


def compare_own(take, topic, kind, data):
    """Checks that with --raw, each record is a message of its own type."""
    if topic.startswith("0x") or "@" in topic:
        assert next(take[f"/vel/{topic}"]) == base64.b64decode(data["data"]), topic
        return 1
    message = next(take["/obd" if kind == "OBDDataM" else topic])
    for name, want in data.items():
        got = getattr(message, name)
        if isinstance(got, bytes):
            assert got == base64.b64decode(want), f"{topic}.{name}"
        elif isinstance(want, list):
            same(np.float32(got), np.float32(want), f"{topic}.{name}")
        elif isinstance(want, float) and name not in ("latitude", "longitude"):
            same(np.float32(got), np.float32(want), f"{topic}.{name}")
        else:
            assert got == want, f"{topic}.{name}: {got} but {want}"
    return len(data)


def compare_clouds(binary, log, topics):
    """Compares revolutions with those that `extract` writes as numpy arrays."""
    if "/velodyne/points" not in topics:
        return 0
    _, times, clouds = topics["/velodyne/points"]
    arrays = extracted(binary, log, "npz", lambda path: dict(np.load(path)))
    for kind in ("las", "laz"):
        for cloud, want in zip(extracted(binary, log, kind, laspy.read), arrays, strict=True):
            place = np.column_stack([cloud.x, cloud.y, cloud.z])
            assert np.abs(place - np.column_stack([want["x"], want["y"], want["z"]])).max(initial=0) <= 0.5001e-4
            assert np.array_equal(cloud.intensity, np.round(want["intensity"])), kind
            assert np.array_equal(cloud["ring"], want["ring"]) and np.array_equal(cloud.gps_time, want["t"]), kind
    for points, want in zip(extracted(binary, log, "kitti", lambda path: np.fromfile(path, "<f4")), arrays, strict=True):
        fields = np.column_stack([want[name] for name in ("x", "y", "z", "intensity")])
        assert np.array_equal(points.reshape(-1, 4), fields), "kitti"
    assert len(arrays) == len(clouds), f"{len(clouds)} clouds, not {len(arrays)}"
    points = 0
    for cloud, arrays_of in zip(clouds, arrays):
        assert cloud.point_stride == FIELDS.itemsize and nanos(cloud) in times
        offsets = {field.name: field.offset for field in cloud.fields}
        assert offsets == {name: FIELDS.fields[name][1] for name in FIELDS.names}
        got = np.frombuffer(cloud.data, FIELDS)
        for name in FIELDS.names:
            assert np.array_equal(got[name], arrays_of[name]), name
        points += len(got)
    return points * len(FIELDS.names)


def extracted(binary, log, kind, load):
    """Returns the point clouds of a log in time order, extracted as files of one format."""
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "extract", "-q", str(log), "-o", folder, "--only", "clouds", "--cloud", kind]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode in (0, 3), done.stderr.decode()
        files = sorted(Path(folder, "clouds").iterdir(), key=lambda path: int(path.stem))
        return [load(path) for path in files]


def compare_rld(binary, log):
    values = 0
    for options in ([], ["--full"]):
        made = export(binary, log, *options)
        if made is None:
            return 0
        topics, metadata, _ = made
        types = document(binary, "schema", log)["types"]
        units = {field["name"]: field["unit"] for kind in types for field in kind["fields"]}
        rows = {}
        for record in records(binary, log):
            rows.setdefault(record["topic"], []).append(record)
        for topic, records_of in rows.items():
            _, times, messages = topics[f"/rld/{topic}"]
            values += compare_samples(messages, times, records_of, units)
        if "/rld/digital" in topics and len(topics["/rld/digital"][2]) == len(rows["samples"]):
            inputs = [field.name for field in topics["/rld/digital"][2][0].DESCRIPTOR.fields]
            for message, record in zip(topics["/rld/digital"][2], rows["samples"]):
                data = {name.lower(): value for name, value in record["data"].items()}
                assert all(getattr(message, name) == data[name] for name in inputs)
                values += len(inputs)
        comment = metadata["info"].get("comment")
        if comment:
            assert any(event.message == comment for event in topics["/rld/events"][2])
    return values


def compare_samples(messages, times, rows, units):
    """Compares messages of one or several rows with rows."""
    fields = [field.name for field in messages[0].DESCRIPTOR.fields]
    columns = {name: [row["data"][name] for row in rows] for name in rows[0]["data"]}
    counts = [message.rows if "rows" in fields else 1 for message in messages]
    assert sum(counts) == len(rows), f"{sum(counts)} rows, not {len(rows)}"
    ends = np.cumsum(counts)
    starts = ends - counts
    assert times == [int(rows[start]["t_ns"]) for start in starts]
    checked = 0
    for name, column in columns.items():
        if isinstance(next((value for value in column if value is not None), None), bool):
            field = name.lower()
            if field in fields:
                got = [int(getattr(message, field)) for message in messages]
                assert got == np.add.reduceat(np.array(column, int), starts).tolist(), name
                checked += len(got)
            continue
        # The field of a channel is its name and its unit. The flag and longer names start the same way.
        stems = {field.removesuffix("_min").removesuffix("_mean").removesuffix("_max") for field in fields}
        unit = {"%": "percent"}.get(units[name], units[name])
        stem = f"{name.lower()}_{unit}" if unit else name.lower()
        assert stem in stems, f"{name}: no field {stem}"
        values = np.array([np.nan if value is None else value for value in column], float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            groups = [values[start:end] for start, end in zip(starts, ends)]
            if "rows" not in fields:
                same([getattr(message, stem) for message in messages], values, name)
            else:
                for end, of in (("min", np.nanmin), ("max", np.nanmax)):
                    same([getattr(message, f"{stem}_{end}") for message in messages], [of(group) for group in groups], name)
                got = [getattr(message, f"{stem}_mean") for message in messages]
                assert np.allclose(got, [np.nanmean(group) for group in groups], rtol=1e-12, equal_nan=True), name
        checked += len(messages)
    return checked


def main():
    binary, real = sys.argv[1], Path(sys.argv[2])
    failures, compared = 0, 0
    for format_, compare in (("vel", compare_vel), ("rld", compare_rld)):
        for log in sorted((real / format_).glob(f"*.{format_}")):
            code = subprocess.run([binary, "info", "-q", str(log)], capture_output=True, check=False).returncode
            if code == 1:
                print(f"{log.name}: refused")
                continue
            assert code in (0, 3), f"{log.name}: info ends with {code}"
            try:
                print(f"{log.name}: {compare(binary, log)} values in MCAP")
                compared += 1
            except AssertionError as error:
                print(f"{log.name}: {error}")
                failures += 1
    sys.exit(1 if failures or not compared else 0)


main()
