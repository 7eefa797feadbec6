"""Hostile logs: well-formed enough to be opened, and made to cost time or memory.

Each function returns a log of about the given size in bytes, always with the same bytes. SHAPES lists them by format and
name. A name ends with the file extension.
"""

import bz2
import gzip
import itertools
import random
import struct


def filled(head, piece, size):
    """Repeats `piece` after `head`, up to `size`."""
    return head + piece * max(1, (size - len(head)) // max(1, len(piece)))


def counted(head, piece, size):
    """Appends `piece(0)`, `piece(1)` and so on to `head`, up to `size`."""
    pieces, total = [head], len(head)
    for number in itertools.count():
        if total >= size:
            return b"".join(pieces)
        pieces.append(piece(number))
        total += len(pieces[-1])


def tails(intact):
    """Returns the shapes that every format has. `sound` returns an intact log of a size."""

    def start(size):
        return intact(min(size // 8, 8192))

    def half_zeroed(size):
        log = intact(size)
        return log[: len(log) // 2] + bytes(len(log) - len(log) // 2)

    def cut_in_blocks(size):
        log, block = intact(size), 4096
        kept = (log[at : at + block - 37] + bytes(37) for at in range(0, len(log), block))
        return b"".join(kept)

    return {
        "zeros": lambda size: filled(start(size), bytes(1 << 16), size),
        "ones": lambda size: filled(start(size), b"\xff" * (1 << 16), size),
        "noise": lambda size: start(size) + random.Random(1).randbytes(size),
        "letters": lambda size: filled(start(size), b"abcdefghijklmnopqrstuvwxyz" * 99, size),
        "half-zeroed": half_zeroed,
        "again-and-again": lambda size: filled(b"", intact(3000), size),
        "cut-in-blocks": cut_in_blocks,
        "sound": intact,
    }


# ULog


def u_msg(kind, payload):
    return struct.pack("<HB", len(payload), ord(kind)) + payload


U_HEAD = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 1000) + u_msg("B", bytes(40))


def u_format(text):
    return u_msg("F", text.encode())


def u_add(number, name, multi=0):
    return u_msg("A", bytes([multi]) + struct.pack("<H", number) + name.encode())


def u_row(number, micros, payload=bytes(4)):
    return u_msg("D", struct.pack("<HQ", number, micros) + payload)


def u_info(key, value):
    key = key.encode()
    return bytes([len(key)]) + key + value


U_TYPE = u_format("t:uint64_t timestamp;float x;")
U_START = U_HEAD + U_TYPE + u_add(0, "t")


def u_sound(size):
    return counted(U_START, lambda k: u_row(0, 2000 + 1000 * k), size)


def u_topics(size):
    """Writes as many topics as there are message ids, with three records each."""
    count = min(65_000, size // 80)
    topics = [u_add(number, "t", number & 255) for number in range(count)]
    return counted(U_HEAD + U_TYPE + b"".join(topics), lambda k: u_row(k % count, 2000 + k), size)


def u_types(size):
    """Writes as many types as fit, with a topic and records of each."""
    count = min(60_000, size // 150)
    types = (u_format(f"t{number}:uint64_t timestamp;float x{number};") for number in range(count))
    topics = (u_add(number, f"t{number}") for number in range(count))
    head = U_HEAD + b"".join(types) + b"".join(topics)
    return counted(head, lambda k: u_row(k % count, 2000 + k), size)


def u_nested(size):
    """Writes types nested thirty levels deep, each twice in the next one, repeatedly with other names."""

    def tower(k):
        floors = [u_format(f"a{k}_0:float x;")]
        floors += [u_format(f"a{k}_{i}:a{k}_{i - 1} x;a{k}_{i - 1} y;") for i in range(1, 30)]
        return b"".join(floors) + u_format(f"b{k}:uint64_t timestamp;a{k}_12 x;")

    return counted(U_START, tower, size)


def u_wide(size):
    """Writes a type with many fields, and rows of it."""
    fields = "".join(f"uint8_t f{i};" for i in range(4500))
    head = U_HEAD + u_format("t:uint64_t timestamp;" + fields) + u_add(0, "t")
    return counted(head, lambda k: u_row(0, 2000 + k, bytes(4500)), size)


def u_amplified(size):
    """Writes a type of 61 440 fields by four nested types, and a topic for each of its rows."""
    fields = "".join(f"uint8_t f{i:x};" for i in range(3840))
    types = b"".join(u_format(f"n{number}:{fields}") for number in range(4))
    types += u_format("q:uint64_t timestamp;" + "".join(f"n{i % 4} a{i};" for i in range(16)))
    count = max(1, size // 61_460)
    topics = [u_add(number, "q", number & 255) for number in range(count)]
    return counted(U_HEAD + types + b"".join(topics), lambda k: u_row(k % count, 2000 + k, bytes(61_440)), size)


def u_random_times(size):
    times = random.Random(2)
    return counted(U_START, lambda k: u_row(0, times.randrange(1 << 50)), size)


def u_positions(size):
    """Writes positions, and the traffic between the receiver and the autopilot."""
    head = U_HEAD + u_format("vehicle_gps_position:uint64_t timestamp;int32_t lat;int32_t lon;int32_t alt;uint8_t fix_type;")
    head += u_format("gps_dump:uint64_t timestamp;uint8_t instance;uint8_t len;uint8_t[79] data;")
    head += u_add(0, "vehicle_gps_position") + u_add(1, "gps_dump")

    def pair(k):
        position = struct.pack("<3iB", 470_000_000 + k, 85_000_000, 500_000, 3)
        return u_row(0, 2000 + 200_000 * k, position) + u_row(1, 2000 + 200_000 * k, b"\0\x4f" + bytes(79))

    return counted(head, pair, size)


ULOG = {
    **tails(u_sound),
    "dropouts": lambda size: filled(U_START + u_row(0, 1), u_msg("O", b"\1\0"), size),
    "empty-unknown": lambda size: filled(U_START + u_row(0, 1), u_msg("x", b""), size),
    "unknown": lambda size: counted(U_START, lambda k: u_msg("X", b"wxyz") + (u_row(0, k) if k % 40 == 0 else b""), size),
    "formats": lambda size: counted(U_START, lambda k: u_format(f"f{k}:float x;"), size),
    "one-format": lambda size: filled(U_START, U_TYPE, size),
    "subscriptions": lambda size: counted(U_HEAD + U_TYPE, lambda k: u_add(k & 65535, "t", k & 255), size),
    "one-subscription": lambda size: filled(U_START, u_add(0, "t"), size),
    "topics": u_topics,
    "types": u_types,
    "long-names": lambda size: counted(
        U_HEAD, lambda k: u_format(f"n{k}{'n' * 30000}:uint64_t timestamp;") + u_add(k & 65535, f"n{k}{'n' * 30000}") + u_row(k & 65535, k, b""), size
    ),
    "nested": u_nested,
    "wide": u_wide,
    "amplified": u_amplified,
    "rows-of-nothing": lambda size: counted(U_START + u_add(1, "gone"), lambda k: u_row(k % 50 != 0, k), size),
    "infos": lambda size: counted(U_START, lambda k: u_msg("I", u_info(f"char[4] k{k}", b"abcd")), size),
    "parameters": lambda size: counted(U_START, lambda k: u_msg("P", u_info(f"float P{k}", bytes(4))), size),
    "changes": lambda size: counted(U_START + u_row(0, 1), lambda k: u_msg("P", u_info("float P", struct.pack("<f", k))), size),
    "multi-infos": lambda size: counted(U_START, lambda k: u_msg("M", b"\1" + u_info("char[4] k", b"abcd")), size),
    "console": lambda size: counted(U_START, lambda k: u_msg("L", struct.pack("<BQ", 0x36, k) + b"hello"), size),
    "syncs": lambda size: filled(U_START, u_msg("S", bytes.fromhex("2F731320250CBB12")), size),
    "huge-lengths": lambda size: filled(U_START, b"\xff\xffD" + bytes(30), size),
    "positions": u_positions,
    "backwards": lambda size: counted(U_START, lambda k: u_row(0, (1 << 50) - 1000 * k), size),
    "random-times": u_random_times,
}

# ROS bag V1.2

B_LINE = b"#ROSRECORD V1.2\n"
B_STRING = ("std_msgs/String", b"992ce8a1687cec8c8bd883ec73ca41d1", b"string data\n")


def b_field(name, value):
    return struct.pack("<I", len(name) + 1 + len(value)) + name.encode() + b"=" + value


def b_record(fields, data):
    header = b"".join(b_field(name, value) for name, value in fields)
    return struct.pack("<I", len(header)) + header + struct.pack("<I", len(data)) + data


B_HEAD = B_LINE + b_record([("index_pos", bytes(8)), ("op", b"\3")], b" " * 4066)


def b_kind(topic, kind):
    name, md5, _ = kind
    return [("md5", md5), ("topic", topic.encode()), ("type", name.encode())]


def b_define(topic, kind=B_STRING):
    return b_record([("def", kind[2]), ("op", b"\1"), *b_kind(topic, kind)], b"")


def b_message(topic, k, payload=b"\1\0\0\0x", kind=B_STRING):
    time = [("sec", struct.pack("<I", 1_600_000_000 + k // 1000)), ("nsec", struct.pack("<I", k % 1000 * 1_000_000))]
    return b_record([("op", b"\2"), *time, *b_kind(topic, kind)], payload)


B_START = B_HEAD + b_define("/t")


def b_sound(size):
    return counted(B_START, lambda k: b_message("/t", k), size)


def b_topics(size):
    count = min(60_000, size // 500)
    head = B_HEAD + b"".join(b_define(f"/t{k}") for k in range(count))
    return counted(head, lambda k: b_message(f"/t{k % count}", k), size)


def b_nested(size):
    """Writes a message whose types contain each other twice, thirty levels deep."""

    def kind(k):
        separator = "\n" + "=" * 80 + "\n"
        parts = [f"p/T{k}_29 x\n"]
        parts += [f"MSG: p/T{k}_{i}\np/T{k}_{i - 1} x\np/T{k}_{i - 1} y\n" for i in range(29, 0, -1)]
        parts.append(f"MSG: p/T{k}_0\nfloat32 x\n")
        return (f"p/N{k}", b"%032x" % k, separator.join(parts).encode())

    return counted(B_START, lambda k: b_define(f"/n{k}", kind(k)) + b_message(f"/n{k}", k, b"", kind(k)), size)


def b_wide(size):
    kind = ("p/Wide", b"0" * 32, b"".join(b"uint8 f%d\n" % i for i in range(5000)))
    head = B_HEAD + b_define("/wide", kind)
    return counted(head, lambda k: b_message("/wide", k, bytes(5000), kind), size)


def b_array(size):
    """Writes messages that declare 2^32 - 1 empty elements."""
    kind = ("p/Many", b"0" * 32, b"Empty[] x\n" + b"=" * 80 + b"\nMSG: p/Empty\n")
    head = B_HEAD + b_define("/many", kind)
    return counted(head, lambda k: b_message("/many", k, b"\xff\xff\xff\xff", kind), size)


def b_index(entries):
    fields = [("count", struct.pack("<I", len(entries) // 16)), ("op", b"\4"), ("topic", b"/t"), ("type", B_STRING[0].encode()), ("ver", struct.pack("<I", 1))]
    return b_record(fields, entries)


def b_indices(size):
    """Writes an index in which no offset is the offset of a message."""
    start = b_sound(min(size // 8, 4096))
    head = start.replace(bytes(8), struct.pack("<Q", len(start)), 1)
    return head + b_index(struct.pack("<IIQ", 1_600_000_000, 0, 5) * (size // 16))


def b_random_times(size):
    times = random.Random(2)
    return counted(B_START, lambda k: b_message("/t", times.randrange(1 << 41)), size)


def b_positions(size):
    text = b"NavSatStatus status\nfloat64 latitude\nfloat64 longitude\nfloat64 altitude\n" + b"=" * 80
    kind = ("sensor_msgs/NavSatFix", b"0" * 32, text + b"\nMSG: sensor_msgs/NavSatStatus\nint8 status\nuint16 service\n")
    payload = struct.Struct("<bH3d")
    head = B_HEAD + b_define("/fix", kind)
    return counted(head, lambda k: b_message("/fix", 200 * k, payload.pack(0, 1, 47.0 + k * 1e-7, 8.5, 500.0), kind), size)


BAG = {
    **tails(b_sound),
    "no-payload": lambda size: counted(B_START, lambda k: b_message("/t", k, b""), size),
    "unknown-op": lambda size: filled(B_START, b_record([("op", b"\x63")], b""), size),
    "empty-records": lambda size: filled(B_START, b_record([], b""), size),
    "definitions": lambda size: counted(B_HEAD, lambda k: b_define(f"/t{k}"), size),
    "one-definition": lambda size: filled(B_HEAD, b_define("/t"), size),
    "topics": b_topics,
    "undefined-topics": lambda size: counted(B_HEAD, lambda k: b_message(f"/t{k}", k), size),
    "publishers": lambda size: counted(
        B_START, lambda k: b_record([("callerid", b"/n%d" % k), ("op", b"\2"), ("sec", b"\1\0\0\0"), ("nsec", bytes(4)), *b_kind("/t", B_STRING)], b"\0\0\0\0"), size
    ),
    "long-names": lambda size: counted(B_HEAD, lambda k: b_define(f"/{k}{'n' * 30000}") + b_message(f"/{k}{'n' * 30000}", k), size),
    "fields": lambda size: filled(B_START, b_record([(f"f{i}", b"") for i in range(1000)], b""), size),
    "nested": b_nested,
    "wide": b_wide,
    "endless-arrays": b_array,
    "sections": lambda size: filled(b"", B_LINE, size),
    "headers": lambda size: filled(b"", B_HEAD, size),
    "positions": b_positions,
    "index": b_indices,
    "indices": lambda size: filled(B_START, b_index(bytes(16)), size),
    "huge-lengths": lambda size: filled(B_START, struct.pack("<I", 1 << 30) + bytes(28), size),
    "random-times": b_random_times,
    "bomb.bag.gz": lambda size: gzip.compress(b_sound(4096) + bytes(size), 9, mtime=0),
    "bomb.bag.bz2": lambda size: bz2.compress(b_sound(4096) + bytes(size)),
    "sound.bag.gz": lambda size: gzip.compress(b_sound(size), 1, mtime=0),
}

# VEL

V_HEAD = b"\xa4VEL" + struct.pack("<HHI", 1, 1, 0)
V_OBD, V_GPS, V_IMAGE, V_POSE, V_VELODYNE, V_LASER = 0x14043, 0x14A32, 0x109C9, 0x1E342, 0x3112B, 0x30910


def v_message(kind, millis, data, version=100):
    return struct.pack("<IBIid", 21 + len(data), 0x31, kind, version, millis) + data


def v_image(source, millis, jpeg=b"\xff\xd8\xff\xd9"):
    return v_message(V_IMAGE, millis, struct.pack("<iIiiI", source, 1, 1, 1, len(jpeg)) + jpeg)


def v_gps(k):
    where = struct.pack("<4i2d2f", k // 3600 % 24, k // 60 % 60, k % 60, 0, 50.0 + k * 1e-6, 7.5, 3.0, 90.0)
    return v_message(V_GPS, k * 1000.0, where + struct.pack("<5i5f", 1, 2, 2012, 1, 8, 1.0, 80.0, 47.0, 1.0, 1.0))


def v_laser(name, k):
    return v_message(V_LASER, float(k), struct.pack("<I", 6) + b"Hokuyo" + struct.pack("<I", len(name)) + name + struct.pack("<II", 1, 1000))


def v_sound(size):
    return counted(V_HEAD, lambda k: v_message(V_OBD, float(k), bytes(28)), size)


def v_own_types(size):
    """Returns a declaration of one type with many fields, at most 1 MiB."""
    return counted(b"message OwnM 7\n", lambda k: b"  int f%d\n" % k, min(size // 20, 1 << 20))


def v_own(size):
    """Writes messages of the declared type. All of them are too short."""
    own = sum(letter * weight for weight, letter in enumerate(b"OwnM", 119))
    return counted(V_HEAD, lambda k: v_message(own, float(k), bytes(400), 7), size)


def v_random_times(size):
    times = random.Random(2)
    return counted(V_HEAD, lambda k: v_message(V_OBD, times.random() * 1e9, bytes(28)), size)


def v_velodyne(size):
    noise = random.Random(3)
    packets = struct.pack("<I", 10) + noise.randbytes(12060)
    return counted(V_HEAD, lambda k: v_message(V_VELODYNE, float(k), packets), size)


VEL = {
    **tails(v_sound),
    "empty-messages": lambda size: counted(V_HEAD, lambda k: v_message(7, float(k), b""), size),
    "not-valid": lambda size: filled(V_HEAD, struct.pack("<IBIid", 21, 0x30, V_OBD, 100, 0.0), size),
    "sources": lambda size: counted(V_HEAD, lambda k: v_image(k, float(k)), size),
    "scanners": lambda size: counted(V_HEAD, lambda k: v_laser(b"scanner %d" % k, k), size),
    "types": lambda size: counted(V_HEAD, lambda k: v_message(1000 + k, float(k), b"data"), size),
    "versions": lambda size: counted(V_HEAD, lambda k: v_message(V_OBD, float(k), bytes(28), 1000 + k), size),
    "long-names": lambda size: counted(V_HEAD, lambda k: v_laser(b"%d" % k + b"n" * 30000, k), size),
    "index": lambda size: b"\xa4VEL" + struct.pack("<HHI", 1, 1, size // 8) + bytes(size // 8 * 8) + v_sound(4096)[12:],
    "endless-index": lambda size: b"\xa4VEL" + struct.pack("<HHI", 1, 1, 0xFFFFFFF0) + v_sound(size)[12:],
    "huge-images": lambda size: filled(V_HEAD, v_message(V_IMAGE, 1.0, struct.pack("<iIiiI", 0, 1, 1 << 30, 1 << 30, 1 << 30)), size),
    "huge-lengths": lambda size: filled(V_HEAD + v_message(V_OBD, 1.0, bytes(28)), struct.pack("<I", 1 << 30) + bytes(40), size),
    "positions": lambda size: counted(V_HEAD, v_gps, size),
    "packets": v_velodyne,
    "own": v_own,
    "backwards": lambda size: counted(V_HEAD, lambda k: v_message(V_OBD, 1e9 - k, bytes(28)), size),
    "random-times": v_random_times,
}

# RLD


def r_channel(name, unit, size=4, link=0xFFFF):
    return struct.pack("<IiHH16s", unit, -6, size, link, name.encode())


def r_head(binary, analog, block_rows, blocks, rows, comment=b"comment\0", rate=1000):
    length = 56 + len(comment) + 28 * (len(binary) + len(analog))
    lead = struct.pack("<4sHHIIQH6sqqIHH", b"%RLD", 4, length & 0xFFFF, block_rows, blocks, rows, rate, bytes(6), 1_600_000_000, 0, len(comment), len(binary), len(analog))
    return lead + comment + b"".join(binary + analog)


def r_stamp(k, period=1_000_000_000):
    sec, nsec = divmod(k * period, 1_000_000_000)
    return struct.pack("<4q", 1_600_000_000 + sec, nsec, sec, nsec)


def r_log(size, block_rows=1000, binary=("D1", "I1L_valid"), analog=("V1", "I1L", "I1H"), row=None, stamp=r_stamp, declared=None):
    """Writes a recording of complete blocks. `row` returns the bytes of a row by its number."""
    binary = [r_channel(name, 3) for name in binary]
    analog = [r_channel(name, 1 if name[0] == "V" else 2, 4, 1 if name == "I1L" else 0xFFFF) for name in analog]
    row_size = 4 * ((len(binary) + 31) // 32) + 4 * len(analog)
    blocks = max(1, size // (32 + block_rows * row_size))
    head = r_head(binary, analog, *(declared or (block_rows, blocks, blocks * block_rows)))
    rows = [row(k) if row else struct.pack("<I", 3) + struct.pack("<i", k) * len(analog) for k in range(block_rows)]
    body = b"".join(rows)
    return head + b"".join(stamp(k, block_rows * 1_000_000) + body for k in range(blocks))


def r_channels(size):
    """Writes as many channels as a header can count, and a few rows."""
    binary = [r_channel(f"D{i}", 3) for i in range(min(65_535, size // 100))]
    analog = [r_channel(f"V{i}", 1) for i in range(min(65_535, size // 100))]
    row = bytes(4 * ((len(binary) + 31) // 32) + 4 * len(analog))
    head = r_head(binary, analog, 1, 1, 1)
    rows = max(1, (size - len(head)) // (len(row) + 32))
    return r_head(binary, analog, 1, rows, rows) + b"".join(r_stamp(k, 1_000_000) + row for k in range(rows))


def r_random_stamps(size):
    times = random.Random(2)
    return r_log(size, block_rows=4, stamp=lambda k, period: r_stamp(times.randrange(1 << 33), 1))


RLD = {
    **tails(r_log),
    "small-blocks": lambda size: r_log(size, block_rows=1),
    "small-rows": lambda size: r_log(size, binary=("D1",), analog=()),
    "no-channels": lambda size: r_log(size, binary=(), analog=(), block_rows=1),
    "switching": lambda size: r_log(size, row=lambda k: struct.pack("<I3i", k & 3, k, k, k)),
    "switching-small-blocks": lambda size: r_log(size, block_rows=2, row=lambda k: struct.pack("<I3i", k & 3, k, k, k)),
    "channels": r_channels,
    "zeros-as-rows": lambda size: filled(r_log(1, declared=(1000, 0xFFFFFFFF, (1 << 64) - 1)), bytes(1 << 16), size),
    "noise-as-rows": lambda size: r_log(1, declared=(1000, 0xFFFFFFFF, (1 << 64) - 1)) + random.Random(1).randbytes(size),
    "comment": lambda size: r_head([r_channel("D1", 3)], [], 1, 1, 1, b"a comment, " * (size // 11)) + r_stamp(0) + bytes(4),
    "comment-lines": lambda size: r_head([r_channel("D1", 3)], [], 1, 1, 1, b"k=v\n" * (size // 4)) + r_stamp(0) + bytes(4),
    "counts-of-none": lambda size: r_log(size, declared=(1000, 0, 0)),
    "endless-counts": lambda size: r_log(size, declared=(1000, 0xFFFFFFFF, (1 << 64) - 1)),
    "endless-block": lambda size: r_log(size, declared=(0xFFFFFFFF, 1, 0xFFFFFFFF)),
    "random-stamps": r_random_stamps,
    "same-stamps": lambda size: r_log(size, block_rows=4, stamp=lambda k, period: r_stamp(0)),
    "backwards": lambda size: r_log(size, block_rows=4, stamp=lambda k, period: r_stamp(1_000_000 - k)),
}

EXTENSIONS = {"ulog": "ulg", "rosbag": "bag", "vel": "vel", "rld": "rld"}

SHAPES = {
    format: {name if "." in name else f"{name}.{EXTENSIONS[format]}": make for name, make in shapes.items()}
    for format, shapes in (("ulog", ULOG), ("rosbag", BAG), ("vel", VEL), ("rld", RLD))
}
