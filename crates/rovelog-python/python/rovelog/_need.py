"""Libraries that the package uses if they are installed."""

from __future__ import annotations

import importlib
from typing import Any

EXTRAS = {
    "deltalake": "lake",
    "numpy": "numpy",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "arrow",
    "rerun": "rerun",
    "simplekml": "kml",
    "yaml": "rosbag",
}
"""Library -> extra of this package that installs it; engines, such as pyspark, come with none."""

PACKAGES = {"rerun": "rerun-sdk", "yaml": "pyyaml"}
"""Library -> package that contains it, if the names differ."""


class MissingLibrary(ModuleNotFoundError):
    """An optional library is not installed; the text says how to install it."""


def need(name: str) -> Any:
    """Returns an optional library. Raises MissingLibrary, a ModuleNotFoundError, if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        library = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != library:
            raise
        how = f"pip install {PACKAGES.get(library, library)}"
        if library in EXTRAS:
            how = f"pip install 'rovelog[{EXTRAS[library]}]', or {how}"
        raise MissingLibrary(f"{library} is not installed\n  next: {how}", name=library) from None
