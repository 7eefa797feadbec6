"""Format-specific functions, compared with results of independent readers."""

from __future__ import annotations

import csv
import hashlib
import json
import pathlib

import numpy as np
import pytest
from conftest import CORPUS, case_log, real_file

import rovelog as rl

TRUE_SECOND = 1.00352
"""Duration in seconds of a nominal second of a RocketLogger."""


@pytest.mark.parametrize("name", ["test_full.rld", "test_unsupported.rld"])
def test_energy_is_the_exact_sum(name: str) -> None:
    path = real_file(f"rld/{name}")
    truth = json.loads((path.parent / f"expected/{name}.json").read_text())
    log = rl.open(path)
    rate = truth["lead_in"]["sample_rate"]
    powers = {current: f"{truth['merged'][current]['power_sum']['with']}*{current}" for current in ("I1", "I2")}
    for settle, suffix in ((0, ""), (5, "_margin5")):
        [whole] = log.rld.energy(power=powers.values(), settle=settle)
        assert whole.rows == log["samples"].count and whole.window is None and whole.state is None
        assert whole.start_ns == log.start_ns
        assert whole.duration_ns == round(whole.rows * TRUE_SECOND * 1e9 / rate)
        for current, power in powers.items():
            want = truth["merged"][current + suffix]
            joules = int(want["power_sum"]["sum"]) * 10.0 ** want["power_sum"]["scale"] * TRUE_SECOND / rate
            assert whole.energy[power] == pytest.approx(joules, rel=1e-15)
            coulombs = int(want["sum"]) * 10.0 ** want["scale"] * TRUE_SECOND / rate
            assert whole.charge[current] == pytest.approx(coulombs, rel=1e-15)
        merged = log.rld.merged(settle=settle).numpy()
        for current in powers:
            want = truth["merged"][current + suffix]
            raw = np.round(merged[current] * 10.0 ** -want["scale"]).astype("<i8")
            assert hashlib.sha256(raw.tobytes()).hexdigest() == want["sha256_i64le"], current
            assert np.count_nonzero(merged[f"{current}_source"] == "low") == want["rows_from_low"]


def test_parts_of_the_energy_are_all_of_it() -> None:
    log = rl.open(real_file("rld/test_unsupported.rld"))
    assert [current.name for current in log.rld.currents] == ["I1", "I2"]
    assert log.rld.currents[0] == ("I1", "I1L", "I1H", "V1")
    [whole] = log.rld.energy(power="V1*I1")
    bits = log["samples"].select("DigIn1", "DigIn2").numpy()
    windows = log.rld.energy("1s", power="V1*I1")
    states = log.rld.energy(by=["DigIn1", "DigIn2"], power="V1*I1")
    both = log.rld.energy("1s", "DigIn1", power="V1*I1")
    for parts in (windows, states, both):
        assert sum(part.rows for part in parts) == whole.rows
        joules = [part.energy["V1*I1"] for part in parts]
        assert sum(x for x in joules if x is not None) == pytest.approx(whole.energy["V1*I1"], rel=1e-9)
        assert sum(part.missing["V1*I1"] for part in parts) == whole.missing["V1*I1"]
    assert [part.window for part in windows] == list(range(len(windows))) and windows[0].start_ns == whole.start_ns
    assert all(990 <= part.rows <= 1000 for part in windows[:-1])
    for part in states:
        assert part.state is not None and part.start_ns is None
        of_state = (bits["DigIn1"] == bool(part.state["DigIn1"])) & (bits["DigIn2"] == bool(part.state["DigIn2"]))
        assert part.rows == np.count_nonzero(of_state)
    for part in windows:
        of_window = [found for found in both if found.window == part.window]
        assert sum(found.rows for found in of_window) == part.rows
        assert {found.start_ns for found in of_window} == {part.start_ns}


def test_unknown_energy_raises() -> None:
    log = rl.open(real_file("rld/test_full.rld"))
    [whole] = log.rld.energy()
    assert list(whole.energy) == ["V1*I1", "V2*I2"], "each current belongs to the voltage with its number"
    no_voltage = rl.open(real_file("rld/20220826_200050_eval_i.rld"))
    with pytest.raises(rl.RovelogError, match=r'power="V1\*I1"'):
        no_voltage.rld.energy()
    with pytest.raises(ValueError, match="is not a voltage times a current"):
        log.rld.energy(power="V1")
    with pytest.raises(rl.RovelogError, match="not a binary channel"):
        log.rld.energy(by="V1", power="V1*I1")
    with pytest.raises(ValueError, match="must be positive"):
        log.rld.energy(0, power="V1*I1")
    with pytest.raises(ValueError, match="'bits' or 'values'"):
        log.rld.energy(power="V1*I1", ranges="both")


def test_images_are_those_of_the_log() -> None:
    truth = json.loads((CORPUS / "expected/vel/images-of-three-sources.json").read_text())
    log = rl.open(CORPUS / "vel/images-of-three-sources.vel")
    images = list(log.vel.images())
    assert [(str(image.offset), str(image.t_ns), image.name) for image in images] == [
        (want["offset"], want["t_ns"], want["topic"]) for want in truth["records"]
    ]
    assert {(image.encoding, image.width, image.height) for image in images} == {("jpeg", 8, 8)}
    assert all(image.data[:3] == b"\xff\xd8\xff" for image in images)
    later = list(log.vel.images(start=images[2].t_ns))
    assert later == images[2:]


