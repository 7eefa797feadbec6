"""Reads the bags that `rovelog export` writes with other readers, and compares every message with `rovelog cat`.

    python export_bags.py bag2 ROVELOG FOLDER..       V2.0: rosbags
    python export_bags.py ros2 ROVELOG FOLDER..       MCAP for ROS 2: mcap with rosbags, and mcap-ros2-support
    python3 export_bags.py debian ROVELOG FOLDER..    V2.0: python3-rosbag

Each difference must be listed in `INTENDED`. If a listed difference does not occur, the check fails
too.
"""

import base64
import collections
import dataclasses
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import rovelog_cli

# Start of the error messages of a reader for content of the old bag that it cannot read.
INTENDED = {
    # Strings that are not UTF-8, which rovelog keeps.
    ("with_rosbags", "texts-not-utf-8"): "AnyReaderError: Could not deserialize",
    ("with_rosbags", "texts-cp1251"): "AnyReaderError: Could not deserialize",
    ("with_mcap_rosbags", "texts-cp1251"): "SerdeError: Could not deserialize",
    ("with_mcap_ros2", "texts-cp1251"): "UnicodeDecodeError",
    ("with_debian", "texts-cp1251"): "other values in /",
    ("with_mcap_rosbags", "texts-not-utf-8"): "SerdeError: Could not deserialize",
    ("with_mcap_rosbags", "grammar_zoo"): "SerdeError: Could not deserialize",
    ("with_mcap_ros2", "texts-not-utf-8"): "UnicodeDecodeError",
    ("with_mcap_ros2", "grammar_zoo"): "UnicodeDecodeError",
    ("with_debian", "texts-not-utf-8"): "other values in /a",
    ("with_debian", "grammar_zoo"): "other values in /g/zoo_msgs/Scalars",
    # Messages that are shorter or longer than their definition.
    ("with_rosbags", "payload-count-hostile"): "AnyReaderError: Invalid string length",
    ("with_rosbags", "payload-short"): "AnyReaderError: Invalid string length",
    ("with_rosbags", "payload-short+count"): "AnyReaderError: Could not deserialize",
    ("with_rosbags", "payload-surplus"): "AnyReaderError: ROS1 message size mismatch",
    ("with_rosbags", "v2.0+payload-short"): "AnyReaderError: Could not deserialize",
    ("with_rosbags", "v2.0+payload-surplus"): "AnyReaderError: ROS1 message size mismatch",
    ("with_rosbags", "v2.0+payload-surplus+compressed"): "AnyReaderError: ROS1 message size mismatch",
    ("with_debian", "payload-count-hostile"): "a message of /a",
    ("with_debian", "payload-short"): "a message of /a",
    ("with_debian", "payload-short+count"): "DeserializationError",
    ("with_debian", "v2.0+payload-short"): "DeserializationError",
    ("with_debian", "v2.0+payload-surplus+compressed"): "a message of /chatter",
    # Constants of ROS 1 that the parser of the reader does not know.
    ("with_rosbags", "grammar_zoo"): "AnyReaderError: Could not parse",
    # In ROS 1 the nanoseconds of a duration have a sign.
    ("with_rosbags", "types-scalars"): "other values in /s",
    # A duration that ROS 2 cannot represent, which the export reports.
    ("with_mcap_rosbags", "types-scalars"): "other values in /s",
    ("with_mcap_ros2", "types-scalars"): "other values in /s",
}


def export(binary, path, out, *options):
    """Exports a bag. Returns True if a file was written. The check fails only if nothing in the bag
    could be exported.
    """
    done = subprocess.run([binary, "export", "-q", str(path), "-o", str(out), *options], capture_output=True, check=False)
    said = done.stderr.decode()
    if done.returncode in (0, 3):
        return True
    refused = ["no records", "no selected topic has a definition", "not a", "log format is unknown", "version"]
    assert any(reason in said for reason in refused), said
    return False


def records(binary, path):
    """Returns topic -> time -> values in file order."""
    found = collections.defaultdict(list)
    for record in rovelog_cli.records(binary, path):
        if list(record["data"]) != ["raw"]:
            found[record["topic"].split("#")[0], int(record["t_ns"])].append(record["data"])
    return found


def plain(theirs):
    """Returns names and values of a message of any reader."""
    if dataclasses.is_dataclass(theirs):
        # A field with a default is a constant.
        fields = (field for field in dataclasses.fields(theirs) if field.default is dataclasses.MISSING)
        return [(field.name, getattr(theirs, field.name)) for field in fields]
    if hasattr(theirs, "_slot_types"):
        return [(name, getattr(theirs, name)) for name in theirs.__slots__]
    return [(name, getattr(theirs, name)) for name in type(theirs).__slots__ if hasattr(theirs, name)]


