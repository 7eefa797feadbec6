"""The program `ulog2kml`: writes the track of a ULog as KML. It needs the package `simplekml`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import simplekml

from rovelog.compat.pyulog.core import ULog

TOPICS = ["vehicle_gnss", "vehicle_gps_position"]
"""Topics with GNSS positions. Newer versions of PX4 use the first one."""
FIELDS = {
    "lon": ["lon", "longitude_deg", "receiver.longitude"],
    "lat": ["lat", "latitude_deg", "receiver.latitude"],
    "alt": ["alt", "altitude_msl_m", "receiver.altitude_msl"],
    "fix_type": ["fix_type", "receiver.fix_type"],
}
"""Field -> its names in different versions of PX4."""
COLORS = (
    "red green blue violet yellow orange burlywood azure lightblue lawngreen indianred hotpink bisque cyan darksalmon "
    "deepskyblue lime orchid"
).split()
FIX_3D = 3
"""Value of `fix_type` for a 3D position."""
Color = Callable[[int], str]


def _kml_default_colors(x: int) -> str:
    color: str = getattr(simplekml.Color, COLORS[max(x, 0) % len(COLORS)])
    return color


def _field(data: dict[str, Any], name: str) -> Any:
    for field in FIELDS[name]:
        if field in data:
            return data[field]
    raise KeyError(f"{name} not found in data")


def convert_ulog2kml(
    ulog_file_name: str,
    output_file_name: str,
    position_topic_name: str | list[str] | None = None,
    colors: Color | list[Color] = _kml_default_colors,
    altitude_offset: float = 0,
    minimum_interval_s: float = 0.1,
    style: dict[str, Any] | None = None,
    camera_trigger_topic_name: str | None = None,
    disable_str_exceptions: bool = False,
) -> None:
    """Writes the positions of topics to a KML file, with one line per flight mode.

    - `position_topic_name`: one topic or several, by default the newest GNSS topic in the log
    - `colors`: function that returns the color of a flight mode, or one function per topic
    - `altitude_offset`: offset in m that is added to all altitudes
    - `style`: dict with `extrude` and `line_width`
    """
    style = {"extrude": False, "line_width": 3, **(style or {})}
    wanted = TOPICS if position_topic_name is None else position_topic_name
    topics = wanted if isinstance(wanted, list) else [wanted]
    extra = [] if camera_trigger_topic_name is None else [camera_trigger_topic_name]
    ulog = ULog(ulog_file_name, [*topics, "vehicle_status", *extra], disable_str_exceptions)
    logged = {data.name for data in ulog.data_list}
    if position_topic_name is None:
        topics = [next((topic for topic in TOPICS if topic in logged), TOPICS[0])]
    kml = simplekml.Kml()
    modes: list[tuple[Any, Any]] = []
    if "vehicle_status" in logged:
        modes = ulog.get_dataset("vehicle_status").list_value_changes("nav_state")
        modes.append((ulog.last_timestamp, -1))
    color_of = colors if isinstance(colors, list) else [colors] * len(topics)
    for topic, color in zip(topics, color_of, strict=False):
        if topic not in logged:
            raise KeyError(f"{topic} not found in data")
        points = _positions(ulog.get_dataset(topic), altitude_offset)
        _add_track(kml, topic, points, modes, color, style, minimum_interval_s)
    if camera_trigger_topic_name in logged:
        data = ulog.get_dataset(camera_trigger_topic_name).data
        columns = [_field(data, "lon"), _field(data, "lat"), _field(data, "alt"), data["seq"]]
        for lon, lat, alt, number in zip(*columns, strict=True):
            point = kml.newpoint(name=f"Camera Trigger {number}")
            point.coords = [(lon, lat, alt + altitude_offset)]
    kml.save(output_file_name)


def _positions(dataset: ULog.Data, altitude_offset: float) -> list[tuple[Any, Any, Any, Any]]:
    """Returns (time in us, longitude, latitude, altitude) of the rows with a 3D fix."""
    data = dataset.data
    lon, lat, alt = (_field(data, name) for name in ("lon", "lat", "alt"))
    times = data["timestamp"]
    rows = np.ones(len(times), bool)
    if any(name in data for name in FIELDS["fix_type"]):
        rows = _field(data, "fix_type") >= FIX_3D
    types = {field.field_name: field.type_str for field in dataset.field_data}
    lon, lat, alt = lon[rows], lat[rows], alt[rows]
    # Older versions of PX4 store 1e-7 degrees and mm as integers.
    if types.get("lon") == "int32_t":
        lon, lat, alt = lon / 1e7, lat / 1e7, alt / 1e3
    return list(zip(times[rows], lon, lat, alt + altitude_offset, strict=True))


def _add_track(
    kml: Any,
    topic: str,
    points: list[tuple[Any, Any, Any, Any]],
    modes: list[tuple[Any, Any]],
    color: Color,
    style: dict[str, Any],
    minimum_interval_s: float,
) -> None:
    """Adds one line per flight mode. Consecutive lines share a point, so that the track has no
    gaps.
    """

    def line(mode: Any) -> Any:
        new = kml.newlinestring(name=f"{topic}:{mode}", altitudemode="absolute")
        if style["extrude"]:
            new.extrude = 1
        new.style.linestyle.color = color(mode)
        new.style.linestyle.width = style["line_width"]
        return new

    index, last = 0, 0
    current = line(modes[0][1] if modes else 0)
    for time, *position in points:
        if (time - last) / 1e6 <= minimum_interval_s:
            continue
        current.coords.addcoordinates([position])
        last = time
        while index < len(modes) - 1 and modes[index + 1][0] <= time:
            index += 1
            current = line(modes[index][1])
            current.coords.addcoordinates([position])


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Convert ULog to KML")
    parser.add_argument("filename", metavar="file.ulg", help="ULog input file")
    parser.add_argument("-o", "--output", help="output filename", default="track.kml")
    parser.add_argument(
        "--topic",
        help="topic name with position data (default=vehicle_gnss, or vehicle_gps_position in older logs)",
    )
    parser.add_argument("--camera-trigger", help="Camera trigger topic name (e.g. camera_capture)")
    parser.add_argument("-i", "--ignore", action="store_true", help="Ignore string parsing exceptions")
    args = parser.parse_args()
    convert_ulog2kml(
        args.filename,
        args.output,
        position_topic_name=args.topic,
        camera_trigger_topic_name=args.camera_trigger,
        disable_str_exceptions=args.ignore,
    )


if __name__ == "__main__":
    main()