def test_images_of_an_independent_writer() -> None:
    path = real_file("vel/good.vel")
    truth = [found for found in json.loads((path.parent / "expected/good.json").read_text()) if found["type"] == "ImageM"]
    images = list(rl.open(path).vel.images())
    assert [hashlib.sha256(image.data).hexdigest() for image in images] == [want["fields"]["sha256"] for want in truth]
    assert [(image.offset, image.width) for image in images] == [(want["pos"], want["fields"]["width"]) for want in truth]


def test_points_of_revolutions() -> None:
    path = real_file("vel/vlp16.vel")
    with (path.parent / "expected/vlp16_first6packets.csv").open() as file:
        want = [[float(row[name]) for name in ("x", "y", "z", "intensity", "ring")] for row in csv.DictReader(file)]
    log = rl.open(path)
    whole = [cloud.numpy() for cloud in log.vel.revolutions()]
    assert len(whole) >= 1 and [set(cloud["revolution"]) for cloud in whole] == [{n} for n in range(len(whole))]
    names = ["x", "y", "z", "intensity", "ring"]
    got = np.column_stack([np.concatenate([cloud[name] for cloud in whole]) for name in names])
    assert np.abs(got[: len(want)] - np.array(want)).max() < 0.002
    first = whole[0]
    assert first["x"].dtype == np.float32 and first["ring"].dtype == np.uint8 and first["t_ns"].dtype == np.int64
    assert np.allclose((first["t_ns"] - first["t_ns"][0]) / 1e9, first["time"] - first["time"][0], atol=1e-6)
    few = next(iter(log.vel.revolutions("z", start=int(first["t_ns"][0]))))
    assert few.column_names == ["t_ns", "z"] and len(few) == len(first["z"])


def test_a_calibration_from_a_file(tmp_path: pathlib.Path) -> None:
    path = real_file("vel/hdl64_revolution.vel")
    clouds = list(rl.open(path).vel.revolutions("x", calibration=path.parent / "expected/hdl64_db.xml"))
    assert sum(map(len, clouds)) > 50_000
    with pytest.raises(rl.MissingFileError):
        rl.open(path).vel.revolutions(calibration=tmp_path / "no.xml")
    (tmp_path / "a.xml").write_text("<nothing/>")
    with pytest.raises(rl.UnreadableError) as wrong:
        rl.open(path).vel.revolutions(calibration=tmp_path / "a.xml")
    assert wrong.value.path == str(tmp_path / "a.xml")


@pytest.mark.parametrize("case", sorted(CORPUS.glob("expected/rosbag/*.json")), ids=lambda path: path.stem)
def test_connections_of_the_corpus(case: pathlib.Path) -> None:
    truth = json.loads(case.read_text(encoding="utf-8"))
    if truth["open"] == "refused" or "connections" not in truth.get("rosbag", {}):
        # These cases are about how a bag is opened.
        return
    log = rl.open(case_log(case))
    got = log.bag.connections
    assert [found.name for found in got] == list(log.topics)
    want = truth["rosbag"]["connections"]
    facts = [(found.name, found.type, found.md5sum, found.latched, found.callerids) for found in got]
    assert facts == [(w["topic"], w["type"], w["md5"], w["latched"], w["callerids"]) for w in want]
    # A second type on a topic has its own name. Bytes that are not UTF-8 are escaped.
    assert all(found.topic == found.name.split("#")[0] or "\\x" in found.name for found in got)
    assert [found.latching for found in got] == [w["latched"] > 0 for w in want]


def test_format_specific_data_raise_for_other_formats(flight: pathlib.Path) -> None:
    log = rl.open(flight)
    for name, what in (("rld", "is ULog, not RLD log"), ("vel", "not VEL log"), ("bag", "not ROS bag")):
        with pytest.raises(rl.UnsupportedError, match=what):
            getattr(log, name)
    with pytest.raises(rl.UnsupportedError, match="is RLD, not ULog"):
        rl.open(CORPUS / "rld/v4.rld").ulog  # noqa: B018


def test_declared_message_types_are_decoded(tmp_path: pathlib.Path) -> None:
    path = CORPUS / "vel/own-type.vel"
    truth = json.loads((CORPUS / "expected/vel/own-type.json").read_text())
    types = tmp_path / "types.txt"
    types.write_text(truth["vel"]["declarations"])
    assert "CompassM" not in rl.open(path)
    for source in (path, path.read_bytes()):
        log = rl.open(source, types=types)
        got = [m.fields() for m in log.messages("CompassM")]
        assert got == [want["data"] for want in truth["records"] if want["topic"] == "CompassM"] and got
        assert log["CompassM"].select("heading").numpy()["heading"].tolist() == [90.25, 90.25]
    types.write_text("message\n")
    with pytest.raises(ValueError, match="types.txt"):
        rl.open(path, types=types)
    with pytest.raises(rl.MissingFileError):
        rl.open(path, types=tmp_path / "no.txt")
