"""Compares the point clouds and maps that `rovelog extract` writes for ROS bags with the messages.

usage: extract_clouds.py ROVELOG REAL

rosbags reads the messages, and numpy decodes them as the message definitions say. The files are read with numpy,
plyfile, pypcd4, open3d and laspy. The bags are the real ones and one of odd layouts, which this script writes. Maps are
read as the image loader of map_server does.
"""

import csv
import math
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import laspy
import numpy as np
import open3d
import yaml
from plyfile import PlyData
from pypcd4 import PointCloud
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
POINT_CLOUD = "sensor_msgs/msg/PointCloud2"
MESSAGES = {
    "velodyne_msgs/VelodynePacket": "time stamp\nuint8[1206] data",
    "velodyne_msgs/VelodyneScan": "std_msgs/Header header\nvelodyne_msgs/VelodynePacket[] packets",
    "livox_ros_driver/CustomPoint": "uint32 offset_time\nfloat32 x\nfloat32 y\nfloat32 z\nuint8 reflectivity\nuint8 tag\nuint8 line",
    "livox_ros_driver/CustomMsg": "std_msgs/Header header\nuint64 timebase\nuint32 point_num\nuint8 lidar_id\nuint8[3] rsvd\n"
    "livox_ros_driver/CustomPoint[] points",
}
STORE = get_typestore(Stores.ROS1_NOETIC)
for name, text in MESSAGES.items():
    STORE.register(get_types_from_msg(text, name.replace("/", "/msg/")))
MAKE = STORE.types


def expected(message):
    """Returns the fields of a message's points, decoded with numpy by the message definition."""
    kind = message.__msgtype__
    if kind == POINT_CLOUD:
        return point_cloud(message)
    if kind.endswith("LaserScan"):
        return scan(message, kind.endswith("MultiEchoLaserScan"))
    if kind == "livox_ros_driver/msg/CustomMsg":
        names = ["x", "y", "z", "reflectivity", "tag", "line", "offset_time"]
        types = ["<f4"] * 3 + ["u1"] * 3 + ["<u4"]
        return {name: np.array([getattr(p, name) for p in message.points], ty) for name, ty in zip(names, types)}
    return None


def point_cloud(message):
    order = ">" if message.is_bigendian else "<"
    shape = (message.height, message.width)
    strides = (message.row_step, message.point_step)
    data = np.ascontiguousarray(message.data).tobytes()
    fields = {}
    for number, field in enumerate(message.fields):
        kind, count = np.dtype(order + TYPES[field.datatype]), max(field.count, 1)
        at = (*shape, count), (*strides, kind.itemsize)
        if 0 in shape:
            values = np.zeros(at[0], kind)
        else:
            values = np.ndarray(at[0], kind, data, field.offset, at[1])
        if count == 1:
            values = values[:, :, 0]
        fields[field.name or f"f{number}"] = values[0] if message.height == 1 else values
    return fields


def scan(message, is_multi):
    rows = []
    for i, beam in enumerate(message.ranges):
        for echo, distance in enumerate(beam.echoes if is_multi else [beam]):
            if message.range_min <= distance <= message.range_max:
                angle = float(message.angle_min) + float(message.angle_increment) * i
                row = {"x": float(distance) * math.cos(angle), "y": float(distance) * math.sin(angle), "z": 0.0}
                row |= {"range": distance, "t": float(message.time_increment) * i, "index": i}
                if is_multi:
                    row["echo"] = echo
                if len(message.intensities):
                    row["intensity"] = message.intensities[i].echoes[echo] if is_multi else message.intensities[i]
                rows.append(row)
    names = ["x", "y", "z", "range", "t", "index", *["echo"] * is_multi, *["intensity"] * (len(message.intensities) > 0)]
    kinds = {"index": "<u4", "echo": "<u4"}
    return {name: np.array([row[name] for row in rows], kinds.get(name, "<f4")) for name in names}


