"""The program `ulog_messages`: prints the console messages and events of a ULog, in the format of
pyulog.
"""

from __future__ import annotations

import argparse

from rovelog.compat.pyulog.core import ULog
from rovelog.compat.pyulog.px4_events import PX4Events


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Display logged messages from an ULog file")
    parser.add_argument("filename", metavar="file.ulg", help="ULog input file")
    parser.add_argument("-i", "--ignore", action="store_true", help="Ignore string parsing exceptions")
    args = parser.parse_args()
    ulog = ULog(args.filename, ["event"], args.ignore)
    lines = [(text.timestamp, text.log_level_str(), text.message) for text in ulog.logged_messages]
    if ulog.msg_info_dict.get("sys_name", "") == "PX4":
        # PX4 adds a tab to messages that are also logged as an event.
        events = PX4Events().get_logged_events(ulog)
        lines = sorted(events + [line for line in lines if line[2][-1:] != "\t"], key=lambda line: line[0])
    for time, level, text in lines:
        seconds, milliseconds = divmod(int(time / 1000), 1000)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        print(f"{hours:d}:{minutes:02d}:{seconds:02d}.{milliseconds:03d} {level}: {text}")


if __name__ == "__main__":
    main()
