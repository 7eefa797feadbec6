"""Packs of a lake made by the workers of Spark or Sail."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rovelog import _core
from rovelog._need import need


def answers(batches: Iterable[Any]) -> Iterator[Any]:
    """Does the tasks in the first column; on workers."""
    import pyarrow as pa

    for batch in batches:
        found = [_core.lake_answer(task) for task in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_pydict({"answer": pa.array(found, pa.string())})


def caller(spark: Any) -> Callable[[str], str]:
    """Returns a function that has a task done by a worker of the session. The engine tries it again
    if its worker ends."""

    def call(task: str) -> str:
        [row] = spark.createDataFrame([(task,)], "task string").mapInArrow(answers, "answer string").collect()
        answer: str = row.answer
        return answer

    return call


@contextlib.contextmanager
def session(engine: str) -> Iterator[Any]:
    """A session of `spark`, as its own settings and `spark-submit` describe it, or of `sail` in this process."""
    # Workers run the same interpreter, with the same package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = need("pyspark.sql").SparkSession.builder
    if engine == "spark":
        spark = builder.appName("rovelog ingest").getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
        return
    server = need("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    try:
        spark = builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
    finally:
        server.stop()
