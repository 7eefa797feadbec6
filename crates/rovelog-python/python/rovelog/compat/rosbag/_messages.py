"""Classes for ROS messages.

A class is created from the names and types of its fields. Unlike genpy, no code is generated from
the definition in the bag, so a malicious bag cannot run code.
"""

from __future__ import annotations

import contextlib
import io
import keyword
import struct
from functools import lru_cache
from typing import IO, Any, ClassVar, NamedTuple

from rovelog._types import BagMaker, BagType
from rovelog.compat.rosbag import _wire
from rovelog.compat.rosbag._errors import SerializationError
from rovelog.compat.rosbag._text import text_of


MAX_CLASSES = 10_000
"""Maximum number of message classes in the tree of a type. A type that several fields have counts
once for each field. A hostile definition of 20 types can have a tree of a million classes.
"""


class Spec(NamedTuple):
    """Description of a message class."""

    type: str
    md5sum: str
    definition: str
    """Definition as stored in the bag. If the type is nested, the text of this type alone."""
    is_nested: bool
    """True if this is the type of a field in another message."""
    fields: tuple[tuple[str, str, Spec | None], ...]
    """Fields: name, type, and description of the message class if the field is a message."""
    constants: tuple[tuple[str, str, str], ...]
    """Constants: type, name, and value as written in the definition."""


class _FullText:
    """The definition of a nested type with all types that it needs, in the format of genpy.

    The text is built on request, because the texts of all types in a hostile bag could need
    gigabytes.
    """

    def __get__(self, message: object, made: type[Message]) -> str:
        texts: dict[str, str] = {}

        def add(spec: Spec) -> None:
            for _, _, inner in spec.fields:
                if inner is not None and inner.type not in texts:
                    texts[inner.type] = inner.definition
                    add(inner)

        add(made._spec)
        parts = [f"{'=' * 80}\nMSG: {name}\n{text}" for name, text in texts.items()]
        return "\n".join([made._spec.definition, *parts])


class Message:
    """A message. It has the same attributes as a message of genpy.

    - the fields, with their names in `__slots__` and their types in `_slot_types`
    - the constants of the definition, which are attributes of the class
    - `_type`, `_md5sum`, `_full_text`: name, MD5 sum and definition of the type
    """

    __slots__: Any = ("_connection_header",)
    _slot_types: Any = ()
    _type = ""
    _md5sum = ""
    _full_text = ""
    _has_header = False
    _spec: Any = None
    _parts: tuple[tuple[str, str, Any], ...] = ()
    """Fields: name, type, and message class if the field is a message."""

    def __init__(self, *args: Any, **kwds: Any) -> None:
        """Sets all fields in order, or some fields by name. All other fields are zero or empty."""
        names = [name for name, *_ in self._parts]
        if args and (kwds or len(args) != len(names)):
            raise TypeError(f"{self._type} takes the values of all fields ({', '.join(names)}), or some by name")
        values = dict(zip(names, args, strict=True)) if args else kwds
        unknown = set(values) - set(names)
        if unknown:
            raise AttributeError(f"{self._type} has no field {', '.join(sorted(unknown))}")
        for name, kind, nested in self._parts:
            setattr(self, name, values[name] if name in values else _wire.default(kind, nested))

    def __getattr__(self, name: str) -> Any:
        if name == "_connection_header":
            return None
        raise AttributeError(f"{self._type} has no field {name}", name=name, obj=self)

    def serialize(self, buff: IO[bytes]) -> None:
        """Writes the serialized message."""
        fields = zip(self.__slots__, self._slot_types, strict=True)
        buff.write(b"".join(_wire.pack(kind, getattr(self, name)) for name, kind in fields))

    def deserialize(self, str: bytes) -> Message:
        """Sets all fields from a serialized message."""
        _wire.Unpacker(str).message(self)
        return self

    def _get_types(self) -> list[str]:
        """Returns the types of the fields."""
        types: list[str] = self._slot_types
        return types

    def _check_types(self, exc: Exception | None = None) -> None:
        """Raises SerializationError if a field cannot be serialized, or if `exc` is given."""
        for name, kind in zip(self.__slots__, self._slot_types, strict=True):
            try:
                _wire.pack(kind, getattr(self, name))
            except (struct.error, TypeError, ValueError, AttributeError) as error:
                raise SerializationError(f"field {name} must be of type {kind}: {error}") from error
        if exc is not None:
            raise SerializationError(str(exc))

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self._type == other._type and self._fields() == other._fields()

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._spec, [getattr(self, name) for name in self.__slots__])

    def __repr__(self) -> str:
        return text_of(self, Message)


