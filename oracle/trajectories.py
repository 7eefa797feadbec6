"""Compares the trajectories of `rovelog track` with evo and numpy.

usage: trajectories.py ROVELOG CORPUS [REAL]

- Bags with generated poses and transforms, which rosbags writes, and all bags in the folders: evo reads the TUM, KITTI and
  EuRoC files, and their poses equal those that evo reads from the bag. rosbags reads only bags of version 2.0, so older
  bags are converted first.
- Transforms: the poses equal compositions of 4 x 4 matrices, with interpolation as in tf2.
- PX4 logs: pyulog reads the rows, and numpy converts them with rotation matrices of the axes.
- Geographic positions: pyproj converts them to meters east, north and up.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyproj
from evo.core import transformations
from evo.tools import file_interface
from pyulog import ULog
from rosbags.rosbag1 import Reader, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

POSES = ("nav_msgs/msg/Odometry", "geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseWithCovarianceStamped",
         "geometry_msgs/msg/TransformStamped")
STORE = get_typestore(Stores.ROS1_NOETIC)
STORE.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage"))
FIX = "sensor_msgs/msg/NavSatFix"
TF = "tf2_msgs/msg/TFMessage"


class Failed(Exception):
    """rovelog writes no trajectory."""


def track(binary, log, folder, kind, *more):
    """Returns the path of a trajectory file, and what rovelog says on stderr."""
    path = Path(folder) / f"track.{kind}"
    command = [binary, "track", "--force", str(log), "-o", str(path), "--to", kind, *more]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    if done.returncode not in (0, 3):
        assert done.returncode in (1, 2), (done.returncode, done.stderr.decode())
        raise Failed(done.stderr.decode())
    return path, done.stderr.decode()


def near(a, b, tolerance, what):
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape, f"{what}: {a.shape} instead of {b.shape}"
    worst = np.max(np.abs(a - b)) if a.size else 0
    assert worst <= tolerance, f"{what} differ by {worst}"


def same_rotations(a, b, what, tolerance=1e-9):
    """A quaternion and its negative are the same rotation."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"{what}: {a.shape} instead of {b.shape}"
    near(np.abs(np.sum(a * b, axis=1)), np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), tolerance, what)


def check_files(binary, log, folder, stamps, xyz, wxyz, *more, tolerance=0.0):
    """Compares the three files with poses. `stamps` are in nanoseconds."""
    tum = file_interface.read_tum_trajectory_file(track(binary, log, folder, "tum", *more)[0])
    seconds = np.asarray(stamps, object) / 10**9
    near(tum.timestamps, seconds.astype(float), 0.0, "TUM times")
    near(tum.positions_xyz, xyz, tolerance, "TUM positions")
    if tolerance:
        same_rotations(tum.orientations_quat_wxyz, wxyz, "TUM rotations")
    else:
        near(tum.orientations_quat_wxyz, wxyz, 0.0, "TUM rotations")
    euroc_path = track(binary, log, folder, "euroc", *more)[0]
    euroc = file_interface.read_euroc_csv_trajectory(euroc_path)
    near(euroc.positions_xyz, tum.positions_xyz, 0.0, "EuRoC positions")
    near(euroc.orientations_quat_wxyz, tum.orientations_quat_wxyz, 0.0, "EuRoC rotations")
    written = [int(line.split(",")[0]) for line in euroc_path.read_text().splitlines()[1:]]
    assert written == [int(stamp) for stamp in stamps], "EuRoC times differ"
    kitti = file_interface.read_kitti_poses_file(track(binary, log, folder, "kitti", *more)[0])
    valid, why = kitti.check()
    assert valid, why
    near(kitti.positions_xyz, tum.positions_xyz, 0.0, "KITTI positions")
    matrices = [transformations.quaternion_matrix(q)[:3, :3] for q in tum.orientations_quat_wxyz]
    near([pose[:3, :3] for pose in kitti.poses_se3], matrices, 1e-9, "KITTI rotations")
    table = np.loadtxt(track(binary, log, folder, "csv", *more)[0], delimiter=",", skiprows=1, ndmin=2)
    near(table[:, 1:4], tum.positions_xyz, 0.0, "CSV positions")
    near(np.roll(table[:, 4:], 1, axis=1), tum.orientations_quat_wxyz, 0.0, "CSV rotations")


def stamps_of(reader, topic):
    messages = reader.messages(connections=[c for c in reader.connections if c.topic == topic])
    for connection, _, data in messages:
        stamp = STORE.deserialize_ros1(data, connection.msgtype).header.stamp
        yield stamp.sec * 10**9 + stamp.nanosec


