"""Texts of PX4 events, with the API of pyulog."""

from __future__ import annotations

import json
import lzma
import urllib.request
from collections.abc import Callable
from typing import Any

from rovelog.compat.pyulog.core import ULog
from rovelog.compat.pyulog.libevents_parse.parser import Parser

LEVELS = (
    "EMERGENCY",
    "ALERT",
    "CRITICAL",
    "ERROR",
    "WARNING",
    "NOTICE",
    "INFO",
    "DEBUG",
)
TIMEOUT_S = 4
"""Timeout of the download in seconds."""


class PX4Events:
    """Texts of the events in a log.

    The event definitions are in the log. For a log without them, those of the main branch of PX4
    are downloaded, as in pyulog.
    """

    DEFAULT_EVENTS_URL = "https://px4-travis.s3.amazonaws.com/Firmware/master/_general/all_events.json.xz"

    def __init__(self) -> None:
        self._events_profile = "dev"
        self._default_parser: Parser | None = None
        self._get_default_json_def_cb: Callable[[bool], Any | None] = self._get_default_json_definitions

    @staticmethod
    def _get_default_json_definitions(already_has_default_parser: bool) -> Any | None:
        if already_has_default_parser:
            return None
        with urllib.request.urlopen(PX4Events.DEFAULT_EVENTS_URL, timeout=TIMEOUT_S) as response:
            return json.loads(lzma.decompress(response.read()))

    def set_default_json_definitions_cb(self, default_json_definitions_cb: Callable[[bool], Any | None]) -> None:
        """Sets the callback that returns the definitions for logs without definitions.

        The callback is called with True if it has returned definitions before, and may then return
        None.
        """
        self._get_default_json_def_cb = default_json_definitions_cb

    def _parser(self, definitions: Any) -> Parser:
        parser = Parser()
        parser.load_definitions(definitions)
        parser.set_profile(self._events_profile)
        return parser

    def _get_event_parser(self, ulog: ULog) -> Parser | None:
        stored = ulog.msg_info_multiple_dict.get("metadata_events")
        digest = ulog.msg_info_dict.get("metadata_events_sha256")
        if stored is not None and digest is not None and len(digest) <= 64 and digest.isalnum():
            return self._parser(json.loads(lzma.decompress(b"".join(stored[0]))))
        definitions = self._get_default_json_def_cb(self._default_parser is not None)
        if definitions is not None:
            self._default_parser = self._parser(definitions)
        return self._default_parser

    def get_logged_events(self, ulog: ULog) -> list[tuple[int, str, str]]:
        """Returns the events as (timestamp in us, level, text).

        Events with a definition are included if their group is `default`. Events without a
        definition have a text with their id.
        """
        try:
            data = ulog.get_dataset("event").data
        except (KeyError, IndexError, ValueError):
            return []
        if any(name not in data for name in ("timestamp", "id", "log_levels")):
            return []
        try:
            parser = self._get_event_parser(ulog)
        except Exception as error:
            # The callback is code of the user and may raise any exception.
            print(f"Failed to get event parser: {error}")
            return []
        width = sum(name.startswith("arguments[") for name in data)
        arguments = [data[f"arguments[{index}]"] for index in range(width)]
        found = []
        for row, (time, number, levels) in enumerate(zip(data["timestamp"], data["id"], data["log_levels"], strict=True)):
            # The upper four bits are the internal level, the lower four bits the external one.
            level = int(levels) >> 4 & 0xF
            if level >= len(LEVELS):
                continue
            event = parser and parser.parse(int(number), bytes(int(column[row]) for column in arguments))
            if not event:
                found.append((time, LEVELS[level], f"[Unknown event with ID {number}]"))
            elif event.group() == "default":
                found.append((time, LEVELS[level], event.message()))
        return found


__all__ = ["PX4Events"]
