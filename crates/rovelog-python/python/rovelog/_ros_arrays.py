"""ROS images and point clouds as numpy arrays.

The layouts are those of the message definitions `sensor_msgs/Image` and `sensor_msgs/PointCloud2`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rovelog import _core
from rovelog._errors import UnsupportedError
from rovelog._optional import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENCODINGS: dict[str, tuple[str, int]] = {
    "mono8": ("u1", 1),
    "mono16": ("u2", 1),
    "rgb8": ("u1", 3),
    "bgr8": ("u1", 3),
    "rgba8": ("u1", 4),
    "bgra8": ("u1", 4),
    "rgb16": ("u2", 3),
    "bgr16": ("u2", 3),
    "rgba16": ("u2", 4),
    "bgra16": ("u2", 4),
    "yuv422": ("u1", 2),
    "yuv422_yuy2": ("u1", 2),
    **{f"bayer_{order}{bits}": (f"u{bits // 8}", 1) for order in ("rggb", "bggr", "gbrg", "grbg") for bits in (8, 16)},
}
"""Encoding -> type of a value, number of values per pixel. OpenCV encodings such as `32FC1` are
parsed.
"""
OPENCV = {"8U": "u1", "8S": "i1", "16U": "u2", "16S": "i2", "32S": "i4", "32F": "f4", "64F": "f8"}
"""Depth in the name of an OpenCV encoding -> type of a value."""
POINT_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
"""Number of a type in `sensor_msgs/PointField` -> type of a value."""


class _Fields:
    """Uniform access to the fields of a record, a dict, or a message of `rovelog.compat.rosbag`."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def __call__(self, name: str) -> Any:
        if isinstance(self._message, (dict, _core.Message)):
            return self._message[name]
        return getattr(self._message, name)


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else bytes(data)


def image(message: Any) -> NDArray[Any]:
    """Returns the pixels of a sensor_msgs/Image. The shape is (height, width), or (height, width,
    channels).

    `message` is a record of `Log.messages`, the dict that its `fields()` returns, or a message of
    `rovelog.compat.rosbag`. Channels are in the order of the encoding: `bgr8` has blue first. The
    array is read-only and has the byte order of the message.

    Raises UnsupportedError for unknown encodings, and ValueError if `data` is too short for the
    image.
    """
    np = require("numpy")
    field = _Fields(message)
    encoding, width, height = field("encoding"), field("width"), field("height")
    kind, channels = ENCODINGS.get(encoding, (None, 0))
    if kind is None:
        depth, _, count = encoding.partition("C")
        if depth not in OPENCV or not (count.isdigit() or not count):
            raise UnsupportedError(f"images with the encoding {encoding!r} are not supported", next="use the bytes in data")
        kind, channels = OPENCV[depth], int(count or 1)
    dtype = np.dtype(("<", ">")[bool(field("is_bigendian"))] + kind)
    data, step = _bytes(field("data")), field("step")
    # Rows may be padded, so `step` may be larger than a row of pixels. The last row may lack the
    # padding.
    row = width * channels * dtype.itemsize
    if step < row or len(data) < step * (height - 1) + row * (height > 0):
        raise ValueError(f"an image of {width}x{height} {encoding} with rows of {step} bytes needs more than {len(data)} bytes")
    strides = (step, channels * dtype.itemsize, dtype.itemsize)
    pixels: NDArray[Any] = np.ndarray((height, width, channels), dtype, data, strides=strides)
    if channels == 1:
        pixels = pixels[:, :, 0]
    return pixels


def cloud(message: Any) -> NDArray[Any]:
    """Returns the points of a sensor_msgs/PointCloud2 as a structured array, with fields such as
    `points["x"]`.

    The shape is (points,), or (height, width) for an organized cloud. `message` has the same forms
    as for `image`. The array is read-only and shares the memory of the message. Raises ValueError
    if `data` is too short for the cloud.
    """
    np = require("numpy")
    field = _Fields(message)
    order = ">" if field("is_bigendian") else "<"
    names, formats, offsets = [], [], []
    for part in map(_Fields, field("fields")):
        count, kind = part("count"), order + POINT_TYPES[part("datatype")]
        names.append(part("name"))
        formats.append((kind, (count,)) if count > 1 else kind)
        offsets.append(part("offset"))
    step, row, width, height = field("point_step"), field("row_step"), field("width"), field("height")
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": step})
    data = _bytes(field("data"))
    if height and width and len(data) < row * (height - 1) + step * width:
        raise ValueError(f"a cloud of {width}x{height} points of {step} bytes needs more than {len(data)} bytes")
    points: NDArray[Any] = np.ndarray((height, width), dtype, data, strides=(row, step))
    if height == 1:
        points = points[0]
    return points
