"""Runs the tasks of an ingest on workers of Spark or Sail. A task converts a pack, which is a group
of logs.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rovelog import _core
from rovelog._optional import require


def answers(batches: Iterable[Any]) -> Iterator[Any]:
    """Runs the tasks in the first column of each batch, and yields their results. The engine calls
    this function on its workers.
    """
    import pyarrow as pa

    for batch in batches:
        found = [_core.lake_answer(task) for task in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_pydict({"answer": pa.array(found, pa.string())})


def caller(spark: Any) -> Callable[[str], str]:
    """Returns a function that runs one task on a worker of the session and returns its result.

    If the worker process is killed, the engine runs the task again on another worker.
    """

    def call(task: str) -> str:
        [row] = spark.createDataFrame([(task,)], "task string").mapInArrow(answers, "answer string").collect()
        answer: str = row.answer
        return answer

    return call


@contextlib.contextmanager
def session(engine: str) -> Iterator[Any]:
    """Context manager that returns a session of the engine. Spark uses its own settings and those
    of `spark-submit`. Sail runs in this process.
    """
    # By default, Spark starts `python3`, in which this package may not be installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = require("pyspark.sql").SparkSession.builder
    if engine == "spark":
        spark = builder.appName("rovelog ingest").getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
        return
    server = require("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    try:
        spark = builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
    finally:
        server.stop()
