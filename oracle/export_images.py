"""Reads the images, videos and sounds that `rovelog extract` writes from bags with OpenCV, Pillow, tifffile and PyAV.

usage: export_images.py ROVELOG REAL

The script writes a bag with random pixels in every encoding, in both byte orders, with padded rows. Every value must
be that of the message; colors of YUV must be those of OpenCV, and of Bayer patterns too, except at the border.
Depth is compressed as RVL by the encoder in this script.
"""

import csv
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import tifffile
from PIL import Image
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

STORE = get_typestore(Stores.ROS1_NOETIC)
STORE.register(get_types_from_msg("uint8[] data", "audio_common_msgs/msg/AudioData"))
STORE.register(
    get_types_from_msg("time timestamp\nstring frame_id\nuint8[] data\nstring format", "foxglove_msgs/msg/CompressedVideo")
)
MESSAGES = STORE.types
HEIGHT, WIDTH = 46, 64
RANDOM = np.random.default_rng(60)
# OpenCV names a pattern after the second and third pixel of its second row.
BAYER = {"rggb": "BG", "bggr": "RG", "gbrg": "GR", "grbg": "GB"}
DEPTHS = {"8U": "u1", "8S": "i1", "16U": "u2", "16S": "i2", "32S": "i4", "32F": "f4", "64F": "f8"}


def pixels(dtype, channels):
    kind = np.dtype(dtype)
    values = np.frombuffer(RANDOM.bytes(HEIGHT * WIDTH * channels * kind.itemsize), kind)
    return values.reshape((HEIGHT, WIDTH, channels)[: 2 + (channels > 1)])


def swapped(array):
    """Swaps red and blue."""
    return array[..., [2, 1, 0, 3][: array.shape[2]]]


def raw_images():
    """Yields encoding, pixels as the message stores them, pixels as the file must have them, and whether the values at
    the border may differ.
    """
    for name, channels in [("mono", 1), ("rgb", 3), ("rgba", 4), ("bgr", 3), ("bgra", 4)]:
        for bits in (8, 16):
            array = pixels(f"u{bits // 8}", channels)
            yield f"{name}{bits}", array, swapped(array) if name.startswith("bgr") else array, False
    for depth, dtype in DEPTHS.items():
        for channels in (1, 2, 3, 4):
            array = pixels(dtype, channels)
            color = depth in ("8U", "16U") and channels > 2
            yield f"{depth}C{channels}", array, swapped(array) if color else array, False
    for name, code in [("yuv422", cv2.COLOR_YUV2RGB_UYVY), ("yuv422_yuy2", cv2.COLOR_YUV2RGB_YUY2)]:
        array = pixels("u1", 2)
        yield name, array, cv2.cvtColor(array, code), False
    for pattern, name in BAYER.items():
        for bits in (8, 16):
            array = pixels(f"u{bits // 8}", 1)
            yield f"bayer_{pattern}{bits}", array, cv2.cvtColor(array, getattr(cv2, f"COLOR_Bayer{name}2RGB")), True


def rvl(depth):
    """Compresses 16-bit values as in the article of A. D. Wilson (2017)."""
    nibbles = []

    def push(number):
        while True:
            nibbles.append(number & 7 | (8 if number > 7 else 0))
            number >>= 3
            if not number:
                return

    values, at, previous = [int(value) for value in depth.ravel()], 0, 0
    while at < len(values):
        start = at
        while at < len(values) and values[at] == 0:
            at += 1
        push(at - start)
        start = at
        while at < len(values) and values[at] != 0:
            at += 1
        push(at - start)
        for value in values[start:at]:
            delta = value - previous
            push(2 * delta if delta >= 0 else -2 * delta - 1)
            previous = value
    nibbles += [0] * (-len(nibbles) % 8)
    words = [int("".join(f"{nibble:x}" for nibble in nibbles[i : i + 8]), 16) for i in range(0, len(nibbles), 8)]
    return struct.pack(f"<II{len(words)}I", depth.shape[1], depth.shape[0], *words)


def depth_images():
    """Yields the format, the data and the depths of compressed depth images."""
    depth = pixels("u2", 1).copy()
    depth[RANDOM.random(depth.shape) < 0.3] = 0
    depth[10:14] = 0
    smooth = (1000 + 500 * np.sin(np.arange(HEIGHT * WIDTH) / 300)).astype("u2").reshape(HEIGHT, WIDTH)
    a, b = np.float32(10100.0), np.float32(-1009.0)
    with np.errstate(divide="ignore"):
        meters = np.where(depth == 0, np.float32("nan"), a / (depth.astype("f4") - b)).astype("f4")
    png = lambda array: cv2.imencode(".png", array)[1].tobytes()
    header = struct.pack("<iff", 0, a, b)
    for name in ("16UC1; compressedDepth png", "16UC1; compressedDepth", "16UC1"):
        yield name, header + png(depth), depth
    yield "32FC1; compressedDepth png", header + png(depth), meters
    yield "32FC1; compressedDepth", header + png(depth), meters
    for array in (depth, smooth, np.zeros_like(depth)):
        yield "16UC1; compressedDepth rvl", header + rvl(array), array
    yield "32FC1; compressedDepth rvl", header + rvl(depth), meters