def check_topic(binary, log, reader, topic, folder):
    """Compares the poses of a topic with those that evo reads from the bag."""
    theirs = file_interface.read_bag_trajectory(reader, topic)
    stamps = np.array(list(stamps_of(reader, topic)))
    order = np.argsort(stamps, kind="stable")
    xyz, wxyz = theirs.positions_xyz[order], theirs.orientations_quat_wxyz[order].copy()
    # evo keeps quaternions of zeros, which are no rotations.
    wxyz[np.linalg.norm(wxyz, axis=1) < 1e-3] = [1, 0, 0, 0]
    kept = np.all(np.isfinite(xyz), axis=1)
    stamps, xyz, wxyz = stamps[order][kept], xyz[kept], wxyz[kept]
    if not stamps.any() or not len(stamps):
        return  # Times of the recording are used, or there is no pose.
    check_files(binary, log, folder, stamps, xyz, wxyz, "--topic", topic)


# Transforms, composed with matrices.


def matrix(transform):
    t, q = transform.translation, transform.rotation
    result = transformations.quaternion_matrix([q.w, q.x, q.y, q.z])
    result[:3, 3] = [t.x, t.y, t.z]
    return result


def read_transforms(reader):
    """Returns the static and the other transforms by child: (time, parent, matrix)."""
    static, moving = {}, {}
    for connection, _, data in reader.messages(connections=[c for c in reader.connections if c.topic in ("/tf", "/tf_static")]):
        for one in STORE.deserialize_ros1(data, TF).transforms:
            stamp = one.header.stamp.sec * 10**9 + one.header.stamp.nanosec
            child, parent = one.child_frame_id.lstrip("/"), one.header.frame_id.lstrip("/")
            if connection.topic == "/tf_static":
                static[child] = (parent, matrix(one.transform))
            elif all(known[0] != stamp for known in moving.setdefault(child, [])):
                moving[child].append((stamp, parent, matrix(one.transform)))
    for transforms in moving.values():
        transforms.sort(key=lambda transform: transform[0])
    return static, moving


def step(static, moving, child, time):
    """Returns the parent and the matrix of a frame, "root", or None if it is unknown."""
    transforms = moving.get(child)
    if not transforms:
        return static.get(child, "root")
    for (t0, p0, m0), (t1, p1, m1) in zip(transforms, [*transforms[1:], transforms[-1]]):
        if time == t0:
            return p0, m0
        if t0 < time < t1:
            if p0 != p1:
                return p0, m0
            share = float(time - t0) / float(t1 - t0)
            q0, q1 = (transformations.quaternion_from_matrix(m) for m in (m0, m1))
            between = transformations.quaternion_matrix(transformations.quaternion_slerp(q0, q1, share))
            between[:3, 3] = m0[:3, 3] + share * (m1[:3, 3] - m0[:3, 3])
            return p0, between
    return None


def chain(static, moving, frame, time):
    result, pose = [(frame, np.eye(4))], np.eye(4)
    while (found := step(static, moving, frame, time)) not in (None, "root"):
        frame, own = found
        pose = own @ pose
        result.append((frame, pose))
    return result


def lookup(static, moving, parent, child, time):
    above = dict(chain(static, moving, parent, time))
    for frame, pose in chain(static, moving, child, time):
        if frame in above:
            return np.linalg.inv(above[frame]) @ pose
    return None


def check_frames(binary, log, parent, child, folder):
    """Returns the number of poses."""
    with Reader(log) as reader:
        static, moving = read_transforms(reader)
    all_times = sorted({time for transforms in moving.values() for time, _, _ in transforms})
    poses = {time: lookup(static, moving, parent, child, time) for time in all_times}
    path = track(binary, log, folder, "euroc", "--tf", parent, child)[0]
    times = [int(line.split(",")[0]) for line in path.read_text().splitlines()[1:]]
    assert times and all(poses.get(time) is not None for time in times), "poses at unknown times"
    matrices = np.array([poses[time] for time in times])
    wxyz = [transformations.quaternion_from_matrix(m) for m in matrices]
    check_files(binary, log, folder, times, matrices[:, :3, 3], wxyz, "--tf", parent, child, tolerance=1e-9)
    # Each time at which a transform between the frames is known has a pose.
    frames = {frame for time in times for end in (parent, child) for frame, _ in chain(static, moving, end, time)[:-1]}
    between = {time for frame in frames for time, _, _ in moving.get(frame, [])}
    common = {time for time in between if poses[time] is not None}
    assert set(times) <= common | set(all_times) and len(times) == len(set(times)), "times are repeated"
    return len(times)


# Generated bags.


def message(name, **fields):
    return STORE.types[name](**fields)


