"""The program `rosbag` with its commands info, filter, reindex, compress and decompress."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from rovelog._errors import DataLossWarning
from rovelog.compat.rosbag._errors import ROSBagException, ROSBagUnindexedException
from rovelog.compat.rosbag._index import Compression
from rovelog.compat.rosbag.bag import Bag


def _info(args: argparse.Namespace) -> None:
    for number, name in enumerate(args.bag):
        if number and not args.yaml:
            print("---")
        try:
            with Bag(name, "r", skip_index=not args.freq, allow_unindexed=True) as bag:
                print(bag._get_yaml_info(key=args.key) if args.yaml or args.key else bag)
        except (ROSBagException, OSError) as error:
            sys.exit(f"ERROR reading {name}: {error}")


def _filter(args: argparse.Namespace) -> None:
    # As in rosbag, the expression is Python code that the user of this program wrote.
    def compiled(expression: str) -> Any:
        return eval(f"lambda topic, m, t: {expression}")

    wanted = compiled(args.expression)
    format_line = compiled(args.print) if args.print else None
    if os.path.realpath(args.inbag) == os.path.realpath(args.outbag):
        sys.exit("Cannot use same file as input and output")
    try:
        with Bag(args.inbag) as bag, Bag(args.outbag, "w") as out:
            rows = zip(bag.read_messages(), bag.read_messages(raw=True, return_connection_header=True), strict=True)
            for (topic, message, time), row in rows:
                if not wanted(topic, message, time):
                    if format_line is not None:
                        print("NO MATCH", format_line(topic, message, time))
                    continue
                if format_line is not None:
                    print("MATCH", format_line(topic, message, time))
                out.write(topic, row.message, time, raw=True, connection_header=row.connection_header)
    except ROSBagUnindexedException:
        sys.exit(f"ERROR bag unindexed: {args.inbag}.  Run rosbag reindex.")


def _in_place(args: argparse.Namespace, ending: str, work: Any) -> None:
    """Calls `work` with the path of a backup copy and the path of each bag, which `work`
    rewrites.
    """
    for name in args.bag:
        base, extension = os.path.splitext(name)
        original = f"{base}.{ending}{extension}"
        if os.path.exists(original) and not args.force:
            sys.exit(f"Skipping {name}. Backup path {original} already exists.")
        shutil.copyfile(name, original)
        work(original, name)


def _reindex(args: argparse.Namespace) -> None:
    def work(original: str, name: str) -> None:
        with Bag(name, "a", allow_unindexed=True) as bag:
            for _ in bag.reindex():
                pass

    _in_place(args, "orig", work)


@contextlib.contextmanager
def _report_losses() -> Iterator[None]:
    """Context manager that prints the losses in the bags. If there are any, the exit code is 3."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataLossWarning)
        yield
    losses = [warning.message for warning in caught if issubclass(warning.category, DataLossWarning)]
    for loss in losses:
        print(f"warning: {loss}", file=sys.stderr)
    if losses:
        sys.exit(3)


def _copy(compression: str, original: str, name: str) -> None:
    with Bag(original) as bag, Bag(name, "w", compression=compression) as out:
        for topic, message, time, header in bag.read_messages(raw=True, return_connection_header=True):
            out.write(topic, message, time, raw=True, connection_header=header)


def _compress(args: argparse.Namespace) -> None:
    compression = Compression.LZ4 if args.lz4 else Compression.BZ2
    _in_place(args, "orig", lambda original, name: _copy(compression, original, name))


def _decompress(args: argparse.Namespace) -> None:
    _in_place(args, "orig", lambda original, name: _copy(Compression.NONE, original, name))


def rosbagmain(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="rosbag", description="Works with bags")
    commands = parser.add_subparsers(required=True)
    info = commands.add_parser("info", help="summarize bags")
    info.add_argument("bag", nargs="+")
    info.add_argument("-y", "--yaml", action="store_true", help="print information in YAML format")
    info.add_argument("-k", "--key", help="print information on the given key")
    info.add_argument("--freq", action="store_true", help="display topic message frequency statistics")
    info.set_defaults(run=_info)
    chosen = commands.add_parser("filter", help="copy the messages for which an expression is true")
    chosen.add_argument("inbag")
    chosen.add_argument("outbag")
    chosen.add_argument("expression", help="Python, with topic, m (the message) and t (its time)")
    chosen.add_argument("-p", "--print", metavar="EXPRESSION", help="what to print of each message")
    chosen.set_defaults(run=_filter)
    for name, run, words in (
        ("reindex", _reindex, "make the index of bags that were not closed"),
        ("compress", _compress, "compress bags"),
        ("decompress", _decompress, "decompress bags"),
    ):
        command = commands.add_parser(name, help=words)
        command.add_argument("bag", nargs="+")
        command.add_argument("-f", "--force", action="store_true", help="replace the copy of the original")
        if name == "compress":
            command.add_argument("-j", "--bz2", action="store_true", help="use BZ2 (the default)")
            command.add_argument("--lz4", action="store_true", help="use LZ4")
        command.set_defaults(run=run)
    # As in rosbag, `argv` includes the name of the program.
    args = parser.parse_args(None if argv is None else argv[1:])
    with _report_losses():
        args.run(args)


if __name__ == "__main__":
    rosbagmain()