def same(got, want, what):
    """Checks that two arrays have the same values, including the bits of NaN."""
    want = np.asarray(want)
    plain = np.ascontiguousarray(want, want.dtype.newbyteorder("<"))
    got = np.ascontiguousarray(got)
    assert got.shape == plain.shape, f"{what}: shape {got.shape}, not {plain.shape}"
    assert got.dtype == plain.dtype, f"{what}: type {got.dtype}, not {plain.dtype}"
    assert got.tobytes() == plain.tobytes(), f"{what}: other values"
    return got.size


def flat(fields):
    """Returns a column for each value of a point."""
    columns = {}
    for name, values in fields.items():
        if name in MULTIPLE:
            values = values.reshape(-1, MULTIPLE[name])
            columns |= {f"{name}_{i}": values[:, i] for i in range(MULTIPLE[name])}
        else:
            columns[name] = values.reshape(-1)
    return columns


# Fields of the written bag that have several values.
MULTIPLE = {"normal": 3}


def compare(files, want, what):
    """Compares the files of one cloud, by their format. Returns the number of values."""
    columns, checked = flat(want), 0
    arrays = np.load(files["npz"])
    assert sorted(arrays.files) == sorted(want), f"{what}: fields {arrays.files}, not {list(want)}"
    checked += sum(same(arrays[name], values, f"{what} npz {name}") for name, values in want.items())
    vertex = PlyData.read(files["ply"])["vertex"]
    assert [p.name for p in vertex.properties] == list(columns), f"{what}: {vertex.properties}"
    checked += sum(same(vertex[name], values, f"{what} ply {name}") for name, values in columns.items())
    cloud = PointCloud.from_path(files["pcd"])
    shape = next(iter(want.values())).shape
    assert (cloud.metadata.height, cloud.metadata.width) == (shape[:2] if len(shape) > 1 else (1, shape[0])), what
    if cloud.points:
        read = [cloud.pc_data[name] for name in cloud.pc_data.dtype.names]
        checked += sum(same(got, values, f"{what} pcd") for got, values in zip(read, columns.values(), strict=True))
    if not {"x", "y", "z"} <= set(columns):
        return checked
    place = np.column_stack([columns[axis].astype("f8") for axis in "xyz"])
    strength = columns.get("intensity", columns.get("reflectivity", np.zeros(len(place))))
    kitti = np.fromfile(files["kitti"], "<f4").reshape(-1, 4)
    with np.errstate(over="ignore"):
        want_kitti = np.column_stack([place, strength]).astype("<f4")
    assert np.array_equal(kitti, want_kitti, equal_nan=True), f"{what} kitti"
    finite = np.isfinite(place).all(axis=1)
    for kind in ("las", "laz"):
        las = laspy.read(files[kind])
        got = np.column_stack([las.x, las.y, las.z])
        assert len(got) == finite.sum() and np.abs(got - place[finite]).max(initial=0) <= 0.5001e-4, f"{what} {kind}"
        for name in las.point_format.extra_dimension_names:
            same(las[name], columns[name.removesuffix("_")][finite], f"{what} {kind} {name}")
        extra = {name.removesuffix("_") for name in las.point_format.extra_dimension_names}
        times = [n for n in columns if n in ("t", "time", "timestamp") and columns[n].dtype.kind == "f"][:1]
        for name in times:
            assert np.array_equal(las.gps_time, columns[name][finite].astype("f8")), f"{what} {kind} {name}"
        # An intensity that is not an extra field is exact in the standard field.
        whole = [n for n in ("intensity", "reflectivity") if n in columns][:1]
        for name in set(whole) - extra:
            assert np.array_equal(las.intensity, columns[name][finite]), f"{what} {kind} {name}"
        missing = set(columns) - {"x", "y", "z"} - extra - set(times) - set(whole)
        assert not missing, f"{what} {kind}: {missing} are missing"
    opened = open3d.io.read_point_cloud(str(files["ply"]))
    if finite.any() and columns["x"].dtype == np.dtype("<f4"):
        drawn = np.asarray(opened.points)
        assert len(drawn) == len(place) and np.array_equal(drawn[finite], place[finite]), f"{what} open3d"
    return checked + kitti.size