def readings(path):
    """Yields the pixels of a file according to each reader that supports it, with red first."""
    if path.suffix == ".png":
        array = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        yield "OpenCV", array if array.ndim == 2 else swapped(array)
        # Pillow reduces 16-bit colors to 8 bits.
        if array.dtype == np.uint8 or array.ndim == 2:
            yield "Pillow", np.asarray(Image.open(path)).astype(array.dtype)
        return
    found = tifffile.imread(path)
    yield "tifffile", found
    if found.ndim == 2:
        # OpenCV and Pillow have no 8-bit signed pixels, and Pillow converts 64-bit floats.
        if found.dtype != np.int8:
            yield "OpenCV", cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        if found.dtype in (np.int16, np.int32, np.float32):
            yield "Pillow", np.asarray(Image.open(path)).astype(found.dtype)


def frames(codec):
    """Returns the packets of a short video."""
    context = av.CodecContext.create(codec, "w")
    context.options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
    context.width, context.height, context.pix_fmt, context.time_base = WIDTH, 48, "yuv420p", Fraction(1, 30)
    packets = []
    for i in range(12):
        frame = av.VideoFrame.from_ndarray(np.full((48, WIDTH, 3), 20 * i, "u1"), format="rgb24")
        frame.pts = i
        packets += context.encode(frame)
    return [bytes(packet) for packet in packets + context.encode(None)]


def header(seconds):
    stamp = MESSAGES["builtin_interfaces/msg/Time"](sec=seconds, nanosec=7)
    return MESSAGES["std_msgs/msg/Header"](seq=0, stamp=stamp, frame_id="camera")


class Bag:
    """Writes a bag, and remembers what must be extracted from each topic."""

    def __init__(self, path):
        self.writer = Writer(path)
        self.writer.open()
        self.connections, self.wanted = {}, {}

    def add(self, topic, name, second, **fields):
        if topic not in self.connections:
            self.connections[topic] = self.writer.add_connection(topic, name, typestore=STORE)
        data = STORE.serialize_ros1(MESSAGES[name](**fields), name)
        self.writer.write(self.connections[topic], second * 1_000_000_000, data)

    def raw(self, topic, encoding, array, big_endian, padding):
        array = array.astype(array.dtype.newbyteorder(">" if big_endian else "<"))
        rows = [row.tobytes() + b"\xaa" * padding for row in array]
        fields = {"height": HEIGHT, "width": WIDTH, "encoding": encoding, "is_bigendian": int(big_endian)}
        data = np.frombuffer(b"".join(rows), "u1")
        self.add(topic, "sensor_msgs/msg/Image", 5, header=header(4), step=len(rows[0]), data=data, **fields)

    def compressed(self, topic, format, data, second=5):
        data = np.frombuffer(data, "u1")
        self.add(topic, "sensor_msgs/msg/CompressedImage", second, header=header(second), format=format, data=data)


def write(path):
    """Writes the bag. Returns topic -> wanted pixels, topic -> wanted payloads, topics without an image."""
    bag, images, streams = Bag(path), {}, {}
    for encoding, array, wanted, is_bayer in raw_images():
        for big_endian in (False, True):
            topic = f"/raw/{encoding}/{'big' if big_endian else 'little'}"
            bag.raw(topic, encoding, array, big_endian, 16 * big_endian)
            images[topic] = (wanted, is_bayer)
    for i, (format, data, wanted) in enumerate(depth_images()):
        bag.compressed(f"/depth{i}", format, data)
        images[f"/depth{i}"] = (wanted, False)
    picture = cv2.cvtColor(pixels("u1", 3), cv2.COLOR_RGB2BGR)
    for kind in ("png", "bmp", "webp", "tiff", "ppm", "jp2"):
        options = [cv2.IMWRITE_WEBP_QUALITY, 101] if kind == "webp" else []
        options = [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000] if kind == "jp2" else options
        bag.compressed(f"/file/{kind}", "jpeg", cv2.imencode(f".{kind}", picture, options)[1].tobytes())
        images[f"/file/{kind}"] = (swapped(picture), False)
    for codec, format in [("libx264", "h264"), ("libx265", "hevc")]:
        streams[f"/video/{format}"] = frames(codec)
        for second, frame in enumerate(streams[f"/video/{format}"]):
            bag.compressed(f"/video/{format}", format, frame, second + 1)
    streams["/video/foxglove"] = streams["/video/h264"]
    for second, frame in enumerate(streams["/video/foxglove"]):
        fields = {"timestamp": header(second).stamp, "frame_id": "camera", "format": "h264"}
        bag.add("/video/foxglove", "foxglove_msgs/msg/CompressedVideo", second + 1, data=np.frombuffer(frame, "u1"), **fields)
    bag.compressed("/none/junk", "jpeg", b"hello")
    bag.compressed("/none/empty", "png", b"")
    bag.writer.close()
    return images, streams


