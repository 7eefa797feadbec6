"""Compares MCAP files of ULogs, read with mcap and mcap-protobuf-support, with pyulog value by value.

usage: export_mcap.py ROVELOG REAL
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

import pyulog_columns
from pyulog_columns import FEWER

WIDTHS = {
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16, "int32_t": np.int32,
    "uint32_t": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64, "float": np.float32, "double": np.float64,
    "bool": np.int8,
}


def leaves(message):
    """Returns the flat values of a message in field order, zeros included."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is None:
            if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
                yield from value
            else:
                yield value
        elif isinstance(value, type(message)) or hasattr(value, "DESCRIPTOR"):
            yield from leaves(value)
        else:
            for item in value:
                yield from leaves(item)


def read(path):
    """Returns topic -> (schema name, log times, publish times, messages), and the metadata records."""
    topics = {}
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        for schema, channel, message, decoded in reader.iter_decoded_messages(log_time_order=False):
            assert channel.message_encoding == "protobuf" and schema.encoding == "protobuf"
            topic = topics.setdefault(channel.topic, (schema.name, [], [], []))
            topic[1].append(message.log_time)
            topic[2].append(message.publish_time)
            topic[3].append(decoded)
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
        assert summary.statistics.message_count == sum(len(topic[3]) for topic in topics.values())
        times = [time for topic in topics.values() for time in topic[1]]
        assert summary.statistics.message_start_time == min(times)
        assert reader.get_header().profile == "px4"
    return topics, metadata


def one_per_text(fields):
    """Joins the characters of an array into one text."""
    chars = [field.type_str == "char" and not field.field_name.endswith("[0]") and field.field_name.endswith("]") for field in fields]
    return [field for field, char in zip(fields, chars) if not char]


def compare_topic(name, topic, data, offset):
    schema, log_times, _, messages = topic
    assert schema == f"px4.{data.name}", schema
    fields = one_per_text(pyulog_columns.shown(data))
    columns = list(zip(*(leaves(message) for message in messages)))
    assert len(columns) == len(fields), f"{name}: {len(columns)} leaves, not {len(fields)}"
    position = next(i for i, field in enumerate(fields) if field.field_name == "timestamp")
    ours = np.array(columns[position], np.uint64)
    assert log_times == sorted(log_times), f"{name}: not in time order"
    timed = ours != 0
    want = ours[timed].astype(np.int64) * 1000 + offset
    assert np.array_equal(np.array(log_times, np.int64)[timed], want), f"{name}: log times"
    # The rows of pyulog and of the MCAP file are sorted by time. A row without a time stays in
    # place.
    timestamps = data.data["timestamp"]
    assert len(ours) >= len(timestamps), name
    order = pyulog_columns.ordered(timestamps)
    places = pyulog_columns.rows_of(timestamps[order], ours)
    for column, field in zip(columns, fields):
        if field.type_str == "char":
            texts = pyulog_columns.texts_of(data, field.field_name.removesuffix("[0]"))
            assert [column[place] for place in places] == [texts[i] for i in order], f"{name}.{field.field_name}"
            continue
        width = WIDTHS[field.type_str]
        got = np.array(column, dtype=np.float64 if width in (np.float32, np.float64) else None).astype(width)[places]
        want = data.data[field.field_name][order]
        if field.type_str == "bool":
            want = want.astype(bool).astype(np.int8)
        assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f"), f"{name}.{field.field_name}"
    return len(fields) * len(messages)


def compare(binary, log):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log.mcap"
        done = subprocess.run([binary, "export", "-q", log, "-o", path], capture_output=True, check=False, timeout=600)
        assert done.returncode in (0, 3) and b"carried" not in done.stderr, done.stderr.decode()
        topics, metadata = read(path)
    ulog = pyulog_columns.read(log)
    facts = metadata["rovelog"]
    assert facts["source_name"] == log.name and facts["format"] == "ulog"
    offset = int(facts.get("utc_offset_ns", "0")) if facts["time_base"] == "utc" else 0
    values = 0
    for data in ulog.data_list:
        name = f"{data.name}/{data.multi_id}"
        values += compare_topic(name, topics[name], data, offset)
    for key, value in ulog.msg_info_dict.items():
        if isinstance(value, (str, int)):
            assert metadata["info"][key] == str(value), f"info {key}: {metadata['info'].get(key)} but {value}"
    compare_texts(topics, ulog, log)
    compare_parameters(topics, ulog, log)
    fixes = compare_fixes(topics, ulog, log)
    return values, fixes


def compare_texts(topics, ulog, log):
    ours = topics.get("log_message", ("", [], [], []))[3]
    tagged = sum(len(lines) for lines in ulog.logged_messages_tagged.values())
    if log.name not in FEWER:
        assert len(ours) == len(ulog.logged_messages) + tagged, "console lines"
    if not tagged and log.name not in FEWER:
        want = sorted((line.timestamp, line.message) for line in ulog.logged_messages)
        assert sorted((line.timestamp, line.text) for line in ours) == want
    typed = topics.get("/foxglove/log", ("foxglove.Log", [], [], []))
    assert typed[0] == "foxglove.Log" and [line.message for line in typed[3]] == [line.text for line in ours]


def compare_parameters(topics, ulog, log):
    ours = [p for p in topics.get("parameters", ("", [], [], []))[3] if not p.default]
    initial = ours[: len(ulog.initial_parameters)]
    value = lambda p: p.int_value if p.type == "int32" else p.float_value
    got = {p.name: value(p) for p in initial}
    assert got.keys() == ulog.initial_parameters.keys(), "parameters"
    for name, want in ulog.initial_parameters.items():
        assert got[name] == want or (got[name] != got[name] and want != want), name
    if log.name not in FEWER:
        changed = [(p.name, value(p)) for p in ours[len(initial):]]
        assert changed == [(name, value) for _, name, value in ulog.changed_parameters]


def compare_fixes(topics, ulog, log):
    """Compares each LocationFix with a row of the receiver's topic, in degrees and meters."""
    if "/foxglove/gps" not in topics:
        return 0
    schema, _, _, fixes = topics["/foxglove/gps"]
    assert schema == "foxglove.LocationFix"
    places = set()
    for data in ulog.data_list:
        columns = data.data
        if "lat" in columns and "lon" in columns:
            scale = 1e7 if columns["lat"].dtype == np.int32 else 1
            places |= {(round(a / scale, 9), round(b / scale, 9)) for a, b in zip(columns["lat"].tolist(), columns["lon"].tolist())}
        elif "latitude_deg" in columns:
            places |= {(round(a, 9), round(b, 9)) for a, b in zip(columns["latitude_deg"].tolist(), columns["longitude_deg"].tolist())}
    for fix in fixes:
        assert log.name in FEWER or (round(fix.latitude, 9), round(fix.longitude, 9)) in places, str(fix)[:100]
        assert len(fix.position_covariance) in (0, 9)
    return len(fixes)


def main():
    binary, real = sys.argv[1], Path(sys.argv[2])
    failures = 0
    logs = sorted((real / "ulog").glob("*.ulg"))
    assert logs, f"{real} has no ULog"
    for log in logs:
        try:
            values, fixes = compare(binary, log)
            print(f"{log.name}: {values} values in MCAP, {fixes} fixes")
        except AssertionError as error:
            print(f"{log.name}: {error}")
            failures += 1
    sys.exit(1 if failures else 0)


main()
