"""Imports optional libraries, such as polars, pandas and pyarrow, only when a function needs them.
"""

from __future__ import annotations

import importlib
from typing import Any

EXTRAS = {
    "deltalake": "lake",
    "duckdb": "duckdb",
    "numpy": "numpy",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "arrow",
    "rerun": "rerun",
    "simplekml": "kml",
    "yaml": "rosbag",
}
"""For each library, the extra of this package that installs it. Engines such as pyspark have no
extra.
"""

PACKAGES = {"rerun": "rerun-sdk", "yaml": "pyyaml"}
"""For each library whose package has another name, the name of the package."""


class MissingLibrary(ModuleNotFoundError):
    """An optional library is not installed. The message contains the command that installs it."""


def require(name: str) -> Any:
    """Imports and returns the module `name`. Raises MissingLibrary if its library is not
    installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        library = name.partition(".")[0]
        # If an installed library lacks one of its own dependencies, installing the library again
        # does not help. The original error names the missing module.
        if error.name is None or error.name.partition(".")[0] != library:
            raise
        how = f"pip install {PACKAGES.get(library, library)}"
        if library in EXTRAS:
            how = f"pip install 'rovelog[{EXTRAS[library]}]', or {how}"
        raise MissingLibrary(f"{library} is not installed\n  next: {how}", name=library) from None
