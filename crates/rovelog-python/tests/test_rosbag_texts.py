"""`str(message)` is equal to the text of genpy, for examples and, if genpy is installed, for all
bags.
"""

from __future__ import annotations

import contextlib
import pathlib
import pickle
import struct
import subprocess
import warnings

import crafted
import pytest
from conftest import CORPUS, REAL

from rovelog import RovelogError
from rovelog.compat.rosbag import Bag, Message, ROSBagException

DEFINITION = """\
Header header
pkg/Point[] points
pkg/Point[2] fixed
string empty
string name
string[] names
string[] nothing
bool flag
bool[] flags
float32 ratio
float64[3] row
uint8[] data
int8 small
time[] stamps
duration span
================================================================================
MSG: roslib/Header
uint32 seq
time stamp
string frame_id
================================================================================
MSG: pkg/Point
float64 x
int32 y
"""

NAMES = ["plain", "", "yes", "12", "a: b", "# no", "it's", "a b", 'say "x"', "tab\there", "- dash", "\u00e9", "x" * 30 + " " + "y" * 60 + " z"]


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<I", len(data)) + data


PAYLOAD = (
    struct.pack("<III", 7, 5, 90) + text("/base_link")
    + struct.pack("<I", 2) + struct.pack("<didi", 1.5, -2, 1e300, 3)
    + struct.pack("<didi", 0.0, 0, -0.1, 1)
    + text("") + text('two\nlines, "quoted" \\ \u00e9 \u2028 ' + "long " * 20)
    + struct.pack("<I", len(NAMES)) + b"".join(map(text, NAMES))
    + struct.pack("<I", 0)
    + b"\1" + struct.pack("<I", 2) + b"\1\0"
    + struct.pack("<f3d", 0.1, 1.0, 2.5, float("nan"))
    + struct.pack("<I", 3) + b"\0\x7f\xff"
    + b"\xfe"
    + struct.pack("<I", 1) + struct.pack("<II", 3, 4)
    + struct.pack("<ii", -2, 500_000_000)
)

# The output of genpy 0.6.16 with PyYAML 6.0.
GENPY = r'''
header: 
  seq: 7
  stamp: 
    secs: 5
    nsecs:        90
  frame_id: "/base_link"
points: 
  - 
    x: 1.5
    y: -2
  - 
    x: 1e+300
    y: 3
fixed: 
  - 
    x: 0.0
    y: 0
  - 
    x: -0.1
    y: 1
empty: ''
name: "two\nlines, \"quoted\" \\ \xE9 \L long long long long long long long long long long\
  \ long long long long long long long long long long "
names: 
  - plain
  - ''
  - 'yes'
  - '12'
  - 'a: b'
  - '# no'
  - it's
  - a b
  - say "x"
  - "tab\there"
  - '- dash'
  - "\xE9"
  - xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy
    z
nothing: []
flag: True
flags: [True, False]
ratio: 0.10000000149011612
row: [1.0, 2.5, nan]
data: [0, 127, 255]
small: -2
stamps: 
  - 
    secs: 3
    nsecs:         4
span: 
  secs: -2
  nsecs: 500000000'''[1:]


def texts(path: pathlib.Path, most: int = 300) -> list[tuple[str, str, bytes, str]]:
    """Returns type, definition, payload and text of the decoded messages of a bag."""
    found = []
    with Bag(path) as bag:
        for raw, read in zip(bag.read_messages(raw=True), bag.read_messages(), strict=True):
            if list(read.message.__slots__) != ["raw"]:
                found.append((raw.message[0], read.message._full_text, raw.message[1], str(read.message)))
            if len(found) == most:
                break
    return found


def types(path: pathlib.Path) -> dict[tuple[str, str], list[tuple[object, ...]]]:
    """Returns (type, definition) of the messages in a bag -> description of each nested type."""
    with Bag(path) as bag:
        return {(found.made._type, found.made._full_text): nested(found.made) for found in bag._known if found.made is not found.undecoded}


def nested(made: type[Message]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for _, _, inner in made._parts:
        if inner is not None:
            constants = {name: value for name, value in vars(inner).items() if name[0] != "_" and isinstance(value, (str, int, float))}
            found += [(inner._type, inner._md5sum, inner._full_text, inner._slot_types, constants), *nested(inner)]
    return found


def test_texts_are_those_of_genpy(tmp_path: pathlib.Path) -> None:
    path = crafted.bag(tmp_path / "a.bag", "pkg/All", DEFINITION, [PAYLOAD])
    ((_, _, _, said),) = texts(path)
    assert said == GENPY


def test_a_text_is_read_line_by_line(tmp_path: pathlib.Path) -> None:
    """Parses a message like scripts that write CSV: each line has a name and a value."""
    path = crafted.bag(tmp_path / "a.bag", "pkg/P", "float64 x\nint32 y\n", [struct.pack("<di", 0.5, 3)])
    with Bag(path) as bag:
        message = next(iter(bag)).message
    assert [line.split(": ") for line in str(message).split("\n")] == [["x", "0.5"], ["y", "3"]]
    assert repr(message) == str(message) == f"{message}"


def genpy_python() -> str | None:
    """Returns the interpreter that has genpy."""
    python = "/usr/bin/python3"
    there = pathlib.Path(python).exists()
    found = there and subprocess.run([python, "-c", "import genpy"], capture_output=True).returncode == 0
    return python if found else None


def test_every_bag_against_genpy(tmp_path: pathlib.Path) -> None:
    python = genpy_python()
    if python is None:
        pytest.skip("SKIPPED: genpy is not installed (python3-genpy)")
    found: list[tuple[str, str, bytes, str]] = []
    found_types: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    for path in sorted(REAL.glob("rosbag12/*.bag")) + sorted(CORPUS.glob("rosbag/*.bag")):
        # Files that are no bags and truncated payloads have other tests.
        with contextlib.suppress(ROSBagException, RovelogError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += texts(path)
            found_types |= types(path)
    assert len(found) > 100 and sum(map(len, found_types.values())) > 100
    (tmp_path / "texts").write_bytes(pickle.dumps((found, found_types)))
    script = pathlib.Path(__file__).with_name("genpy_check.py")
    done = subprocess.run([python, str(script), str(tmp_path / "texts")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines[:-1] == [], "\n".join(lines[:3])
    assert int(lines[-1]) > 0.9 * len(found)