def extract(binary, bag, out, *options):
    """Extracts a bag. Returns the exit code, the messages, and the rows of the index."""
    done = subprocess.run([binary, "extract", str(bag), "-o", str(out), *options], capture_output=True, check=False)
    with open(out / "index.csv", newline="", encoding="utf-8") as file:
        return done.returncode, done.stderr.decode(), list(csv.DictReader(file))


def check_images(wanted, rows, out):
    """Compares all images. Returns the number of comparisons."""
    compared = 0
    files = {row["topic"]: out / row["file"] for row in rows if row["topic"] in wanted}
    assert files.keys() == wanted.keys(), f"not extracted: {sorted(wanted.keys() - files.keys())}"
    for topic, (array, is_bayer) in wanted.items():
        if topic.startswith("/file/"):
            found = [("OpenCV", swapped(cv2.imread(str(files[topic]))))]
        else:
            found = readings(files[topic])
        for reader, got in found:
            want = array
            if is_bayer:
                want, got = want[1:-1, 1:-1], got[1:-1, 1:-1]
            assert got.dtype == want.dtype, f"{topic} with {reader}: {got.dtype} instead of {want.dtype}"
            assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), f"{topic} with {reader}: other values"
            compared += 1
    return compared


def check_stream(topic, payloads, rows, out):
    """Compares a stream and its table with the payloads of the messages."""
    stream, parts = (out / row["file"] for row in rows if row["topic"] == topic)
    assert stream.read_bytes() == b"".join(payloads), f"{topic}: other bytes"
    with open(parts, newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    at = 0
    for line, payload in zip(table, payloads, strict=True):
        assert (int(line["offset"]), int(line["length"])) == (at, len(payload)), f"{topic}: {line}"
        at += len(payload)
    return stream, table


def main(binary, real):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        images, streams = write(folder / "all.bag")
        code, said, rows = extract(binary, folder / "all.bag", folder / "out")
        compared = check_images(images, rows, folder / "out")
        assert code == 3 and "/none/junk" in said and "/none/empty" in said, said
        assert not [row for row in rows if row["topic"].startswith("/none/")]
        for topic, payloads in streams.items():
            stream, table = check_stream(topic, payloads, rows, folder / "out")
            with av.open(str(stream)) as video:
                count = sum(1 for _ in video.decode(video=0))
            assert count == len(payloads), f"{topic}: PyAV decodes {count} of {len(payloads)} frames"
            times = [(int(line["t_ns"]), int(line["stamp_ns"])) for line in table]
            late = 1 if topic == "/video/foxglove" else 0
            assert times == [((i + 1) * 10**9, (i + 1 - late) * 10**9 + 7) for i in range(len(times))], topic
        _, _, rows = extract(binary, folder / "all.bag", folder / "mosaics", "--raw")
        mosaics = {}
        for row in rows:
            if "bayer" in row["topic"]:
                image = cv2.imread(str(folder / "mosaics" / row["file"]), cv2.IMREAD_UNCHANGED)
                mosaics[row["topic"]] = image
        with AnyReader([folder / "all.bag"]) as reader:
            for connection, _, data in reader.messages():
                if connection.topic in mosaics:
                    message = reader.deserialize(data, connection.msgtype)
                    dtype = np.dtype(mosaics[connection.topic].dtype).newbyteorder("<>"[message.is_bigendian])
                    lines = message.data.reshape(HEIGHT, message.step)[:, : WIDTH * dtype.itemsize]
                    want = np.ascontiguousarray(lines).view(dtype)
                    assert np.array_equal(mosaics[connection.topic], want), f"{connection.topic}: another mosaic"
        print(f"{len(images)} images, {compared} comparisons; {len(mosaics)} mosaics; {len(streams)} videos")
        sound = Path(real) / "rosbag20/real_audio_2019.bag"
        with AnyReader([sound], default_typestore=STORE) as reader:
            payloads = [bytes(reader.deserialize(data, c.msgtype).data) for c, _, data in reader.messages() if c.topic == "/audio"]
        _, _, rows = extract(binary, sound, folder / "sound")
        check_stream("/audio", payloads, rows, folder / "sound")
        print(f"{sound.name}: {len(payloads)} payloads of sound")


if __name__ == "__main__":
    main(*sys.argv[1:])
