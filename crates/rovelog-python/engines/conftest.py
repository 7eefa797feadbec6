"""Session of the engine that ROVELOG_ENGINE names, `spark` or `sail`. All tests share it, because a
JVM starts slowly.
"""

import os
import pathlib
import shutil
import sys

import pytest
import rovelog

ENGINE = os.environ.get("ROVELOG_ENGINE", "spark")
ROOT = pathlib.Path(__file__).parents[3]
# Helpers of the other tests create the logs.
sys.path.append(str(ROOT / "crates/rovelog-python/tests"))


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    # Workers must run this interpreter, which has the package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    server = None
    if ENGINE == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        _, port = server.listening_address
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    else:
        builder = SparkSession.builder.master(os.environ.get("ROVELOG_MASTER", "local-cluster[2,1,900]"))
        for key, value in {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "900m",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.python.filterPushdown.enabled": "true",
        }.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    from rovelog.spark import RovelogSource

    session.dataSource.register(RovelogSource)
    yield session
    session.stop()
    if server is not None:
        server.stop()


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    """ULogs with one common topic and other topics."""
    folder = tmp_path_factory.mktemp("logs")
    for path in sorted((ROOT / "corpus/ulog").glob("*.ulg")):
        try:
            with rovelog.open(path) as log:
                if any(topic.count for topic in log.topics.values()):
                    shutil.copy(path, folder)
        except rovelog.RovelogError:
            pass
    return folder