def extract(binary, bag, folder, *options):
    done = subprocess.run([binary, "extract", "-q", str(bag), "-o", str(folder), *options], capture_output=True, check=False)
    assert done.returncode in (0, 1, 3), done.stderr.decode()
    if done.returncode == 1:
        return []
    with open(folder / "index.csv", newline="") as file:
        return list(csv.DictReader(file))


def check(binary, bag):
    """Compares the files of a bag. Returns the number of clouds and of values."""
    clouds = values = 0
    with tempfile.TemporaryDirectory() as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, kinds = Path(made), ["npz", "ply", "pcd", "kitti", "las", "laz"]
        files = {kind: extract(binary, bag, made / kind, "--only", "clouds", "--cloud", kind) for kind in kinds}
        by_topic = {}
        for kind, rows in files.items():
            for row in rows:
                by_topic.setdefault(row["topic"], {}).setdefault(kind, []).append(row)
        with AnyReader([bag], default_typestore=STORE) as reader:
            for connection in {c.topic: c for c in reader.connections}.values():
                of_topic = [c for c in reader.connections if c.topic == connection.topic]
                done = {kind: iter(rows) for kind, rows in by_topic.get(connection.topic, {}).items()}
                for con, time, raw in reader.messages(of_topic):
                    message = reader.deserialize(raw, con.msgtype)
                    want = expected(message)
                    if not want:
                        continue
                    rows = {kind: next(found) for kind, found in done.items()}
                    stamp = message.header.stamp
                    for row in rows.values():
                        assert int(row["t_ns"]) == time and row["frame_id"] == message.header.frame_id, row
                        assert int(row["stamp_ns"]) == stamp.sec * 10**9 + stamp.nanosec, row
                    paths = {kind: made / kind / row["file"] for kind, row in rows.items()}
                    values += compare(paths, want, f"{bag.name} {connection.topic} {time}")
                    clouds += 1
    return clouds, values


def packed(fields, points, step=None, big=False, height=1, pad=0):
    """Returns a PointCloud2 of (name, type, count) fields, whose values are arrays of points."""
    order, offset, places = ">" if big else "<", 0, []
    for name, kind, count in fields:
        size = np.dtype(TYPES[kind]).itemsize * max(count, 1)
        places.append((name, kind, count, offset))
        offset += size
    step, width = step or offset, len(points) // height
    data = np.zeros((height, width * step + pad), "u1")
    for (name, kind, count, at), values in zip(places, zip(*points) if points else []):
        raw = np.array(values, order + TYPES[kind]).reshape(height, width, -1)
        raw = raw.view("u1").reshape(height, width, -1)
        for x in range(width):
            data[:, x * step + at : x * step + at + raw.shape[2]] = raw[:, x]
    field = MAKE["sensor_msgs/msg/PointField"]
    parts = [field(name=n, offset=at, datatype=k, count=c) for n, k, c, at in places]
    return lambda header: MAKE[POINT_CLOUD](
        header=header, height=height, width=width, fields=parts, is_bigendian=big, point_step=step,
        row_step=width * step + pad, data=data.reshape(-1), is_dense=True,
    )


