"""The data source for Spark and Sail, compared with the results of the package itself."""

import collections
import datetime
import os
import shutil
import signal
import time

import pytest
import rovelog
from conftest import ENGINE, ROOT
from pyspark.sql import functions as F
from rovelog.spark import RovelogSource, RovelogStream


@pytest.fixture(scope="session")
def topic(logs):
    """Returns the topic that most logs have with the same columns."""
    found = collections.Counter()
    for path in logs.iterdir():
        with rovelog.open(path) as log:
            found.update({name.split("/")[0] for name, topic in log.topics.items() if topic.count})
    return found.most_common(1)[0][0]


@pytest.fixture(scope="session")
def expected(logs, topic):
    """Returns rows by log and instance."""
    rows = {}
    for path in logs.iterdir():
        with rovelog.open(path) as log:
            for name, known in log.topics.items():
                base, _, instance = name.partition("/")
                if base == topic and known.count and "#" not in name:
                    times = known.table("t_ns") if "t_ns" in known.fields else known.select().to_arrow()
                    rows[str(path), int(instance)] = times.column("t_ns").to_pylist()
    return rows


def frame(spark, logs, topic, **options):
    return spark.read.format("rovelog").options(topic=topic, targetBytes="100000", **options).load(str(logs))


def test_every_row_is_returned_once(spark, logs, topic, expected):
    rows = frame(spark, logs, topic).select("log", "instance", "seq", "t_ns").collect()
    found = collections.defaultdict(dict)
    for row in rows:
        assert row.seq not in found[row.log, row.instance]
        found[row.log, row.instance][row.seq] = row.t_ns
    assert {key: [rows[i] for i in range(len(rows))] for key, rows in found.items()} == expected


def test_filters_choose_logs_topics_and_times(spark, logs, topic, expected):
    every = frame(spark, logs, topic)
    (path, instance), times = max(expected.items(), key=lambda item: len(item[1]))
    assert every.where(F.col("log") == path).where(F.col("instance") == instance).count() == len(times)
    known = sorted(t for t in times if t is not None)
    middle = known[len(known) // 2]
    of_all = [t for times in expected.values() for t in times if t is not None]
    assert every.where(F.col("t_ns") >= middle).count() == sum(t >= middle for t in of_all)
    assert every.where(F.col("t_ns") < middle).count() == sum(t < middle for t in of_all)
    assert every.where(F.col("topic") == topic).count() == sum(map(len, expected.values()))
    assert every.where(F.col("topic") == "no_such_topic").count() == 0


def test_filters_reach_the_plan(logs, topic, expected):
    """Checks the functions that an engine calls, without an engine."""
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, StringContains

    source = RovelogSource({"path": str(logs), "topic": topic, "targetBytes": "100000"})
    schema = source.schema()
    every = len(source.reader(schema).partitions())
    reader = source.reader(schema)
    path = next(iter(expected))[0]
    other = StringContains(("log",), "x")
    left = list(reader.pushFilters([EqualTo(("log",), path), GreaterThanOrEqual(("t_ns",), 7), other]))
    assert left == [other], "what the source does not do is the engine's"
    partitions = reader.partitions()
    assert len(partitions) == 1 < every
    assert '"start_ns":7' in partitions[0].value and path.rsplit("/", 1)[1] in partitions[0].value


def test_filters_on_utc_after_the_clock_was_set_back(spark):
    every = spark.read.format("rovelog").load(str(ROOT / "corpus/rld/clock-step-back.rld"))
    times = [row.time for row in every.select("time").collect()]
    # The first and the last row have times in the middle of all times.
    for at in (times[0], times[-1], times[7]):
        limit = F.lit(at.replace(tzinfo=datetime.timezone.utc))
        assert every.where(F.col("time") >= limit).count() == sum(time >= at for time in times)
        assert every.where(F.col("time") < limit).count() == sum(time < at for time in times)
        assert every.where(F.col("time") == limit).count() == 1


def test_fields_are_the_only_ones_that_are_decoded(spark, logs, topic):
    columns = frame(spark, logs, topic).columns
    field = next(name for name in columns if name not in ("log", "topic", "instance", "seq", "t_ns", "time"))
    only = frame(spark, logs, topic, fields=field)
    assert only.columns == ["log", "topic", "instance", "seq", "t_ns", "time", field]
    assert only.select(field).count() == frame(spark, logs, topic).count()


@pytest.mark.skipif(ENGINE == "sail", reason="Sail reads Python sources in batches only")
def test_a_stream_follows_a_folder(spark, logs, topic, expected, tmp_path):
    folder, out, marks = tmp_path / "in", tmp_path / "out", tmp_path / "marks"
    folder.mkdir()
    paths = sorted({path for path, _ in expected})
    schema = frame(spark, logs, topic).schema

    def run():
        stream = spark.readStream.format("rovelog").schema(schema).options(topic=topic, settle="0").load(str(folder))
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(marks)).trigger(availableNow=True)
        query.start(str(out)).awaitTermination(120)
        return spark.read.parquet(str(out)).count()

    half = len(paths) // 2
    for path in paths[:half]:
        shutil.copy2(path, folder)
        os.utime(folder / os.path.basename(path), (1e9, 1e9))
    counts = collections.Counter()
    for (path, _), times in expected.items():
        counts[path] += len(times)
    assert run() == sum(counts[path] for path in paths[:half])
    for path in paths[half:]:
        shutil.copy2(path, folder)
        # `rsync -a` and `unzip` keep the modification time of a log.
        os.utime(folder / os.path.basename(path), (0.5e9, 0.5e9))
    assert run() == sum(counts.values())
    assert run() == sum(counts.values()), "nothing is added twice"


def test_offsets_of_a_stream_never_decrease(logs, topic, tmp_path):
    """Calls the functions of the stream without an engine."""
    names = sorted(path.name for path in logs.iterdir())[:3]
    source = RovelogSource({"path": str(tmp_path), "topic": topic, "settle": "0"})

    def add(name):
        time.sleep(0.05)
        shutil.copy2(logs / name, tmp_path)
        os.utime(tmp_path / name, (1e9, 1e9))
        time.sleep(0.05)

    def read(stream, start):
        end = stream.latestOffset(start)
        found = [name for name in names for part in stream.partitions(start, end) if name in part.value]
        return found, end

    schema, stream = None, None
    end = RovelogStream.initialOffset(None)
    for name in reversed(names):
        add(name)
        schema = schema or source.schema()
        stream = source.streamReader(schema)
        found, end = read(stream, end)
        assert found == [name]
    # The last log is deleted, and a restarted stream continues after it.
    (tmp_path / names[0]).unlink()
    assert read(source.streamReader(schema), end) == ([], end)
    assert read(stream, end) == ([], end)
    # Spark 4.0 and 4.1 do not pass the previous offset.
    assert stream.latestOffset() == end


@pytest.mark.skipif(ENGINE == "sail", reason="Sail's workers are threads of this process")
def test_a_killed_executor_changes_nothing(spark, logs, topic, expected, tmp_path):
    """Kills the process that reads, in the first attempt of three tasks."""
    marks = tmp_path / "killed"
    marks.mkdir()

    def deadly(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for batch in batches:
            if context.attemptNumber() == 0 and len(os.listdir(marks)) < 3:
                (marks / str(context.partitionId())).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    every = frame(spark, logs, topic).select("log", "instance", "seq")
    rows = every.mapInArrow(deadly, every.schema).collect()
    assert len(list(marks.iterdir())) >= 3, "three processes were killed"
    assert len(rows) == len(set(rows)) == sum(map(len, expected.values()))
