"""SQL queries over the topics of logs, which DuckDB runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rovelog._errors import UnsupportedError
from rovelog._optional import require
from rovelog._suggest import short_name

if TYPE_CHECKING:
    import duckdb

    from rovelog._log import Log
    from rovelog._topic import Topic

Params = Sequence[Any] | Mapping[str, Any] | None
"""Values of `?` or `$name` in a query."""


def query(log: Log, text: str, params: Params) -> duckdb.DuckDBPyRelation:
    """Runs a query. Each topic whose name occurs in its text becomes a table with this name."""
    return run(text, params, {name: topic.dataset() for name, topic in used_topics(log, text).items()})


def used_topics(log: Log, text: str) -> dict[str, Topic]:
    """Returns the topics with records whose name occurs in the text of a query."""
    # A topic that is only mentioned in a string costs time, but does no harm.
    found = {short_name(topic.name): topic for topic in log.topics.values() if topic.count}
    used = {name: topic for name, topic in found.items() if name.lower() in text.lower()}
    # DuckDB ignores the case of names.
    if len({name.lower() for name in used}) < len(used):
        raise UnsupportedError(f"topics differ only in the case of their names, which SQL ignores: {', '.join(used)}")
    return used


def run(text: str, params: Params, tables: Mapping[str, object]) -> duckdb.DuckDBPyRelation:
    """Runs a query over these datasets or frames."""
    connection = require("duckdb").connect()
    for name, table in tables.items():
        connection.register(name, table)
    relation: duckdb.DuckDBPyRelation = connection.sql(text, params=params)
    return relation
