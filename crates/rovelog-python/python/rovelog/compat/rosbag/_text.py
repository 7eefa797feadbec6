"""Text of messages in the format of genpy, for `str(message)`.

Scripts split this text into lines, or parse it as YAML. genpy formats strings with PyYAML. This
module reproduces the rules of PyYAML, so that it need not be installed: when a string is plain, in
single quotes or in double quotes, and where it is folded. For example, `abc` is plain, `'true'` has
single quotes because it would be a boolean, and `"a\\tb"` has double quotes for its escape.
"""

from __future__ import annotations

import re
from typing import Any

from rovelog._core import Duration, Time

WIDTH = 80
"""Column after which a string is folded."""
INDENT = 2
"""Indentation of folded lines."""
BREAKS = "\n\x85\u2028\u2029"
SPACES = "\0 \t\r" + BREAKS
ESCAPES = {
    "\0": "0",
    "\x07": "a",
    "\x08": "b",
    "\t": "t",
    "\n": "n",
    "\x0b": "v",
    "\x0c": "f",
    "\r": "r",
    "\x1b": "e",
    '"': '"',
    "\\": "\\",
    "\x85": "N",
    "\xa0": "_",
    "\u2028": "L",
    "\u2029": "P",
}
# Plain strings that YAML 1.1 would parse as another type: possible first characters, pattern.
OTHER_TYPES = [
    ("yYnNtTfFoO", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"),
    (
        "-+0123456789.",
        r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    ),
    (
        "-+0123456789",
        r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+",
    ),
    ("<", r"<<"),
    ("~nN", r"~|null|Null|NULL"),
    (
        "0123456789",
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
        r"(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9][0-9])?))?",
    ),
    ("=", r"="),
]


def text_of(value: Any, message: type, indent: str = "") -> str:
    """Returns the text of a value. `message` is the base class of messages."""
    kind = type(value)
    if kind in (int, float, bool):
        return str(value)
    if isinstance(value, str):
        return quoted(value) if value else "''"
    # Times of genpy have other classes, but the same attributes.
    if isinstance(value, (Time, Duration)) or (hasattr(value, "secs") and hasattr(value, "nsecs")):
        # genpy normalizes the nanoseconds when it reads a message.
        more, nsecs = divmod(value.nsecs, 10**9)
        return f"\n{indent}secs: {value.secs + more}\n{indent}nsecs: {nsecs:9d}"
    if isinstance(value, (list, tuple)):
        return _of_list(value, message, indent)
    if isinstance(value, message):
        rows = zip(value.__slots__, value._slot_types, strict=True)  # type: ignore[attr-defined]
        lines = [f"{indent}{name}: {text_of(_field(value, name, type), message, '  ' + indent)}" for name, type in rows]
        return ("\n" if indent else "") + "\n".join(lines)
    return str(value)


def _field(value: Any, name: str, type: str) -> Any:
    found = getattr(value, name)
    if not isinstance(found, bytes):
        return found
    if "uint8[" in type:
        return list(found)
    # A string that is not UTF-8 is `bytes` here. genpy replaces its invalid characters.
    return found.decode("utf-8", "replace") if type == "string" else found


def _of_list(values: list[Any] | tuple[Any, ...], message: type, indent: str) -> str:
    if not values:
        return "[]"
    if any(isinstance(value, (str, bytes)) for value in values):
        texts = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]
        lines = _Writer().sequence(texts).splitlines()
        return "\n" + "\n".join(indent + line for line in lines)
    if type(values[0]) in (int, float, bool):
        return str(list(values))
    # The fields of an element are indented by two more columns than the dash.
    return "\n" + "\n".join(f"{indent}- {text_of(value, message, indent + '  ')}" for value in values)


def quoted(text: str) -> str:
    """Returns a string in double quotes, folded."""
    writer = _Writer()
    writer.double(text)
    return "".join(writer.out)


def _is_another_type(text: str) -> bool:
    return text == "" or any(text[0] in first and re.fullmatch(form, text) for first, form in OTHER_TYPES)


def _styles(text: str) -> tuple[bool, bool]:
    """Returns True for each of two styles that a non-empty string may have: plain, single
    quotes.
    """
    if re.search(r"[^\n\x20-\x7e]", text) or re.search(r" [\n]", text):
        return False, False
    single = not re.search(r"\n ", text)
    # `?`, `:` and `-` have a meaning only before a space or the end, and `#` only after a space.
    marks = text.startswith(("---", "...")) or text[0] in "#,[]{}&*!|>'\"%@`"
    marks = marks or re.match(r"[?:-](?: |$)", text) is not None or re.search(r"(?<!^):(?: |$)|(?<= )#", text) is not None
    plain = single and not marks and "\n" not in text and text[0] != " " and text[-1] != " "
    return plain, single


class _Writer:
    """Writer of strings that folds lines as the emitter of PyYAML does."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.column = 0

    def put(self, text: str) -> None:
        self.out.append(text)
        self.column += len(text)

    def line(self, by: str = "\n") -> None:
        self.out.append(by)
        self.column = 0

    def indent(self) -> None:
        """Starts an indented line. An empty line is used instead of starting another one."""
        if self.column:
            self.line()
        self.put(" " * INDENT)

    def sequence(self, texts: list[str]) -> str:
        """Returns the lines of a list of strings, each in the style that PyYAML chooses."""
        for text in texts:
            if self.column:
                self.line()
            self.put("- ")
            plain, single = _styles(text) if text else (False, True)
            if plain and not _is_another_type(text):
                self.spaced(text, False)
            elif single:
                self.spaced(text, True)
            else:
                self.double(text)
        return "".join(self.out)

    def spaced(self, text: str, quotes: bool) -> None:
        """Writes a string plain or in single quotes. It is folded at single spaces."""
        if quotes:
            self.put("'")
        end = len(text)
        for found in re.finditer(r" +|\n+|[^ \n]+", text):
            run, start = found[0], found.start()
            if run[0] == "\n":
                self.line()
                for _ in run:
                    self.line()
                self.put(" " * INDENT)
            elif run == " " and self.column > WIDTH and (not quotes or (start != 0 and found.end() != end)):
                self.indent()
            else:
                # PyYAML writes each quote separately, but the result is the same.
                self.put(run.replace("'", "''") if quotes else run)
        if quotes:
            self.put("'")

    def double(self, text: str) -> None:
        """Writes a string in double quotes. A folded line ends with a backslash."""
        self.put('"')
        start = 0
        for end in range(len(text) + 1):
            char = text[end] if end < len(text) else None
            if char is None or char in '"\\' or not " " <= char <= "~":
                if start < end:
                    self.put(text[start:end])
                    start = end
                if char is not None:
                    self.put("\\" + _escaped(char))
                    start = end + 1
            if 0 < end < len(text) - 1 and (char == " " or start >= end) and self.column + end - start > WIDTH:
                self.put(text[start:end] + "\\")
                start = max(start, end)
                self.indent()
                if text[start] == " ":
                    self.put("\\")
        self.put('"')


def _escaped(char: str) -> str:
    code = ord(char)
    return ESCAPES.get(char) or (f"x{code:02X}" if code < 0x100 else f"u{code:04X}" if code < 0x10000 else f"U{code:08X}")
