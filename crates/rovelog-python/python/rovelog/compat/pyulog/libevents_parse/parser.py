"""Parser for PX4 events, with the API of the parser in pyulog.

The format of texts is described in the events interface of MAVLink, see "Message formatting". A
text can contain:

- escaped characters: `\\<` is `<`
- tags: `<profile name="dev">`, `<a href="URL">`, `<param>`. Other tags are removed with their
  content.
- arguments: `{1}`, or `{2:.1m/s}` for one decimal and a unit

For example, `Battery at {1:.1}%` with the argument 12.34 gives `Battery at 12.3%`.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from typing import Any

BASE_TYPES = {
    "uint8_t": "B",
    "int8_t": "b",
    "uint16_t": "H",
    "int16_t": "h",
    "uint32_t": "I",
    "int32_t": "i",
    "uint64_t": "Q",
    "int64_t": "q",
    "float": "f",
}
TAG = re.compile(r'<([a-z]+)(?: ([a-z]+)="([^"]*)")?>(?=.)', re.DOTALL)
ARGUMENT = re.compile(r"\{(\d+)(?::(?:\.(\d+))?)?(m|m_v|m/s|m\^2|C)?\}")


class ParserException(Exception):
    """The definitions have an unsupported version."""


class ParsedEvent:
    """An event with its definition."""

    def __init__(self, parser: Parser, event: dict[str, Any], group: str, namespace: str, number: int, data: bytes) -> None:
        self._parser = parser
        self._event = event
        self._group = group
        self._namespace = namespace
        self._id = number
        self._values: list[tuple[Any, dict[str, Any] | None]] = []
        at = 0
        for argument in event.get("arguments", []):
            kind, enum = argument["type"], None
            if kind not in BASE_TYPES:
                enum = parser.enum(kind if "::" in kind else f"{namespace}::{kind}")
                kind = enum["type"]
            code = "<" + BASE_TYPES[kind]
            (value,) = struct.unpack_from(code, data, at)
            at += struct.calcsize(code)
            self._values.append((value, enum))

    def event_id(self) -> int:
        """Id of the event."""
        return self._id

    def name(self) -> str:
        """Name of the event in the firmware."""
        return str(self._event["name"])

    def namespace(self) -> str:
        """Namespace of the component: `px4`."""
        return self._namespace

    def message(self) -> str:
        """Short text."""
        return self._text(self._event["message"])

    def description(self) -> str:
        """Long text; empty if there is none."""
        return self._text(self._event["description"]) if "description" in self._event else ""

    def type(self) -> str:
        """Type of the event; empty for most."""
        return str(self._event.get("type", ""))

    def group(self) -> str:
        """Group: `default`, `health`."""
        return self._group

    def num_arguments(self) -> int:
        """Number of arguments."""
        return len(self._values)

    def argument_value(self, idx: int) -> Any:
        """Value of an argument as a number."""
        return self._values[idx][0]

    def argument_enum(self, idx: int) -> dict[str, Any] | None:
        """Enumeration of an argument, if it has one."""
        return self._values[idx][1]

    def argument_display_value(self, idx: int) -> Any:
        """Value of an argument, as text if it has an enumeration."""
        value, enum = self._values[idx]
        if enum is None:
            return value
        names = {int(number): entry["description"] for number, entry in enum["entries"].items()}
        unknown = f"(unknown: {value})"
        if not enum.get("is_bitfield", False):
            return names.get(value, unknown)
        bits = [1 << bit for bit in range(8 * struct.calcsize(BASE_TYPES[enum["type"]]))]
        return enum.get("separator", "|").join(names.get(bit, unknown) for bit in bits if value & bit)

    def _tag(self, tag: re.Match[str], content: str) -> tuple[str, bool]:
        """Returns the text that replaces a tag and its content, and True if the returned text must
        be parsed again.
        """
        name, value = tag[1], tag[3]
        parser = self._parser
        if name == "profile":
            excluded = value is not None and value.startswith("!")
            # `<profile name="!dev">` is for all profiles except `dev`.
            applies = (parser.profile == (value or "")[excluded:]) != excluded
            return (content if applies else ""), True
        if name == "a":
            return parser.url_formatter(parser.message_escape(content), content if value is None else value), False
        if name == "param":
            return parser.param_formatter(parser.message_escape(content)), False
        return "", True

    def _argument(self, match: re.Match[str]) -> str:
        """Returns the text for an argument such as `{2:.1m/s}`."""
        value = self.argument_display_value(int(match[1]) - 1)
        text = f"{value:.{match[2]}f}" if match[2] is not None else str(value)
        unit = "m" if match[3] == "m_v" else match[3]
        return f"{text} {unit}" if unit else text

    def _text(self, text: str) -> str:
        """Returns the text with tags and arguments replaced, without spaces at its ends."""
        done: list[str] = []
        plain: list[str] = []

        def put(formatted: str) -> None:
            """Adds formatted text. The plain text before it is escaped, and the formatted text is
            not escaped.
            """
            if plain:
                done.append(self._parser.message_escape("".join(plain)))
                plain.clear()
            done.append(formatted)

        at = 0
        while at < len(text):
            tag, argument = TAG.match(text, at), ARGUMENT.match(text, at)
            end = -1 if tag is None else text.find(f"</{tag[1]}>", tag.end())
            if text[at] == "\\" and at + 1 < len(text):
                plain.append(text[at + 1])
                at += 2
            elif tag is not None and end != -1:
                formatted, again = self._tag(tag, text[tag.end() : end])
                after = end + len(tag[1]) + 3
                if again:
                    text, at = formatted + text[after:], 0
                else:
                    put(formatted)
                    at = after
            elif argument is not None and 0 < int(argument[1]) <= len(self._values):
                put(self._argument(argument))
                at = argument.end()
            else:
                plain.append(text[at])
                at += 1
        put("")
        return "".join(done).strip()


def _unchanged(text: str) -> str:
    return text


class Parser:
    """Event definitions."""

    def __init__(self, debug: bool = False) -> None:
        self.profile: str = "dev"
        self.url_formatter: Callable[[str, str], str] = lambda content, url: content
        self.param_formatter: Callable[[str], str] = _unchanged
        self.message_escape: Callable[[str], str] = _unchanged
        self._components: dict[int, dict[str, Any]] = {}

    def load_definition_file(self, json_file: str) -> None:
        """Loads definitions from a file."""
        with open(json_file, encoding="utf-8") as file:
            self.load_definitions(json.load(file))

    def load_definitions(self, json_data: dict[str, Any]) -> None:
        """Loads definitions. They replace all definitions that were loaded before."""
        version = json_data.get("version", 0)
        if version < 1:
            raise ParserException(f"Unexpected version {version}")
        self._components = {int(number): component for number, component in json_data.get("components", {}).items()}

    def enum(self, name: str) -> dict[str, Any]:
        """Returns an enumeration by its full name: `px4::navigation_mode_t`."""
        namespace, _, short = name.rpartition("::")
        for component in self._components.values():
            if component["namespace"] == namespace and short in component.get("enums", {}):
                found: dict[str, Any] = component["enums"][short]
                return found
        raise KeyError(name)

    def parse(self, event_id: int, arguments: bytes) -> ParsedEvent | None:
        """Returns the event with this id and these arguments. Returns None if the event is not
        defined.
        """
        component = self._components.get(event_id >> 24 & 0xFF, {})
        number = event_id & 0xFFFFFF
        for name, group in component.get("event_groups", {}).items():
            events = group.get("events", {})
            # Keys are strings in JSON. Another parser may have replaced them by integers in place.
            event = events.get(str(number), events.get(number))
            if event is not None:
                return ParsedEvent(self, event, name, component["namespace"], event_id, arguments)
        return None

    def set_profile(self, profile: str) -> None:
        """Sets the profile of the texts: `dev` or `normal`."""
        self.profile = profile

    def set_url_formatter(self, formatter: Callable[[str, str], str]) -> None:
        """Sets the function that formats a link from its text and its address."""
        self.url_formatter = formatter

    def set_param_formatter(self, formatter: Callable[[str], str]) -> None:
        """Sets the function that formats the name of a parameter."""
        self.param_formatter = formatter

    def set_message_escape_method(self, message_escape: Callable[[str], str]) -> None:
        """Sets the function that escapes texts, for example for HTML."""
        self.message_escape = message_escape
