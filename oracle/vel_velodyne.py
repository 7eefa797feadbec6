"""Compares point clouds of rovelog with those of velodyne-decoder, point by point.

usage: vel_velodyne.py ROVELOG CORPUS [REAL]

A short parser of this script takes the packets out of the logs. Both clouds must have the same number of points in the
same order, within 0.1 mm (Puck Hi-Res: 1 mm in z, because its table is rounded). An azimuth between two hundredths of a
degree may be rounded either way, so up to 2 % of the points may be off by a hundredth of a degree. velodyne-decoder must
read the same points from the packets that `extract` writes as a network capture.
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import velodyne_decoder as vd

FIELDS = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("t", "<f4")])
HUNDREDTH = 1.8e-4

MODELS = {
    "hdl32e": vd.Model.HDL32E,
    "vlp16": vd.Model.VLP16,
    "vlp16_dual": vd.Model.VLP16,
    "puck_hires": vd.Model.PuckHiRes,
    "vlp32c": vd.Model.VLP32C,
    "vls128": vd.Model.VLS128,
    "hdl64_revolution": vd.Model.HDL64E_S2,
    "velodyne-vlp16": vd.Model.VLP16,
    "velodyne-vlp16-dual": vd.Model.VLP16,
}


def packets(path):
    data = path.read_bytes()
    at = 12 + 8 * struct.unpack_from("<I", data, 8)[0]
    while at + 21 <= len(data):
        size, _, kind, _, millis = struct.unpack_from("<IBIid", data, at)
        if kind == 0x0003112B:
            for i in range(struct.unpack_from("<I", data, at + 21)[0]):
                start = at + 25 + 1206 * i
                yield millis / 1000, data[start : start + 1206]
        at += 4 + size


def theirs(path, model, calibration):
    config = vd.Config(model=model)
    if calibration:
        config.calibration = calibration
    decoder = vd.StreamDecoder(config)
    scans = [decoder.decode(stamp, packet, False) for stamp, packet in packets(path)]
    scans.append(decoder.finish(False))
    return np.vstack([scan[1] for scan in scans if scan is not None and len(scan[1])])


def ours(rovelog, path, options):
    with tempfile.TemporaryDirectory() as folder:
        command = [rovelog, "extract", str(path), "-o", folder, "--only", "clouds", "--cloud", "ply", "-q"]
        subprocess.run(command + options, check=True)
        clouds = sorted((pathlib.Path(folder) / "clouds").glob("*.ply"), key=lambda file: int(file.stem))
        points = []
        for cloud in clouds:
            data = cloud.read_bytes()
            head = data.index(b"end_header\n") + len(b"end_header\n")
            points.append(np.frombuffer(data[head:], FIELDS))
    return np.concatenate(points)


def captured(rovelog, path, model, calibration):
    """Returns the points and times that velodyne-decoder reads from the network capture."""
    config = vd.Config(model=model)
    if calibration:
        config.calibration = calibration
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([rovelog, "extract", str(path), "-o", folder, "--only", "packets", "-q"], check=True)
        scans = [scan for _, scan in vd.read_pcap(f"{folder}/packets.pcap", config)]
    return np.vstack([scan for scan in scans if len(scan)])


def as_yaml(db):
    """Converts the db.xml of the test log to the YAML of velodyne-decoder."""
    import math
    import xml.etree.ElementTree as tree

    root = tree.parse(db).getroot()
    limits = {name: [int(item.text) for item in root.find(f".//{name}").findall("item")] for name in ("minIntensity_", "maxIntensity_")}
    text = "distance_resolution: 0.002\nlasers:\n"
    for px in root.iter("px"):
        if px.find("id_") is None:
            continue
        value = lambda name: float(px.find(name).text)
        number = int(value("id_"))
        fields = {
            "laser_id": number,
            "rot_correction": math.radians(value("rotCorrection_")),
            "vert_correction": math.radians(value("vertCorrection_")),
            "dist_correction": value("distCorrection_") / 100,
            "dist_correction_x": value("distCorrectionX_") / 100,
            "dist_correction_y": value("distCorrectionY_") / 100,
            "vert_offset_correction": value("vertOffsetCorrection_") / 100,
            "horiz_offset_correction": value("horizOffsetCorrection_") / 100,
            "focal_distance": value("focalDistance_") / 100,
            "focal_slope": value("focalSlope_"),
            "min_intensity": limits["minIntensity_"][number],
            "max_intensity": limits["maxIntensity_"][number],
        }
        text += "  - " + "\n    ".join(f"{key}: {item!r}" for key, item in fields.items()) + "\n"
    return text + "num_lasers: 64\n"


def compare(name, got, want):
    if len(got) != len(want):
        return f"{len(got)} points, and velodyne-decoder has {len(want)}"
    xyz = np.stack([got["x"], got["y"], got["z"]], axis=1).astype(np.float64)
    off = np.abs(xyz - want[:, :3])
    limit = np.array([1.05e-4, 1.05e-4, 1.05e-3 if name == "puck_hires" else 1.05e-4])
    # Single precision is less exact far away.
    limit = limit + 2e-6 * np.linalg.norm(xyz, axis=1)[:, None]
    far = (off > limit).any(axis=1)
    wild = off[far].max(axis=1) > HUNDREDTH * np.linalg.norm(xyz[far], axis=1)
    if wild.any() or far.sum() * 50 > len(got):
        return f"{far.sum()} of {len(got)} points are elsewhere, by up to {off.max():.4f} m"
    if np.abs(got["intensity"] - want[:, 3]).max() > 0.01:
        return "intensities differ"
    print(f"{name}: {len(got)} points alike, {far.sum()} by a hundredth of a degree")
    return None


def main():
    rovelog, folders = sys.argv[1], [pathlib.Path(sys.argv[2]) / "vel"]
    if len(sys.argv) > 3:
        folders.append(pathlib.Path(sys.argv[3]) / "vel")
    wrong = compared = 0
    for folder in folders:
        for name, model in MODELS.items():
            path = folder / f"{name}.vel"
            if not path.is_file():
                continue
            options, calibration = [], None
            if name == "hdl64_revolution":
                db = folder / "expected/hdl64_db.xml"
                options = ["--plain-offsets", "--correct-intensity", "--calibration", str(db)]
                calibration = vd.Calibration.from_string(as_yaml(db))
            want = theirs(path, model, calibration)
            problem = compare(name, ours(rovelog, path, options), want)
            capture = captured(rovelog, path, model, calibration)
            if not problem and (capture.shape != want.shape or not np.array_equal(capture[:, :4], want[:, :4])):
                problem = f"{len(capture)} points in the capture of its packets, and {len(want)} in the log"
            compared += 1
            if problem:
                wrong += 1
                print(f"{name}: {problem}")
    print(f"{compared} logs compared, {wrong} differ")
    sys.exit(1 if wrong or not compared else 0)


main()
