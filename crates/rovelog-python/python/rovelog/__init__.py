"""Reads sensor logs as Arrow, polars, pandas and numpy, including damaged logs.

    import rovelog as rl

    log = rl.open("flight.ulg")                  # reads headers only
    print(log, log.topics, log.problems)         # summary, topics, problems
    log["vehicle_attitude"].fields               # names, types, units
    log["vehicle_attitude"].to_polars()          # also to_pandas(), to_arrow(), numpy()
    for m in log.messages(["battery_status"]):   # records in time order
        print(m.t_ns, m["voltage_v"])
    rl.convert(log, "flight.mcap")               # also Parquet, Arrow, CSV, NDJSON
    rl.recover("damaged.ulg", "fixed.ulg")       # every intact record of a damaged log

Times are integers in nanoseconds on the log clock (`t_ns`). If the log has UTC, tables also have a
column `time`. Damage is not an error: bytes that could not be read are listed in `log.problems`.
Errors are subclasses of `RovelogError`, and their messages tell what to do next. See also
help(rl.Log) and help(rl.Topic).
"""

from rovelog._align import Occurrence
from rovelog._ros_arrays import cloud, image
from rovelog._bag import Connection
from rovelog._convert import Converted, Loss, convert
from rovelog._core import Message, Messages, __version__
from rovelog._errors import (
    CorruptError,
    DataLossWarning,
    FieldNotFound,
    MissingFileError,
    MissingFolderError,
    NameNotFound,
    NotALogError,
    NoUtcError,
    ReadError,
    RovelogError,
    TopicNotFound,
    UnreadableError,
    UnreadLogWarning,
    UnsupportedError,
    WriteError,
)
from rovelog._findings import Evidence, Finding
from rovelog._metadata import Field, Info, Outside, Problem, Text, TopicHealth
from rovelog._log import Log, open
from rovelog._logs import Logs, logs
from rovelog._optional import MissingLibrary
from rovelog._plot import Plot
from rovelog._rld import Current, Energy
from rovelog._scan import scan
from rovelog._table import Table
from rovelog._tools import diff, formats, recover
from rovelog._topic import Topic
from rovelog._ulog import Dropout, Event, ModeChange, ParameterChange
from rovelog._vel import Image

__all__ = [
    "Connection",
    "Converted",
    "CorruptError",
    "Current",
    "DataLossWarning",
    "Dropout",
    "Energy",
    "Event",
    "Evidence",
    "Field",
    "FieldNotFound",
    "Finding",
    "Image",
    "Info",
    "Log",
    "Logs",
    "Loss",
    "Message",
    "Messages",
    "MissingFileError",
    "MissingFolderError",
    "MissingLibrary",
    "ModeChange",
    "NameNotFound",
    "NoUtcError",
    "NotALogError",
    "Occurrence",
    "Outside",
    "ParameterChange",
    "Plot",
    "Problem",
    "ReadError",
    "RovelogError",
    "Table",
    "Text",
    "Topic",
    "TopicHealth",
    "TopicNotFound",
    "UnreadLogWarning",
    "UnreadableError",
    "UnsupportedError",
    "WriteError",
    "__version__",
    "cloud",
    "convert",
    "diff",
    "formats",
    "image",
    "logs",
    "open",
    "recover",
    "scan",
]