def odd_messages(packets):
    """Yields topic and message of every layout that readers get wrong."""
    xyz = [("x", 7, 1), ("y", 7, 1), ("z", 7, 1)]
    points = [(i * 0.5, -i * 0.25, math.sin(i)) for i in range(12)]
    nan = float("nan")
    yield "/plain", packed(xyz, points)
    yield "/ouster", packed([*xyz, ("intensity", 7, 1), ("t", 6, 1), ("reflectivity", 4, 1), ("ring", 2, 1)],
                            [(*p, 0.125 * i, i * 1000, i * 300, i) for i, p in enumerate(points)], step=48)
    yield "/padded_rows", packed([*xyz, ("rgb", 7, 1)], [(*p, i) for i, p in enumerate(points)], height=3, pad=5)
    yield "/big_endian", packed([*xyz, ("time", 8, 1), ("a", 3, 1)], [(*p, i / 3, -i) for i, p in enumerate(points)], big=True)
    yield "/float64", packed([("x", 8, 1), ("y", 8, 1), ("z", 8, 1), ("intensity", 2, 1), ("timestamp", 8, 1)],
                             [(4e5 + p[0], 5.5e6 + p[1], p[2], i, 1.7e9 + i / 7) for i, p in enumerate(points)])
    yield "/unnamed", packed([*xyz, ("", 7, 1), ("i8", 1, 1), ("i32", 5, 1)], [(*p, 1.5, -3, -70000) for p in points])
    yield "/count_0", packed([("x", 7, 0), ("y", 7, 0), ("z", 7, 0), ("intensity", 7, 0)], [(*p, 7.0) for p in points])
    yield "/count_3", packed([*xyz, ("normal", 7, 3), ("curvature", 7, 1)], [(*p, (1.0, 2.0, i), 0.5) for i, p in enumerate(points)])
    yield "/organized", packed(xyz, [(nan, nan, nan) if i % 3 == 0 else p for i, p in enumerate(points)], height=4)
    yield "/empty", packed(xyz, [])
    yield "/no_position", packed([("range", 7, 1), ("azimuth", 7, 1)], [(p[0], p[1]) for p in points])
    single = np.float32
    ranges = np.array([0.05, 1, 2.5, nan, math.inf, 30, 31, 4], "f4")
    laser = {"angle_min": single(-1.5), "angle_max": single(1.5), "angle_increment": single(0.4), "time_increment": single(1e-4),
             "scan_time": single(0.1), "range_min": single(0.1), "range_max": single(30)}
    yield "/scan", lambda header: MAKE["sensor_msgs/msg/LaserScan"](header=header, **laser, ranges=ranges, intensities=ranges * 2)
    yield "/scan_bare", lambda header: MAKE["sensor_msgs/msg/LaserScan"](header=header, **laser, ranges=ranges, intensities=ranges[:0])
    echo = MAKE["sensor_msgs/msg/LaserEcho"]
    echoes = [echo(echoes=ranges[i : i + i % 4]) for i in range(8)]
    yield "/echoes", lambda header: MAKE["sensor_msgs/msg/MultiEchoLaserScan"](header=header, **laser, ranges=echoes, intensities=echoes)
    point = MAKE["livox_ros_driver/msg/CustomPoint"]
    livox = [point(offset_time=i * 10000, x=single(p[0]), y=single(p[1]), z=single(p[2]), reflectivity=i, tag=16, line=i % 6) for i, p in enumerate(points)]
    yield "/livox", lambda header: MAKE["livox_ros_driver/msg/CustomMsg"](
        header=header, timebase=1_700_000_000_123_456_789, point_num=12, lidar_id=1, rsvd=np.zeros(3, "u1"), points=livox)
    packet, time = MAKE["velodyne_msgs/msg/VelodynePacket"], MAKE["builtin_interfaces/msg/Time"]
    sent = [packet(stamp=time(sec=5, nanosec=1_327_000 * i), data=np.frombuffer(data, "u1")) for i, data in enumerate(packets)]
    yield "/velodyne", lambda header: MAKE["velodyne_msgs/msg/VelodyneScan"](header=header, packets=sent)


def grids():
    """Returns topic -> cells of maps."""
    random = np.random.default_rng(1)
    return {"/map": random.choice([-1, 0, 100], (5, 7)), "/probabilities": random.integers(-1, 101, (6, 4))}


