"""Hostile V2.0 bags, as in hostile_shapes: chunks, connections and the index."""

import bz2
import random
import struct

from hostile_shapes import B_STRING, b_record, counted, filled, tails

LINE = b"#ROSBAG V2.0\n"
CHUNK = 768 * 1024
START = 1_600_000_000


def u32(value):
    return struct.pack("<I", value)


def time(k):
    """Returns the time that is some milliseconds after the start of the bag."""
    return struct.pack("<II", START + k // 1000, k % 1000 * 1_000_000)


def connection(number, topic="/t", kind=B_STRING):
    name, md5, text = kind
    data = b_fields(topic=topic.encode(), type=name.encode(), md5sum=md5, message_definition=text)
    return b_record([("op", b"\7"), ("conn", u32(number)), ("topic", topic.encode())], data)


def b_fields(**fields):
    pairs = [f"{name}=".encode() + value for name, value in fields.items()]
    return b"".join(u32(len(pair)) + pair for pair in pairs)


def message(number, k, payload=b"\1\0\0\0x"):
    return b_record([("op", b"\2"), ("conn", u32(number)), ("time", time(k))], payload)


def chunk(data, compression=b"none", size=None):
    return b_record([("op", b"\5"), ("compression", compression), ("size", u32(len(data) if size is None else size))], data)


def index(number, entries):
    return b_record([("op", b"\4"), ("ver", u32(1)), ("conn", u32(number)), ("count", u32(len(entries)))], b"".join(entries))


def chunk_info(at, counts, first=0, last=0):
    fields = [("op", b"\6"), ("ver", u32(1)), ("chunk_pos", struct.pack("<Q", at)), ("start_time", time(first)), ("end_time", time(last)), ("count", u32(len(counts)))]
    return b_record(fields, b"".join(u32(number) + u32(count) for number, count in counts))


def head(index_pos=0, connections=0, chunks=0):
    fields = [("op", b"\3"), ("index_pos", struct.pack("<Q", index_pos)), ("conn_count", u32(connections)), ("chunk_count", u32(chunks))]
    record = b_record(fields, b"")
    return LINE + record[:-4] + u32(4096 - len(record)) + b" " * (4096 - len(record))


def bag(chunks, connections):
    """Returns a bag with an index: chunks, each with its index data, and chunk infos with `counts`."""
    size, infos, parts = len(head()), [], []
    for data, behind, counts in chunks:
        infos.append(chunk_info(size, counts))
        parts += [data, behind]
        size += len(data) + len(behind)
    return b"".join([head(size, len(connections), len(infos)), *parts, *connections, *infos])


def filled_chunk(size, record, first=b""):
    """Returns data of a chunk of about `size`, and the offsets of its records `record(0)`, `record(1)` and so on."""
    pieces, places, total = [first], [], len(first)
    while total < size:
        piece = record(len(places))
        places.append(total)
        pieces.append(piece)
        total += len(piece)
    return b"".join(pieces), places


def chunks_of(size, per, record, entries=True, change=lambda data, places: data, number=0):
    """Returns a bag with chunks of `per` bytes. `change` damages the data of a chunk, but not its index data."""
    made, k, made_size = [], 0, 0
    while made_size < size:
        begin = k
        data, places = filled_chunk(min(per, size), lambda n: record(begin + n), connection(number))
        k += len(places)
        named = index(number, [time(begin + n) + u32(place) for n, place in enumerate(places)]) if entries else b""
        made.append((chunk(change(data, places)), named, [(number, len(places))]))
        made_size += len(made[-1][0]) + len(named)
    return bag(made, [connection(number)])


def sound(size):
    return chunks_of(size, CHUNK, lambda k: message(0, k))


def broken(data, places, step=1):
    """Gives every `step`-th message a header length that is wrong."""
    data = bytearray(data)
    for place in places[::step]:
        data[place : place + 4] = b"\xff\xff\xff\x7f"
    return bytes(data)


def displaced(data, places):
    """Removes a byte before every sixteenth message."""
    kept, before = [], 0
    for place in places[16::16]:
        kept.append(data[before : place - 1])
        before = place
    return b"".join([*kept, data[before:]])


def led_astray(size, named_last=True):
    """Writes a damaged message, followed by messages that are missing in the index. For the last of
    these messages, the index contains a wrong offset.
    """
    data, places = filled_chunk(size, lambda k: message(1, k), connection(0) + connection(1))
    last = message(0, 0) if named_last else b""
    named = index(0, [time(0) + u32(place) for place in range(1, 200)])
    return bag([(chunk(broken(data, places[:1]) + last), named, [(0, 199)])], [connection(0), connection(1)])


def conflicts(size):
    """Declares a connection number as two connections in turn."""
    pair = connection(0, "/a") + message(0, 0) + connection(0, "/b") + message(0, 1)
    data = filled(b"", pair, size)
    return bag([(chunk(data), b"", [(0, 2)])], [connection(0, "/a")])


def connections(size):
    data, _ = filled_chunk(size, lambda k: connection(k, f"/t{k}") + message(k, k))
    return head() + chunk(data)


def infos(size):
    """Repeats the chunk info of one chunk."""
    data, places = filled_chunk(4096, lambda k: message(0, k), connection(0))
    first = chunk(data) + index(0, [time(n) + u32(place) for n, place in enumerate(places)])
    start = head(len(head()) + len(first), 1, 1) + first + connection(0)
    return filled(start, chunk_info(len(head()), [(0, len(places))]), size)


def counts(size):
    """Writes a chunk info with message counts of endless connections."""
    data, places = filled_chunk(4096, lambda k: message(0, k), connection(0))
    named = index(0, [time(n) + u32(place) for n, place in enumerate(places)])
    return bag([(chunk(data), named, [(k, 1) for k in range(size // 8)])], [connection(0)])


def entries(size, place):
    """Writes index data with endless entries after a chunk with few messages, the first of which is damaged."""
    data, places = filled_chunk(4096, lambda k: message(0, k), connection(0))
    named = index(0, [time(n) + u32(place(n)) for n in range(size // 12)])
    return bag([(chunk(broken(data, places, 4)), named, [(0, len(places))])], [connection(0)])


def bombs(size):
    """Writes eight compressed chunks of zeros."""
    data = bz2.compress(connection(0) + bytes(size // 8))
    piece = chunk(data, b"bz2", len(connection(0)) + size // 8)
    return bag([(piece, b"", [(0, 1)])] * 8, [connection(0)])


def nested(size):
    """Writes a bag whose messages contain bags, none of which is followed by a complete record."""
    inner = sound(3000)
    return chunks_of(size, CHUNK, lambda k: message(0, k, u32(len(inner)) + inner), change=lambda data, places: broken(data, places, 2))


def random_times(size):
    times = random.Random(2)
    return chunks_of(size, CHUNK, lambda k: message(0, times.randrange(1 << 31)))


SHAPES = {
    f"v2-{name}.bag": make
    for name, make in {
        **tails(sound),
        "one-chunk": lambda size: chunks_of(size, size, lambda k: message(0, k)),
        "chunk-of-one": lambda size: chunks_of(size, 1, lambda k: message(0, k)),
        "empty-chunks": lambda size: filled(head(), chunk(b""), size),
        "no-index": lambda size: chunks_of(size, CHUNK, lambda k: message(0, k), entries=False),
        "no-payload": lambda size: chunks_of(size, CHUNK, lambda k: message(0, k, b"")),
        "unknown-op": lambda size: filled(head(), b_record([("op", b"\x63")], b""), size),
        "unknown-op-in-chunk": lambda size: chunks_of(size, size, lambda k: b_record([("op", b"\x63")], b"")),
        "broken": lambda size: chunks_of(size, size, lambda k: message(0, k), change=broken),
        "broken-half": lambda size: chunks_of(size, size, lambda k: message(0, k), change=lambda data, places: broken(data, places, 2)),
        "broken-no-index": lambda size: chunks_of(size, size, lambda k: message(0, k), False, lambda data, places: broken(data, places, 2)),
        "displaced": lambda size: chunks_of(size, size, lambda k: message(0, k), change=displaced),
        "displaced-no-index": lambda size: chunks_of(size, size, lambda k: message(0, k), False, displaced),
        "led-astray": led_astray,
        "led-to-the-end": lambda size: led_astray(size, named_last=False),
        "conflicts": conflicts,
        "connections": connections,
        "connections-alike": lambda size: filled(head(), connection(0), size),
        "undefined-connections": lambda size: counted(head(), lambda k: chunk(message(k, k)), size),
        "infos": infos,
        "counts": counts,
        "entries-alike": lambda size: entries(size, lambda n: 0),
        "entries-astray": lambda size: entries(size, lambda n: 7 * n),
        "huge-chunks": lambda size: filled(head(), chunk(b"")[:-4] + u32(1 << 30) + bytes(28), size),
        "bombs": bombs,
        "nested": nested,
        "random-times": random_times,
    }.items()
}
