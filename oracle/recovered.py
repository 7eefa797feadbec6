"""Opens what was recovered of damaged logs with the readers of others.

usage: recovered.py FORMAT ROVELOG RECOVERED FOLDER...

Each must open without complaint and have as many records of each topic as rovelog finds in it. Logs are left out that
the reader refuses, or reads otherwise, undamaged: `cargo xtask oracle FORMAT` has these. FOLDERs have the undamaged logs.
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
    """Rows by topic and instance, as pyulog has them."""
    import pyulog

    log = pyulog.ULog(str(path))
    if log.file_corruption:
        raise ValueError("pyulog calls it corrupt")
    return {f"{data.name}/{data.multi_id}": len(data.data["timestamp"]) for data in log.data_list}


def rld(path):
    """Rows, as rocketlogger has them."""
    from rocketlogger.data import RocketLoggerData

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {"samples": RocketLoggerData(str(path), join_files=False).get_data().shape[0]}


def rosbag(path):
    """Messages by topic, as python3-rosbag has them."""
    import rosbag_python

    with rosbag_python.rosbag.Bag(str(path)) as bag:
        return dict(collections.Counter(topic for topic, *_ in bag.read_messages(raw=True)))


# What a hostile log may cost a reader. One that has no more memory does not even take a signal, so
# each reading is a process of its own, which is ended.
SECONDS = 60
BYTES = 4 << 30

# What is imported, once, and the reader, by format.
READERS = {"ulog": ("pyulog", ulog), "rld": ("rocketlogger.data", rld), "rosbag": ("rosbag_python", rosbag)}


# Words of a damage or of a verdict, and why a reader may say otherwise (rules of docs/formats/*.md).
INTENDED = [
    ("a-range-repeated: fewer", "pyulog forgets the rows of a topic that is subscribed again"),
    ("another-log-spliced-in: fewer", "pyulog forgets the rows of a topic that is subscribed again"),
    ("another-log-spliced-in: ValueError: pyulog calls it corrupt", "pyulog knows one meaning of a format's name"),
    ("a-range-repeated: ValueError: pyulog calls it corrupt", "pyulog calls types of messages that it does not know corrupt"),
    ("up-to-3-pages-of-4-KiB-doubled: fewer", "pyulog forgets the rows of a topic that is subscribed again"),
    ("sectors-of-two-logs-interleaved: fewer", "pyulog forgets the rows of a topic that is subscribed again"),
    ("sectors-of-two-logs-interleaved: ValueError: pyulog calls it corrupt", "pyulog takes no definition of the second log behind data, and no second one of a name"),
    ("sectors-of-two-logs-interleaved--unknown-messages+signs.ulg: ", "pyulog calls types of messages that it does not know corrupt"),
    ("copied-as-text-(CR-LF)--robologs__test.ulg: ", "pyulog calls types of messages that it does not know corrupt"),
    ("KeyError: 'timestamp'", "pyulog takes no topic whose timestamp lost its name"),
    ("RocketLoggerDataWarning: Skipping incomplete data block", "rocketlogger leaves out a last block that is short (D14)"),
    ("first UnicodeDecodeError", "text that is no UTF-8 or ASCII: python3-rosbag (B17) and rocketlogger (D4) refuse the log"),
    ("definition-broken.bag: 1-to-5-bits-flipped: SyntaxError: ", "text of a definition was damaged, which no checksum covers: python3-rosbag compiles it"),
    ("definition-with-data.bag: 1-to-5-bits-flipped: SyntaxError: ", "text of a definition was damaged, which no checksum covers: python3-rosbag compiles it"),
    ("real_empty_definition_2020.bag: 1-to-5-bits-flipped: SyntaxError: ", "text of a definition was damaged, which no checksum covers: python3-rosbag compiles it"),
    ("robot.bag: 1-to-5-bits-flipped: SyntaxError: ", "text of a definition was damaged, which no checksum covers: python3-rosbag compiles it"),
    ("definition-header-of-roslib.bag: a-range-zeroed: ValueError: source code string cannot contain null bytes", "text of a definition was damaged, which no checksum covers: python3-rosbag compiles it"),
    ("connection-without-messages.bag: sectors-of-two-logs-interleaved: ValueError: source code string cannot contain null bytes", "text of a definition was damaged, which no checksum covers: python3-rosbag compiles it"),
    ("real_two_publishers_2018.bag: 1-to-5-bits-flipped: MsgNotFound: ", "the name of a type in a definition was damaged, likewise"),
    ("type_zoo.bag: 5-single-bytes-lost: MsgNotFound: ", "the name of a type in a definition was damaged, likewise"),
    ("1-to-5-bits-flipped--extremes.rld", "a channel's unit was damaged to one of the other kind, which rocketlogger takes for another size of row"),
    ("two-ranges-swapped--clock-step.rld", "channels were exchanged with others of another kind, likewise"),
    ("a-range-zeroed--stamps-garbage.rld", "channels were zeroed: rocketlogger has no values of no bytes"),
    ("KeyError: 'Undefined channel unit", "a unit that the damage made unknown (D3)"),
    ("file magic mismatch 0x25524c42", "the first sector is that of a log of version 1, which rocketlogger does not open"),
    ("comment length unaligned", "the length of the comment is that of the damaged header, and rocketlogger expects words of 4 bytes"),
]


def ours(binary, path):
    """Records by topic, topics of the same name together."""
    found = collections.Counter()
    for topic in rovelog_cli.document(binary, "topics", path)["topics"]:
        found[topic["name"].split("#")[0]] += int(topic["count"])
    return {topic: count for topic, count in found.items() if count}


def answer(pipe, read, path):
    """Sends what the reader finds, or why it fails, as text."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    try:
        pipe.send({topic: count for topic, count in read(path).items() if count})
    except Exception as error:  # pylint: disable=broad-except
        first = error
        while first.__context__:
            first = first.__context__
        pipe.send(f"{type(error).__name__}: {error}, first {type(first).__name__}: {first}")


def found_apart(read, path):
    """What the reader finds, or why it fails, from a process of its own."""
    result, pipe = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=answer, args=(pipe, read, path))
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
    """`same`, or what the reader says otherwise."""
    found = found_apart(read, path)
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
    print(f"{name}: {dict(counts)}")
    for reason, count in intended.items():
        print(f"  {count} as intended: {reason}")
    for line in wrong:
        print(f"  {line[:300]}")
    sys.exit(1 if wrong or not counts["same"] else 0)


main()