def write_bag(path, packets):
    make_header = MAKE["std_msgs/msg/Header"]
    time = MAKE["builtin_interfaces/msg/Time"]
    with Writer(path) as bag:
        def add(topic, message, nanos):
            connection = bag.add_connection(topic, message.__msgtype__, typestore=STORE)
            bag.write(connection, nanos, STORE.serialize_ros1(message, message.__msgtype__))
        for i, (topic, make) in enumerate(odd_messages(packets)):
            header = make_header(seq=0, stamp=time(sec=1_699_999_999, nanosec=5 + i), frame_id=f"frame {i}")
            add(topic, make(header), 1_700_000_000_000_000_000 + i)
        for topic, cells in grids().items():
            pose = MAKE["geometry_msgs/msg/Pose"](
                position=MAKE["geometry_msgs/msg/Point"](x=-1.25, y=0.1, z=0.0),
                orientation=MAKE["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=math.sin(0.3), w=math.cos(0.3)))
            info = MAKE["nav_msgs/msg/MapMetaData"](map_load_time=time(sec=0, nanosec=0), resolution=np.float32(0.05),
                                                    width=cells.shape[1], height=cells.shape[0], origin=pose)
            header = make_header(seq=0, stamp=time(sec=1, nanosec=2), frame_id="map")
            add(topic, MAKE["nav_msgs/msg/OccupancyGrid"](header=header, info=info, data=cells.astype("i1").reshape(-1)), 1_700_000_001_000_000_000)


def load_map(description):
    """Returns cells, resolution and origin of a map, as image_loader.cpp of map_server reads them."""
    facts = yaml.safe_load(description.read_text())
    image = (description.parent / facts["image"]).read_bytes()
    magic, _, size, _, pixels = image.split(b"\n", 4)
    width, height = map(int, size.split())
    assert magic == b"P5" and len(pixels) == width * height and facts["negate"] == 0
    pixels = np.frombuffer(pixels, "u1").reshape(height, width)[::-1]
    if facts["mode"] == "raw":
        return pixels.view("i1"), facts
    occupied = (255 - pixels.astype("f8")) / 255
    cells = np.where(occupied > facts["occupied_thresh"], 100, np.where(occupied < facts["free_thresh"], 0, -1))
    return cells, facts


def check_generated(binary, folder):
    """Compares the files of the bag of odd layouts. Returns the number of clouds, values and maps."""
    vel = Path(__file__).parent.parent / "corpus/vel/velodyne-vlp16.vel"
    extract(binary, vel, folder / "packets", "--only", "packets")
    capture = (folder / "packets/packets.pcap").read_bytes()[24:]
    packets = [capture[at + 58 : at + 1264] for at in range(0, len(capture), 1264)]
    bag = folder / "odd.bag"
    write_bag(bag, packets)
    clouds, values = check(binary, bag)
    # The decoder of packets is compared with velodyne-decoder by vel_velodyne.py, so here it is enough that the points
    # of a bag are those of a VEL log.
    read = lambda rows, path: [np.load(path / row["file"]) for row in rows]
    of_vel = read(extract(binary, vel, folder / "vel", "--cloud", "npz"), folder / "vel")
    of_bag = read([row for row in extract(binary, bag, folder / "bag", "--cloud", "npz") if row["topic"] == "/velodyne"], folder / "bag")
    assert len(of_bag) == 1 and len(of_bag[0]["x"]) > 100
    for name in ("x", "y", "z", "intensity", "ring"):
        values += same(of_bag[0][name], np.concatenate([cloud[name] for cloud in of_vel]), f"velodyne {name}")
    maps = 0
    for row in extract(binary, bag, folder / "maps", "--only", "maps", "--name", "index"):
        if not row["file"].endswith(".yaml"):
            continue
        cells, facts = load_map(folder / "maps" / row["file"])
        assert np.array_equal(cells, grids()[row["topic"]]), row
        assert np.float32(facts["resolution"]) == np.float32(0.05) and np.allclose(facts["origin"], [-1.25, 0.1, 0.6], atol=1e-15)
        maps += 1
    assert maps == len(grids())
    return clouds + 1, values, maps


def main():
    binary, real = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        clouds, values, maps = check_generated(binary, Path(folder))
    print(f"odd layouts: {clouds} clouds, {values} values, {maps} maps equal")
    for bag in sorted(Path(real, "rosbag20").glob("real_*.bag")):
        try:
            AnyReader([bag], default_typestore=STORE).open()
        except (AnyReaderError, AssertionError) as error:
            print(f"{bag.name}: not compared, because rosbags refuses it: {error}")
            continue
        clouds, values = check(binary, bag)
        if clouds:
            print(f"{bag.name}: {clouds} clouds, {values} values equal")


if __name__ == "__main__":
    main()
