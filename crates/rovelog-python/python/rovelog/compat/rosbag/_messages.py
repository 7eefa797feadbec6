"""Classes for ROS messages.

A class is created from the names and types of its fields. Unlike genpy, no code is generated from
the definition in the bag, so a malicious bag cannot run code.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import IO, Any, ClassVar, NamedTuple

from rovelog._types import BagMaker
from rovelog.compat.rosbag import _wire
from rovelog.compat.rosbag._text import text_of

ARRAY = re.compile(r"\[\d*\]$")


class Spec(NamedTuple):
    """Description of a message class."""

    type: str
    md5sum: str
    definition: str
    fields: tuple[tuple[str, str, Spec | None], ...]
    """Fields: name, type, and description of the message class if the field is a message."""


class Message:
    """A message. It has the same attributes as a message of genpy.

    - the fields, with their names in `__slots__` and their types in `_slot_types`
    - `_type`, `_md5sum`, `_full_text`: name, MD5 sum and definition of the type
    """

    __slots__: Any = ("_connection_header",)
    _slot_types: Any = ()
    _type = ""
    _md5sum = ""
    _full_text = ""
    _has_header = False
    _spec: Spec
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
        "_type": spec.type,
        "_md5sum": spec.md5sum,
        "_full_text": spec.definition,
        "_slot_types": [kind for _, kind, _ in parts],
        "_has_header": bool(parts) and parts[0][1] == "std_msgs/Header",
        "_spec": spec,
        "_parts": parts,
        "__module__": __name__,
    }
    plain = all(name.isidentifier() and not name.startswith("__") and not hasattr(Message, name) for name in names)
    # Names that cannot be slots, such as those of methods, become attributes in `__dict__`.
    facts["__slots__"] = names if plain else ("__dict__",)
    made = type(spec.type.rsplit("/", 1)[-1] or "Message", (base,), facts)
    made.__slots__ = names  # type: ignore[attr-defined]
    return made


def spec_of(fields: list[Any], kind: str, md5: str, definition: str) -> Spec:
    """Returns the description of a message class for the fields of a topic."""
    package = kind.rpartition("/")[0]
    return Spec(kind, md5, definition, tuple(_field(name, source, inner, package) for name, _, source, _, inner in fields))


def _field(name: str, source: str, inner: list[Any] | None, package: str) -> tuple[str, str, Spec | None]:
    element = ARRAY.sub("", source)
    if inner is None or element in _wire.STAMPS:
        return name, source, None
    if "/" not in element:
        qualified = "std_msgs/Header" if element == "Header" else f"{package}/{element}" if package else element
        source, element = qualified + source[len(element) :], qualified
    return name, source, spec_of(inner, element, "", "")


def maker_of(made: type[Message]) -> BagMaker:
    """Returns the message classes in the form that the compiled part expects."""
    return made, [(name, None if nested is None else maker_of(nested)) for name, _, nested in made._parts]


def undecoded(kind: str, md5: str, definition: str) -> type[Message]:
    """Returns the class for messages that the definition cannot decode."""
    return message_class(Spec(kind, md5, definition, (("raw", "uint8[]", None),)), Undecoded)


def serialized(message: Any) -> bytes:
    """Serializes a message of this package or of genpy."""
    out = io.BytesIO()
    message.serialize(out)
    return out.getvalue()
