"""Runs a benchmark with velodyne-decoder: vel_work.py WORK LOG."""

import struct
import sys

import measured


def messages(data):
    """Yields timestamp and data of all VelodyneRawDataM. The size of a message does not count its own 4 bytes."""
    entries = struct.unpack_from("<I", data, 8)[0]
    at = 12 + 8 * entries
    while at + 21 <= len(data):
        size, _, kind, _, millis = struct.unpack_from("<IBIid", data, at)
        if kind == 0x0003112B:
            yield millis, data[at + 21 : at + 4 + size]
        at += 4 + size


def packets(log):
    data = memoryview(open(log, "rb").read())
    for millis, payload in messages(data):
        count = struct.unpack_from("<I", payload, 0)[0]
        for i in range(count):
            yield millis, bytes(payload[4 + 1206 * i : 4 + 1206 * (i + 1)])


def points(log):
    import velodyne_decoder as vd

    config = vd.Config(model=vd.Model.HDL64E_S2)
    config.calibration = vd.Calibration.read(log + ".calibration.yaml")
    decoder = vd.StreamDecoder(config)
    count = 0
    for millis, packet in packets(log):
        scan = decoder.decode(millis / 1000, packet, False)
        if scan is not None:
            count += scan[1].shape[0]
    return f"{count} points", None


def recorded(log):
    """Prints the duration of the recording as if it were CPU time."""
    data = memoryview(open(log, "rb").read())
    times = [millis for millis, _ in messages(data)]
    print(f"{(times[-1] - times[0]) / 1000:.4f} s 0 MB real time")
    sys.exit(0)


WORKS = {"pyvelodyne-points": points, "py-recorded": recorded}

measured.main(WORKS)
