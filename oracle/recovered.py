"""Opens recovered logs with another reader.

usage: recovered.py FORMAT ROVELOG RECOVERED FOLDER...

A recovered log must open without complaint and have as many records of each topic as rovelog finds in it. Logs that the
reader refuses or reads differently even undamaged are left out (`cargo xtask oracle FORMAT` compares them). The FOLDERs
have the undamaged logs. Prints a row of the table in docs/internals/reliability/recovered-logs.md.
"""

import collections
import concurrent.futures
import functools
import importlib
import multiprocessing
import os
import pathlib
import resource
import sys
import warnings

import rovelog_cli


def ulog(path):
    """Counts the rows of each topic and instance with pyulog."""
    import pyulog

    log = pyulog.ULog(str(path))
    if log.file_corruption:
        raise ValueError("pyulog calls it corrupt")
    return {f"{data.name}/{data.multi_id}": len(data.data["timestamp"]) for data in log.data_list}


def rld(path):
    """Counts the rows with rocketlogger."""
    from rocketlogger.data import RocketLoggerData

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {"samples": RocketLoggerData(str(path), join_files=False).get_data().shape[0]}


def rosbag(path):
    """Counts the messages of each topic with python3-rosbag."""
    import rosbag_python

    with rosbag_python.rosbag.Bag(str(path)) as bag:
        return dict(collections.Counter(topic for topic, *_ in bag.read_messages(raw=True)))


# Limits for a reader. A process without memory does not handle signals, so each log is read in a process of its own,
# which is killed.
SECONDS = 60
BYTES = 4 << 30

# Module to import once, and reader, by format.
READERS = {"ulog": ("pyulog", ulog), "rld": ("rocketlogger.data", rld), "rosbag": ("rosbag_python", rosbag)}


# Part of "log: damage: verdict" -> reason why the reader may differ (rules of docs/formats/*.md).
INTENDED = [
    ("a-range-repeated: fewer", "pyulog drops the rows of a topic that is subscribed again"),
    ("another-log-spliced-in: fewer", "pyulog drops the rows of a topic that is subscribed again"),
    ("another-log-spliced-in: ValueError: pyulog calls it corrupt", "pyulog reports a format that is defined twice as corruption"),
    ("a-range-repeated: ValueError: pyulog calls it corrupt", "pyulog reports unknown message types as corruption"),
    ("up-to-3-pages-of-4-KiB-doubled: fewer", "pyulog drops the rows of a topic that is subscribed again"),
    ("sectors-of-two-logs-interleaved: fewer", "pyulog drops the rows of a topic that is subscribed again"),
    ("sectors-of-two-logs-interleaved: ValueError: pyulog calls it corrupt", "pyulog accepts no definitions after data, and no second definition of a name"),
    ("sectors-of-two-logs-interleaved--unknown-messages+signs.ulg: ", "pyulog reports unknown message types as corruption"),
    ("copied-as-text-(CR-LF)--robologs__test.ulg: ", "pyulog reports unknown message types as corruption"),
    ("KeyError: 'timestamp'", "pyulog needs a field called timestamp"),
    ("RocketLoggerDataWarning: Skipping incomplete data block", "rocketlogger skips a short last block (D14)"),
    ("first UnicodeDecodeError", "python3-rosbag (B17) and rocketlogger (D4) refuse text that is not UTF-8 or ASCII"),
    ("definition-broken.bag: 1-to-5-bits-flipped: SyntaxError: ", "a damaged definition, which no checksum covers: python3-rosbag compiles it"),
    ("definition-with-data.bag: 1-to-5-bits-flipped: SyntaxError: ", "a damaged definition, which no checksum covers: python3-rosbag compiles it"),
    ("real_empty_definition_2020.bag: 1-to-5-bits-flipped: SyntaxError: ", "a damaged definition, which no checksum covers: python3-rosbag compiles it"),
    ("robot.bag: 1-to-5-bits-flipped: SyntaxError: ", "a damaged definition, which no checksum covers: python3-rosbag compiles it"),
    ("definition-header-of-roslib.bag: a-range-zeroed: ValueError: source code string cannot contain null bytes", "a damaged definition, which no checksum covers: python3-rosbag compiles it"),
    ("connection-without-messages.bag: sectors-of-two-logs-interleaved: ValueError: source code string cannot contain null bytes", "a damaged definition, which no checksum covers: python3-rosbag compiles it"),
    ("real_two_publishers_2018.bag: 1-to-5-bits-flipped: MsgNotFound: ", "the damaged name of a type in a definition"),
    ("type_zoo.bag: 5-single-bytes-lost: MsgNotFound: ", "the damaged name of a type in a definition"),
    ("1-to-5-bits-flipped--extremes.rld", "a damaged unit turns an analog channel into a digital one or back, so rocketlogger expects another size of rows"),
    ("two-ranges-swapped--clock-step.rld", "exchanged analog and digital channels, likewise"),
    ("a-range-zeroed--stamps-garbage.rld", "zeroed channels: rocketlogger knows no values of size 0"),
    ("KeyError: 'Undefined channel unit", "an unknown unit (D3)"),
    ("file magic mismatch 0x25524c42", "the first sector comes from a log of version 1, which rocketlogger does not open"),
    ("comment length unaligned", "a damaged comment length: rocketlogger expects a multiple of 4"),
]


