"""Sensor logs as Arrow, polars, pandas and numpy; damaged ones included, nothing lost silently.

    import rovelog as rl

    log = rl.open("flight.ulg")                  # looks at headers only
    print(log, log.topics, log.problems)         # what it is, what it holds, what is wrong with it
    log["vehicle_attitude"].fields               # names, types, units
    log["vehicle_attitude"].to_polars()          # one topic as a data frame; to_pandas(), to_arrow(), numpy()
    for m in log.messages(["battery_status"]):   # records in the order of time
        print(m.t_ns, m["voltage_v"])
    rl.convert(log, "flight.mcap")               # also Parquet, Arrow, CSV, NDJSON; log.slice() makes a part of the log
    rl.recover("damaged.ulg", "sound.ulg")       # the best sound log that a damaged one still holds

Times are integers: nanoseconds of the log's own clock (`t_ns`), and UTC (`time`) where the log tells how its clock
stands to it. Damage is no error: what could not be read is in `log.problems`, with the bytes it is about. Errors are
`RovelogError`s, which say what to do next. help(rl.Log) and help(rl.Topic) have the rest.
"""

from rovelog._bag import Connection
from rovelog._convert import Converted, Loss, convert
from rovelog._core import Message, Messages, __version__
from rovelog._errors import (
    CorruptError,
    DataLossWarning,
    FieldNotFound,
    MissingFileError,
    NameNotFound,
    NotALogError,
    NoUtcError,
    ReadError,
    RovelogError,
    TopicNotFound,
    UnreadableError,
    UnsupportedError,
)
from rovelog._facts import Field, Info, Outside, Problem, Text
from rovelog._log import Log, open
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
    "Field",
    "FieldNotFound",
    "Image",
    "Info",
    "Log",
    "Loss",
    "Message",
    "Messages",
    "MissingFileError",
    "ModeChange",
    "NameNotFound",
    "NoUtcError",
    "NotALogError",
    "Outside",
    "ParameterChange",
    "Problem",
    "ReadError",
    "RovelogError",
    "Table",
    "Text",
    "Topic",
    "TopicNotFound",
    "UnreadableError",
    "UnsupportedError",
    "__version__",
    "convert",
    "diff",
    "formats",
    "open",
    "recover",
    "scan",
]
