"""SQL queries over the topics of a log, which DuckDB runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rovelog._optional import require
from rovelog._suggest import short_name

if TYPE_CHECKING:
    import duckdb

    from rovelog._log import Log


def query(log: Log, text: str, params: Sequence[Any] | Mapping[str, Any] | None) -> duckdb.DuckDBPyRelation:
    """Runs a query. Each topic whose name occurs in its text becomes a table with this name."""
    connection = require("duckdb").connect()
    for topic in log.topics.values():
        name = short_name(topic.name)
        # DuckDB ignores the case of names. A topic that is only mentioned in a string costs time,
        # but does no harm.
        if topic.count and name.lower() in text.lower():
            connection.register(name, topic.dataset())
    relation: duckdb.DuckDBPyRelation = connection.sql(text, params=params)
    return relation