def same(theirs, ours, ros2):
    """Returns True if a value is equal to the value in the JSON output of rovelog. Floats are
    compared bit for bit. All NaN values count as equal.
    """
    if isinstance(ours, dict) and hasattr(theirs, "nsecs"):
        return theirs.to_nsec() == ours["sec"] * 10**9 + ours["nsec"]
    if isinstance(ours, dict) and list(ours) == ["sec", "nsec"]:
        return theirs.sec * 10**9 + theirs.nanosec == ours["sec"] * 10**9 + ours["nsec"]
    if isinstance(ours, dict):
        names = [name for name in ours if not (ros2 and name == "seq" and list(ours) == ["seq", "stamp", "frame_id"])]
        fields = [(name, value) for name, value in plain(theirs) if name != "structure_needs_at_least_one_member"]
        return len(fields) == len(names) and all(same(value, ours[name], ros2) for (_, value), name in zip(fields, names))
    if isinstance(ours, list):
        return len(theirs) == len(ours) and all(same(a, b, ros2) for a, b in zip(list(theirs), ours))
    if hasattr(theirs, "tobytes") and getattr(theirs, "shape", None) != ():
        return base64.b64encode(theirs.tobytes()).decode() == ours
    if isinstance(theirs, (bytes, bytearray, memoryview, list)):
        return base64.b64encode(bytes(theirs)).decode() == ours
    if isinstance(theirs, str):
        return theirs == ours or theirs.encode("utf-8", "surrogateescape") == rovelog_cli.unescaped(ours)
    if isinstance(ours, bool):
        return bool(theirs) == ours
    if isinstance(theirs, float) or isinstance(ours, float) or ours in ("NaN", "inf", "-inf"):
        theirs, ours = float(theirs), float(ours)
        if math.isnan(theirs) or math.isnan(ours):
            return math.isnan(theirs) and math.isnan(ours)
        return theirs == ours or struct.pack("<f", theirs) == struct.pack("<f", ours)
    return int(theirs) == int(ours)


def with_rosbags(path):
    from rosbags.highlevel import AnyReader

    with AnyReader([path]) as reader:
        for connection, time, raw in reader.messages():
            yield connection.topic, time, reader.deserialize(raw, connection.msgtype)


def with_debian(path):
    import rosbag

    with rosbag.Bag(str(path)) as bag:
        for topic, message, time in bag.read_messages():
            yield topic, time.secs * 10**9 + time.nsecs, message


def with_mcap_rosbags(path):
    from mcap.reader import make_reader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    stores = {}
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            assert (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr")
            if schema.id not in stores:
                stores[schema.id] = get_typestore(Stores.EMPTY)
                stores[schema.id].register(get_types_from_msg(schema.data.decode(), schema.name))
            yield channel.topic, message.log_time, stores[schema.id].deserialize_cdr(message.data, schema.name)


def with_mcap_ros2(path):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with open(path, "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, decoded in reader.iter_decoded_messages(log_time_order=False):
            yield channel.topic, message.log_time, decoded


JUDGES = {
    "bag2": [(("--modernize",), ".bag", with_rosbags)],
    "ros2": [(("--ros2",), ".mcap", with_mcap_rosbags), (("--ros2",), ".mcap", with_mcap_ros2)],
    "debian": [((), ".bag", with_debian), (("--modernize",), ".bag", with_debian), (("--compression", "bz2"), ".bag", with_debian)],
}


def verdict(ours, read, ros2):
    """Returns `same` or the difference, and the number of compared messages."""
    left = {key: list(messages) for key, messages in ours.items()}
    count = 0
    try:
        for topic, time, message in read:
            if not left.get((topic, time)):
                return f"a message of {topic} that the old bag does not have", count
            data = left[topic, time].pop(0)
            if not same(message, data, ros2):
                return f"other values in {topic}: {str(message)[:300]} but {str(data)[:300]}", count
            count += 1
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"[:300], count
    missing = sum(map(len, left.values()))
    return ("same" if not missing else f"{missing} messages fewer"), count


def refused(path):
    """Returns True if readers must reject the bag according to its expected result."""
    expected = path.parent.parent / "expected" / path.parent.name / f"{path.stem}.json"
    return expected.exists() and json.loads(expected.read_text())["open"] == "refused"


def main():
    mode, binary, *folders = sys.argv[1:]
    wrong, bags, compared, intended = [], 0, 0, set()
    paths = [path for folder in folders for path in sorted(pathlib.Path(folder).glob("*.bag"))]
    # A bag that readers must reject cannot be exported.
    paths = [path for path in paths if not refused(path)]
    with tempfile.TemporaryDirectory() as temporary:
        for path in paths:
            for number, (options, extension, read) in enumerate(JUDGES[mode]):
                out = pathlib.Path(temporary) / f"{path.stem}-{number}{extension}"
                if not export(binary, path, out, *options):
                    continue
                bags += 1
                said, count = verdict(records(binary, path), read(out), mode == "ros2")
                compared += count
                if said == "same":
                    continue
                key = (read.__name__, path.stem)
                if key in INTENDED and said.startswith(INTENDED[key]):
                    intended.add(key)
                else:
                    wrong.append(f"{path.stem}, {read.__name__}{' '.join(('', *options))}: {said}")
    readers = {read.__name__ for _, _, read in JUDGES[mode]}
    for reader, name in sorted(key for key in INTENDED if key[0] in readers and key not in intended):
        wrong.append(f"{name}, {reader}: expected to differ, and does not")
    print(f"{mode}: {bags} files, {compared} messages, {len(intended)} with intended differences")
    if wrong:
        print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