def ours(binary, path):
    """Counts the records of each topic with rovelog. The numbers of all topics with the same name
    are added.
    """
    found = collections.Counter()
    for topic in rovelog_cli.document(binary, "topics", path)["topics"]:
        found[topic["name"].split("#")[0]] += int(topic["count"])
    return {topic: count for topic, count in found.items() if count}


def send_counts(pipe, read, path):
    """Sends the counts of a reader, or its error as text."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    try:
        pipe.send({topic: count for topic, count in read(path).items() if count})
    except Exception as error:  # pylint: disable=broad-except
        first = error
        while first.__context__:
            first = first.__context__
        pipe.send(f"{type(error).__name__}: {error}, first {type(first).__name__}: {first}")


def counts_in_process(read, path):
    """Returns the counts of a reader, or its error as text. The reader runs in a process of its own."""
    result, pipe = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=send_counts, args=(pipe, read, path))
    process.start()
    pipe.close()
    try:
        return result.recv() if result.poll(SECONDS) else f"not done after {SECONDS} s"
    except EOFError:
        return "ended without a result"
    finally:
        process.kill()
        process.join()


def result_of(read, binary, path):
    """Returns `same`, or a description of how the other reader differs."""
    found = counts_in_process(read, path)
    if isinstance(found, str):
        return found
    want = ours(binary, path)
    if found == want:
        return "same"
    fewer = all(count <= want.get(topic, 0) for topic, count in found.items())
    return f"{'fewer' if fewer else 'other'}: {found}, ours {want}"


def main():
    name, binary, recovered, *folders = sys.argv[1:]
    package, read = READERS[name]
    imported = importlib.import_module(package)
    if name == "rosbag":
        imported.repair()
    paths = sorted((pathlib.Path(recovered) / name).iterdir())
    logs = {path.name: path for folder in folders for path in pathlib.Path(folder).iterdir() if path.is_file()}
    damages, subjects = zip(*(path.name.split("--", 1) for path in paths))
    undamaged = [logs[subject] for subject in sorted(set(subjects) & set(logs))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ask = functools.partial(result_of, read, binary)
        understood = {path.name for path, verdict in zip(undamaged, pool.map(ask, undamaged)) if verdict == "same"}
        chosen = [(damage, path) for damage, subject, path in zip(damages, subjects, paths) if subject in understood]
        verdicts = list(pool.map(ask, [path for _, path in chosen]))
    counts, intended, wrong = collections.Counter({"left out": len(paths) - len(chosen)}), collections.Counter(), []
    for (damage, path), verdict in zip(chosen, verdicts):
        counts["same" if verdict == "same" else "otherwise"] += 1
        if verdict == "same":
            continue
        reason = next((why for words, why in INTENDED if words in f"{path.name}: {damage}: {verdict}"), None)
        if reason:
            intended[reason] += 1
        else:
            wrong.append(f"{path.name}: {verdict}")
    print(f"| {name} | {counts['left out']} | {counts['same']} | {counts['otherwise']} |")
    for reason, count in intended.items():
        print(f"  {count} as intended: {reason}", file=sys.stderr)
    for line in wrong:
        print(f"  {line[:300]}", file=sys.stderr)
    sys.exit(1 if wrong or not counts["same"] else 0)


main()
