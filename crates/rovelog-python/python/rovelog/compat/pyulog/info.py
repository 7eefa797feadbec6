"""The program `ulog_info`: prints information about a ULog, in the format of pyulog."""

from __future__ import annotations

import argparse

from rovelog.compat.pyulog.core import ULog


def _clock(microseconds: int) -> str:
    minutes, seconds = divmod(int(microseconds / 1e6), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:d}:{minutes:02d}:{seconds:02d}"


def show_info(ulog: ULog, verbose: bool) -> None:
    """Prints start, duration, dropouts, version, info messages and topics."""
    if ulog.file_corruption:
        print("Warning: file has data corruption(s)")
    duration = _clock(ulog.last_timestamp - ulog.start_timestamp)
    print(f"Logging start time: {_clock(ulog.start_timestamp)}, duration: {duration}")
    durations = [dropout.duration for dropout in ulog.dropouts]
    if durations:
        total = sum(durations)
        print(
            f"Dropouts: count: {len(durations)}, total duration: {total / 1000.0:.1f} s, "
            f"max: {max(durations)} ms, mean: {int(total / len(durations))} ms"
        )
    else:
        print("No Dropouts")
    version = ulog.get_version_info_str()
    if version is not None:
        print(f"SW Version: {version}")
    print("Info Messages:")
    for key, value in sorted(ulog.msg_info_dict.items()):
        if verbose or not key.startswith("perf_"):
            print(f" {key}: {value}")
    multiple = sorted(ulog.msg_info_multiple_dict.items())
    if multiple and verbose:
        print("Info Multiple Messages:")
        for key, lists in multiple:
            print(f" {key}: {lists}")
    elif multiple:
        print("Info Multiple Messages: " + ", ".join(f"[{key}: {len(lists)}]" for key, lists in multiple))
    print()
    print(f"{'Name (multi id, message size in bytes)':<41} {'number of data points':7}, {'total bytes':10}")
    for data in sorted(ulog.data_list, key=lambda data: data.name + str(data.multi_id)):
        size = sum(ULog.get_field_size(field.type_str) for field in data.field_data)
        rows = len(data.data["timestamp"])
        name = f"{data.name} ({data.multi_id}, {size})"
        print(f" {name:<40} {rows:7d} {size * rows:10d}")


def _show_message(ulog: ULog, message: str, newline: bool) -> None:
    """Prints all values of one multi info message."""
    separator = "\n" if newline else ""
    if message not in ulog.msg_info_multiple_dict:
        print(f"message {message} not found")
    for index, parts in enumerate(ulog.msg_info_multiple_dict.get(message, [])):
        if parts and isinstance(parts[0], bytes):
            print(f"# {message} {index} (len: {sum(map(len, parts))}):")
            print(separator.join(part.hex(" ") for part in parts))
        else:
            print(f"# {message} {index}:")
            print(separator.join(parts))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Display information from an ULog file")
    parser.add_argument("filename", metavar="file.ulg", help="ULog input file")
    parser.add_argument("-v", "--verbose", action="store_true", help="Verbose output")
    parser.add_argument("-m", "--message", help="Show a specific Info Multiple Message")
    parser.add_argument(
        "-n", "--newline", action="store_true", help="Add newline separators (only with --message)"
    )
    parser.add_argument("-i", "--ignore", action="store_true", help="Ignore string parsing exceptions")
    args = parser.parse_args()
    ulog = ULog(args.filename, None, args.ignore)
    if args.message:
        _show_message(ulog, args.message, args.newline)
    else:
        show_info(ulog, args.verbose)


if __name__ == "__main__":
    main()
