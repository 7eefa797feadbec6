"""Checks the KML and GPX files that `rovelog track` writes.

usage: export_tracks.py ROVELOG REAL CORPUS

KML is validated with the schema of the OGC and Google's extension, which fastkml bundles. GPX is read with gpxpy and
validated with the rules of GPX 1.1 below, because no package bundles its schema. Both must have the points of the table.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import fastkml
import gpxpy
from lxml import etree

GPX = "{http://www.topografix.com/GPX/1/1}"
KML = "{http://www.opengis.net/kml/2.2}"
# Children of each element, in the order of the schema.
CHILDREN = {
    "gpx": ["metadata", "wpt", "rte", "trk", "extensions"],
    "metadata": ["name", "desc", "author", "copyright", "link", "time", "keywords", "bounds", "extensions"],
    "trk": ["name", "cmt", "desc", "src", "link", "number", "type", "extensions", "trkseg"],
    "trkseg": ["trkpt", "extensions"],
}
POINT = ["ele", "time", "magvar", "geoidheight", "name", "cmt", "desc", "src", "link", "sym", "type", "fix", "sat", "hdop",
         "vdop", "pdop", "ageofdgpsdata", "dgpsid", "extensions"]
ONCE = {*POINT, "metadata", "number", "keywords", "bounds"} - {"link"}
DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
# Form of the text of each element.
TEXTS = {
    "ele": DECIMAL, "hdop": DECIMAL, "vdop": DECIMAL, "pdop": DECIMAL, "geoidheight": DECIMAL,
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    "fix": re.compile("none|2d|3d|dgps|pps"),
    "sat": re.compile(r"\d+"),
}


def check_gpx(element):
    """Fails if an element or one of its children violates the rules of GPX 1.1."""
    assert element.tag.startswith(GPX), element.tag
    name = element.tag.removeprefix(GPX)
    children = [child.tag.removeprefix(GPX) for child in element]
    order = CHILDREN.get(name, POINT if name in ("wpt", "trkpt") else [])
    places = [order.index(child) for child in children]
    assert places == sorted(places), f"{name}: {children}"
    assert all(children.count(child) == 1 for child in ONCE.intersection(children)), f"{name}: {children}"
    if name in ("wpt", "trkpt"):
        assert set(element.attrib) == {"lat", "lon"}, element.attrib
        assert all(DECIMAL.fullmatch(value) for value in element.attrib.values()), element.attrib
        # The schema excludes 180, which is -180.
        assert -90 <= float(element.get("lat")) <= 90 and -180 <= float(element.get("lon")) < 180, element.attrib
    if name in TEXTS:
        assert TEXTS[name].fullmatch(element.text), f"{name}: {element.text}"
    for child in element:
        check_gpx(child)


def near(a, b):
    return all(abs(x - y) < 6e-8 for x, y in zip(a, b))


def check(binary, log, folder, schema):
    """Checks both files of a log. Returns the number of points, or None if the log has no track."""
    table = subprocess.run([binary, "track", "-q", "-f", "json", log], capture_output=True, check=False, timeout=120)
    if table.returncode not in (0, 3):
        return None
    points = [(row["latitude_deg"], row["longitude_deg"]) for row in json.loads(table.stdout)["points"]]
    files = {kind: folder / f"track.{kind}" for kind in ("kml", "gpx")}
    for path in files.values():
        done = subprocess.run([binary, "track", "-q", "--force", log, "-o", path], capture_output=True, check=False, timeout=120)
        assert done.returncode == table.returncode, done.stderr.decode()

    root = etree.parse(files["gpx"]).getroot()
    assert root.get("version") == "1.1" and root.get("creator")
    check_gpx(root)
    read = gpxpy.parse(files["gpx"].read_text())
    theirs = [(point.latitude, point.longitude) for track in read.tracks for part in track.segments for point in part.points]
    assert len(theirs) == len(points) and all(map(near, theirs, points)), "gpxpy reads other points"

    kml = etree.parse(files["kml"])
    assert schema.validate(kml), schema.error_log
    read = fastkml.KML.parse(files["kml"], strict=True)
    assert read.features, "fastkml reads no feature"
    drawn = {
        tuple(map(float, place.split(",")[1::-1]))
        for line in kml.iter(f"{KML}coordinates") for place in line.text.split()
    }
    missing = [point for point in points if (round(point[0], 7), round(point[1], 7)) not in drawn]
    assert not missing, f"points missing in KML: {missing[:3]}"
    return len(points)


def main():
    binary, real, corpus = sys.argv[1:4]
    bundled = Path(fastkml.__file__).parent / "schema" / "kml22gx.xsd"
    schema = etree.XMLSchema(etree.parse(bundled))
    logs = [log for folder in (real, corpus) for log in sorted(Path(folder).glob("*/*")) if log.suffix in (".ulg", ".vel", ".bag")]
    tracks, failed = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for log in logs:
            try:
                points = check(binary, log, Path(folder), schema)
            except (AssertionError, ValueError) as problem:
                print(f"{log.name}: {problem}")
                failed += 1
                continue
            if points is not None:
                tracks[log.suffix] = tracks.get(log.suffix, 0) + 1
    print(f"tracks of {', '.join(f'{count} {suffix}' for suffix, count in sorted(tracks.items()))}: {failed} failed")
    sys.exit(1 if failed or len(tracks) < 2 else 0)


if __name__ == "__main__":
    main()