def _restored(spec: Spec, values: list[Any]) -> Message:
    """Returns a message from its pickle."""
    made = message_class(spec)
    message = made.__new__(made)
    for (name, *_), value in zip(spec.fields, values, strict=True):
        setattr(message, name, value)
    return message


class Undecoded(Message):
    """A message that the definition cannot decode. `raw` contains its bytes."""

    def serialize(self, buff: IO[bytes]) -> None:
        buff.write(self.raw)

    def deserialize(self, str: bytes) -> Message:
        self.raw = str
        return self


@lru_cache(maxsize=1024)
def message_class(spec: Spec, base: type[Message] = Message) -> type[Message]:
    """Returns the message class for a description. Messages of the same type in different bags
    share it.
    """
    names = [name for name, *_ in spec.fields]
    parts = tuple((name, kind, None if inner is None else message_class(inner)) for name, kind, inner in spec.fields)
    facts: dict[str, Any] = {
        **_constants(spec),
        "_type": spec.type,
        "_md5sum": spec.md5sum,
        "_full_text": _FullText() if spec.is_nested else spec.definition,
        "_slot_types": [kind for _, kind, _ in parts],
        "_has_header": bool(parts) and parts[0][:2] == ("header", "std_msgs/Header"),
        "_spec": spec,
        "_parts": parts,
        "__module__": __name__,
    }
    # Names that cannot be slots, such as those of methods, become attributes in `__dict__`.
    facts["__slots__"] = names if all(map(_is_free, names)) else ("__dict__",)
    made = type(spec.type.rsplit("/", 1)[-1] or "Message", (base,), facts)
    made.__slots__ = names  # type: ignore[attr-defined]
    return made


def _is_free(name: str) -> bool:
    """Returns True if a class of messages can have an attribute with this name."""
    return name.isidentifier() and not name.startswith("__") and not hasattr(Message, name)


def _constants(spec: Spec) -> dict[str, Any]:
    """Returns the constants of a type: name -> value."""
    found: dict[str, Any] = {}
    fields = {name for name, *_ in spec.fields}
    for kind, name, text in spec.constants:
        if _is_free(name) and name not in fields:
            # genpy rejects a definition with an invalid value. Here, only the constant is left out,
            # because messages can be decoded without it.
            with contextlib.suppress(ValueError):
                found[name] = _constant(kind, text)
    return found


def _constant(kind: str, text: str) -> Any:
    """Returns the value of a constant. Raises ValueError if the value is invalid."""
    if kind == "string":
        return text
    if kind == "bool":
        return text == "True" or (text != "False" and int(text) != 0)
    return float(text) if kind.startswith("float") else int(text)


def spec_of(types: list[BagType], kind: str, md5: str, definition: str) -> Spec | None:
    """Returns the description of the message class for a connection. `types` are the types of its
    messages. Returns None if there are no types, or if they need too many classes.
    """
    specs: list[Spec] = []
    classes: list[int] = []
    for found in types:
        classes.append(1 + sum(classes[inner] for _, _, inner in found["fields"] if inner is not None))
        if classes[-1] > MAX_CLASSES:
            return None
        fields = tuple(
            (_python_name(name), source, None if inner is None else specs[inner]) for name, source, inner in found["fields"]
        )
        constants = tuple((source, _python_name(name), text) for source, name, text in found["constants"])
        specs.append(Spec(found["name"], found["md5"], found["text"], True, fields, constants))
    return specs[-1]._replace(type=kind, md5sum=md5, definition=definition, is_nested=False) if specs else None


def _python_name(name: str) -> str:
    """Returns the name of a field or constant in Python. As in genpy, `from` becomes `from_`."""
    return f"{name}_" if keyword.iskeyword(name) or name == "self" else name


def maker_of(made: type[Message]) -> BagMaker:
    """Returns the message classes in the form that the compiled part expects."""
    return made, [(name, None if nested is None else maker_of(nested)) for name, _, nested in made._parts]


def undecoded(kind: str, md5: str, definition: str) -> type[Message]:
    """Returns the class for messages that the definition cannot decode."""
    return message_class(Spec(kind, md5, definition, False, (("raw", "uint8[]", None),), ()), Undecoded)


def serialized(message: Any) -> bytes:
    """Serializes a message of this package or of genpy."""
    out = io.BytesIO()
    message.serialize(out)
    return out.getvalue()
