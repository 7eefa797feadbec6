"""The program `ulog_migratedb`: migrates a database of `DatabaseULog` to the current schema
version.
"""

from __future__ import annotations

import argparse
import os

from rovelog.compat.pyulog import _schema
from rovelog.compat.pyulog.db import DatabaseULog


def _version(db_path: str, force: bool) -> int:
    """Returns the schema version of a database; 0 for a new one."""
    if not os.path.isfile(db_path):
        print(f"Database file {db_path} not found, creating it from scratch.")
        return 0
    print(f"Found database file {db_path}.")
    version = DatabaseULog.schema_version(DatabaseULog.get_db_handle(db_path))
    if version == 0 and not force:
        raise FileExistsError(
            f"{db_path} has user_version = 0: another program made it. Migrate anyway with force (-f)."
        )
    if version < 0:
        raise ValueError(f"Invalid database schema version {version}.")
    return version


def _script(sql_dir: str, number: int) -> str:
    """Returns the script `pyulog.NUMBER.sql` in a folder. Raises ValueError if it is not one
    transaction.
    """
    name = os.path.join(sql_dir, f"pyulog.{number}.sql")
    if not os.path.exists(name):
        raise FileNotFoundError(f"Migration file {name} does not exist. Stopped after migration {number - 1}.")
    with open(name, encoding="utf8") as file:
        script = file.read().strip()
    if not script.startswith("BEGIN;"):
        raise ValueError(f'Migration file {name} must start with "BEGIN;"')
    if not script.endswith("COMMIT;"):
        raise ValueError(f'Migration file {name} must end with "COMMIT;"')
    return f"{script}\nPRAGMA user_version = {number};"


def migrate_db(db_path: str, sql_dir: str | None = None, noop: bool = False, force: bool = False) -> str:
    """Runs the migrations from the version of a database to the current one. Returns the path of
    the database.

    - `sql_dir`: folder with scripts to run instead of the built-in migrations
    - `noop`: prints the scripts and does not run them
    - `force`: accepts a database without a version
    """
    if sql_dir is not None and not os.path.isdir(sql_dir):
        raise NotADirectoryError(f"{sql_dir} is not a directory.")
    version = _version(db_path, force)
    print(f"Current schema version: {version} (database) and {DatabaseULog.SCHEMA_VERSION} (code).")
    connection = DatabaseULog.get_db_handle(db_path)()
    try:
        for number in range(version + 1, DatabaseULog.SCHEMA_VERSION + 1):
            script = _schema.migration(number) if sql_dir is None else _script(sql_dir, number)
            print(f"Migration {number}.")
            if noop:
                print(script)
            else:
                connection.executescript(script)
    finally:
        # If a script failed, closing the connection rolls back its transaction.
        connection.close()
    print("Migration done.")
    return db_path


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Setup the database for DatabaseULog")
    parser.add_argument("-d", "--database", help="Path to the database file", default="pyulog.sqlite3")
    parser.add_argument(
        "-n", "--noop", action="store_true", help="Only print results, do not execute migration scripts."
    )
    parser.add_argument("-s", "--sql", help="Directory with migration SQL files", default=None)
    parser.add_argument(
        "-f",
        "--force",
        action="store_true",
        help="Run the migration script even if the database is not created with this script.",
    )
    args = parser.parse_args()
    migrate_db(args.database, sql_dir=args.sql, noop=args.noop, force=args.force)


if __name__ == "__main__":
    main()
