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
"""Library -> extra of this package that installs it."""

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
        package = PACKAGES.get(library, library)
        text = f"{library} is not installed\n  next: pip install 'rovelog[{EXTRAS[library]}]', or pip install {package}"
        raise MissingLibrary(text, name=library) from None