def stamp(nanos):
    return message("builtin_interfaces/msg/Time", sec=int(nanos // 10**9), nanosec=int(nanos % 10**9))


def header(nanos, frame):
    return message("std_msgs/msg/Header", seq=0, stamp=stamp(nanos), frame_id=frame)


def vector(name, values):
    return message(f"geometry_msgs/msg/{name}", **dict(zip("xyzw", map(float, values))))


def rotation(random):
    q = random.normal(size=4)
    return vector("Quaternion", q / np.linalg.norm(q))


def transform(random, nanos, parent, child):
    own = message("geometry_msgs/msg/Transform", translation=vector("Vector3", random.normal(size=3) * 10), rotation=rotation(random))
    return message("geometry_msgs/msg/TransformStamped", header=header(nanos, parent), child_frame_id=child, transform=own)


def write_bag(path, random):
    """Writes poses of all types, positions, and a tree of transforms with two branches and a frame that changes its parent."""
    start = 1_700_000_000_123_456_789
    rows = []
    for i in range(50):
        now = start + i * 100_000_007
        pose = message("geometry_msgs/msg/Pose", position=vector("Point", random.normal(size=3)), orientation=rotation(random))
        covariant = message("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=random.normal(size=36))
        twist = message("geometry_msgs/msg/Twist", linear=vector("Vector3", [1, 2, 3]), angular=vector("Vector3", [0, 0, 0]))
        moving = message("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=np.zeros(36))
        head = header(now, "odom")
        rows.append(("/odom", now, message("nav_msgs/msg/Odometry", header=head, child_frame_id="base", pose=covariant, twist=moving)))
        rows.append(("/pose", now, message("geometry_msgs/msg/PoseStamped", header=head, pose=pose)))
        rows.append(("/cov", now, message("geometry_msgs/msg/PoseWithCovarianceStamped", header=head, pose=covariant)))
        rows.append(("/one", now, transform(random, now, "odom", "base")))
        status = message("sensor_msgs/msg/NavSatStatus", status=0, service=1)
        place = [48.1 + i * 1e-4, 11.5 - i * 2e-4, 500.0 + i]
        rows.append(("/fix", now, message(FIX, header=head, status=status, latitude=place[0], longitude=place[1], altitude=place[2],
                                          position_covariance=np.zeros(9), position_covariance_type=0)))
        moving_tf = [transform(random, now - 30_000_001, "/map", "odom"), transform(random, now, "odom", "base_link")]
        if i % 7:
            moving_tf.append(transform(random, now + 12_345, "base_link", "arm"))
        moving_tf.append(transform(random, now + 50_000_000, "odom" if i < 25 else "map", "box"))
        rows.append(("/tf", now, message(TF, transforms=moving_tf)))
    static = [transform(random, 0, "arm", "tool"), transform(random, 0, "base_link", "lidar"), transform(random, 0, "earth", "map")]
    rows.append(("/tf_static", start, message(TF, transforms=static)))
    with Writer(path) as writer:
        connections = {}
        for topic, now, one in rows:
            kind = one.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], now, STORE.serialize_ros1(one, kind))


def check_generated(binary, folder, seed):
    log = Path(folder) / f"generated{seed}.bag"
    write_bag(log, np.random.default_rng(seed))
    with Reader(log) as reader:
        for topic in ("/odom", "/pose", "/cov", "/one"):
            check_topic(binary, log, reader, topic, folder)
        fixes = [STORE.deserialize_ros1(d, FIX) for _, _, d in reader.messages([c for c in reader.connections if c.topic == "/fix"])]
        stamps = list(stamps_of(reader, "/fix"))
    places = np.array([[fix.latitude, fix.longitude, fix.altitude] for fix in fixes])
    wxyz = np.tile([1.0, 0, 0, 0], (len(fixes), 1))
    check_files(binary, log, folder, stamps, east_north_up(places), wxyz, "--topic", "/fix", tolerance=1e-6)
    assert "no pose has an orientation" in track(binary, log, folder, "tum", "--topic", "/fix")[1]
    pairs = [("map", "base_link"), ("base_link", "map"), ("earth", "tool"), ("lidar", "tool"), ("base_link", "box"), ("odom", "lidar")]
    return sum(check_frames(binary, log, parent, child, folder) for parent, child in pairs)


def east_north_up(places):
    latitude, longitude, height = places[0]
    convert = pyproj.Transformer.from_pipeline(
        f"+proj=pipeline +step +proj=unitconvert +xy_in=deg +xy_out=rad +step +proj=cart +ellps=WGS84 "
        f"+step +proj=topocentric +ellps=WGS84 +lat_0={latitude} +lon_0={longitude} +h_0={height}"
    )
    return np.array(convert.transform(places[:, 1], places[:, 0], places[:, 2])).T


# PX4.

# Axes east, north, up in the axes north, east, down, and forward, left, up in forward, right, down.
ENU = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
FLU = np.diag([1, -1, -1])


def rotations(quaternions):
    return np.array([transformations.quaternion_matrix(q)[:3, :3] for q in quaternions])


def check_px4(binary, log, folder):
    """Compares the poses of the first topic with poses. Returns its name, or None."""
    ulog = ULog(str(log), ["vehicle_odometry", "vehicle_local_position", "vehicle_attitude"])
    data = {d.name: d.data for d in reversed(ulog.data_list) if d.multi_id == 0}
    name = next((name for name in ("vehicle_odometry", "vehicle_local_position") if name in data), None)
    if name is None or ulog.file_corruption:
        return None
    rows = data[name]
    micros = rows["timestamp"].astype(np.int64)
    axes = [f"position[{i}]" for i in range(3)] if "position[0]" in rows else list("xyz")
    xyz = np.array([rows[axis] for axis in axes], float).T
    if name == "vehicle_odometry":
        quaternions = np.array([rows[f"q[{i}]"] for i in range(4)], float).T
        frame = rows.get("pose_frame", rows.get("local_frame", np.zeros(1)) + 1)
        assert (frame == 1).all(), "another frame than NED"
        valid = np.all(np.isfinite(xyz), axis=1)
    else:
        valid = np.all(np.isfinite(xyz), axis=1) & (rows["xy_valid"] != 0) & (rows["z_valid"] != 0)
        attitude = data["vehicle_attitude"]
        own = attitude["timestamp"].astype(np.int64)
        order = np.argsort(own, kind="stable")
        own, q = own[order], np.array([attitude[f"q[{i}]"] for i in range(4)], float).T[order]
        valid &= (micros >= own[0]) & (micros <= own[-1])
        quaternions = np.tile([1.0, 0, 0, 0], (len(micros), 1))
        for row in np.flatnonzero(valid):
            at = np.searchsorted(own, micros[row])
            share = 0.0 if own[at] == micros[row] else (micros[row] - own[at - 1]) / (own[at] - own[at - 1])
            quaternions[row] = q[at] if share == 0 else transformations.quaternion_slerp(q[at - 1], q[at], share)
    order = np.flatnonzero(valid)
    order = order[np.argsort(micros[order], kind="stable")]
    try:
        path, _ = track(binary, log, folder, "euroc", "--time-base", "relative", "--topic", f"{name}/0")
    except Failed:
        assert not len(order), "no trajectory"
        return "logs without positions"
    mine = np.loadtxt(path, delimiter=",", ndmin=2)
    assert len(mine) == len(order), f"{len(mine)} poses instead of {len(order)}"
    near(np.diff(mine[:, 0]), np.diff(micros[order]) * 1000, 0, "times")
    near(mine[:, 1:4], xyz[order] @ ENU.T, 0.0, "positions")
    near(rotations(mine[:, 4:]), ENU @ rotations(quaternions[order]) @ FLU, 1e-6, "rotations")
    return name


def modern(binary, log, folder):
    """Returns a bag that rosbags reads, or None."""
    out = Path(folder) / "modern.bag"
    done = subprocess.run([binary, "export", "--force", "-q", str(log), "--to", "bag2", "-o", str(out)], capture_output=True, check=False)
    return out if done.returncode in (0, 3) and out.exists() else None


def check_bag(binary, log, folder):
    """Compares all topics with poses. Returns their number."""
    with log.open("rb") as file:
        converted = log if file.read(12) == b"#ROSBAG V2.0" else modern(binary, log, folder)
    try:
        reader = Reader(converted).__enter__() if converted else None
    except Exception:  # rosbags refuses damaged bags.
        return 0
    if reader is None:
        return 0
    compared = 0
    for topic, info in reader.topics.items():
        if info.msgtype in POSES and info.msgcount:
            check_topic(binary, converted, reader, topic, folder)
            compared += 1
    reader.close()
    return compared


def main():
    binary, *folders = sys.argv[1:]
    failed, topics, flights, poses = 0, 0, {}, 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(f"generated bag {seed}", check_generated, seed) for seed in range(5)]
        logs = [log for base in folders for log in sorted(Path(base).glob("*/*"))]
        jobs += [(log.name, check_bag, log) for log in logs if log.suffix == ".bag"]
        jobs += [(log.name, check_px4, log) for base in folders[1:] for log in sorted(Path(base, "ulog").glob("*.ulg"))]
        for name, check, what in jobs:
            try:
                result = check(binary, folder, what) if check is check_generated else check(binary, what, folder)
            except (AssertionError, Failed) as problem:
                print(f"{name}: {problem}")
                failed += 1
                continue
            if check is check_generated:
                poses += result
            elif check is check_bag:
                topics += result
            elif result:
                flights[result] = flights.get(result, 0) + 1
    print(f"{poses} poses of frames, {topics} topics of bags, PX4 logs {flights}: {failed} failed")
    sys.exit(1 if failed or not poses else 0)


if __name__ == "__main__":
    main()
