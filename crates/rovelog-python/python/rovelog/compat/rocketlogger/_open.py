"""Opens all files of a recording, with the errors and warnings of rocketlogger.

A recording of several files consists of `x.rld`, `x_p1.rld`, `x_p2.rld`, and so on.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from rovelog import _core
from rovelog._errors import RovelogError
from rovelog.compat.rocketlogger import _headers
from rovelog.compat.rocketlogger._errors import RocketLoggerDataError, RocketLoggerDataWarning, RocketLoggerFileError


def excluded_parts(exclude_part: int | Iterable[int] | None) -> set[int]:
    """Returns the numbers of the files that are not read."""
    if exclude_part is None:
        return set()
    if isinstance(exclude_part, int):
        return {exclude_part}
    if isinstance(exclude_part, (list, np.ndarray)):
        return {int(part) for part in exclude_part}
    raise ValueError("invalid exclude_part: accepting integer, a list of integers or an integer Numpy array.")


def parts(path: str, join_files: bool, excluded: set[int]) -> Iterator[str]:
    """Yields the paths of the files of a recording, without the excluded ones."""
    base, extension = os.path.splitext(path)
    number = 0
    while number in excluded or os.path.isfile(name := path if number == 0 else f"{base}_p{number}{extension}"):
        if number not in excluded:
            yield name
        number += 1
        if not join_files:
            return


def check_headers(names: list[str], stacklevel: int) -> None:
    """Raises exceptions and issues warnings for inconsistent headers."""
    first: _headers.LeadIn | None = None
    for name in names:
        head = _headers.lead_in(name)
        if head is None:
            # The reader raises an exception with the detected file type.
            continue
        if head.file_version not in _headers.VERSIONS:
            raise RocketLoggerFileError(f"Unsupported RocketLogger data file version {head.file_version}. ({name})")
        if head.comment_length % 4:
            text = f"comment length unaligned {head.comment_length}."
            warnings.warn(RocketLoggerDataWarning(text), stacklevel=stacklevel)
        wrong = _headers.contradiction(head) or (_headers.misplaced(head) if first is None else None)
        if wrong is not None:
            raise RocketLoggerFileError(f"{wrong} ({name})")
        if first is not None and (field := _headers.difference(first, head)) is not None:
            raise RocketLoggerDataError(f"File header not matching at field: {field} ({name})")
        first = first or head


class CompleteBlocks(NamedTuple):
    """The complete blocks of truncated files, as ranges of rows and of blocks, one per file."""

    rows: list[slice]
    blocks: list[slice]


def check_lengths(names: list[str], recovery: bool, stacklevel: int) -> CompleteBlocks | None:
    """Raises an exception for files whose size does not follow from their header.

    With `recovery`, issues a warning instead, and returns the complete blocks. Returns None if all
    rows are in complete blocks. rocketlogger drops the rows of an incomplete block, although the
    reader returns them.
    """
    kept, row, block, cut = CompleteBlocks([], []), 0, 0, False
    for name in names:
        head = _headers.lead_in(name)
        if head is None:
            return None
        found = _headers.blocks(name, head)
        size = head.data_block_size
        rows, complete, in_reader = head.sample_count, -(-head.sample_count // size), head.sample_count
        if not found.expected:
            missing = head.data_block_count - found.complete
            if not recovery:
                raise RocketLoggerDataError(
                    "corrupt data: file size and header info mismatch, "
                    f"or {missing} truncated data blocks at the file end. ({name})"
                )
            text = (
                f"corrupt data: recovered {found.complete} data blocks, "
                f"truncating {missing} incomplete data blocks. ({name}; rovelog.open reads all complete rows)"
            )
            warnings.warn(RocketLoggerDataWarning(text), stacklevel=stacklevel)
            rows, complete, in_reader = found.complete * size, found.complete, found.rows
        kept.rows.append(slice(row, row + rows))
        kept.blocks.append(slice(block, block + complete))
        row += in_reader
        block += -(-in_reader // size)
        cut = cut or rows < in_reader
    return kept if cut else None


def open_parts(path: str, names: list[str], join_files: bool, excluded: set[int]) -> _core.Reader:
    """Opens the files of a recording as one log."""
    if not names:
        raise RocketLoggerDataError(f"Could not load valid data from '{path}' and current import configuration.")
    # Files of ambient sensors are named `x-ambient.rld`. The reader would open them as companions
    # of `x.rld`, so they are joined explicitly.
    apart = join_files and os.path.splitext(path)[0].endswith("-ambient")
    try:
        reader = _core.rld_join(names) if excluded or apart else _core.Reader.open(path, alone=not join_files)
    except RovelogError as error:
        raise RocketLoggerFileError(_headers.not_a_log(names[0]) or str(error)) from error
    if reader.info()["format"] != "rld":
        raise RocketLoggerFileError(_headers.not_a_log(path) or f"Invalid RocketLogger data file: {path}")
    return reader
