"""Compares the causes that `rovelog findings` reports with those of PX4's flight-review-rs.

usage: findings.py ROVELOG REAL

The fixtures are the files `crates/converter/tests/fixtures/*.ulg` of github.com/PX4/flight-review-rs. They are expected in
the folder `ulog/flight-review-rs` of the real logs. The causes and times are those of its snapshots (commit 0b1d5ee).
"""

import pathlib
import sys

import rovelog_cli

# Maximum difference of the times in seconds.
NEAR = 1.0

# Fixture, id of flight-review-rs, kind of rovelog, and time in seconds. Repetitions of the same cause are left out.
CAUSES = [
    ("battery_brownout", "battery_brownout", "battery-brownout", 158.986930),
    ("ekf_failure", "ekf_failure (velocity)", "ekf-innovation", 117.349822),
    ("ekf_failure", "ekf_failure (position)", "ekf-innovation", 117.939397),
    ("gps_interference", "gps_interference", "gps-interference", 276.594637),
    ("motor_failure", "motor_failure", "motor-failure", 5081.817622),
]

# A fixture in which flight-review-rs finds nothing.
CLEAN = "sample"


def findings(binary, log):
    return rovelog_cli.document(binary, "findings", log)["findings"]


def seconds(finding):
    return int(finding["t_ns"]) / 1e9


def main():
    binary, real = sys.argv[1:]
    folder = pathlib.Path(real) / "ulog" / "flight-review-rs"
    names = sorted({cause[0] for cause in CAUSES} | {CLEAN})
    missing = [name for name in names if not (folder / f"{name}.ulg").is_file()]
    if missing:
        print(f"SKIPPED: no fixtures of flight-review-rs in {folder}: {', '.join(missing)}")
        return 0
    found = {name: findings(binary, folder / f"{name}.ulg") for name in names}
    different = 0
    for name, theirs, kind, time in CAUSES:
        same = [finding for finding in found[name] if finding["kind"] == kind]
        nearest = min(same, key=lambda finding: abs(seconds(finding) - time), default=None)
        is_near = nearest is not None and abs(seconds(nearest) - time) <= NEAR
        ours = f"{kind} {nearest['severity']} at {seconds(nearest):.3f} s" if nearest else "nothing"
        print(f"{'same' if is_near else 'DIFFERENT'}: {name}: {theirs} at {time:.3f} s, rovelog: {ours}")
        different += not is_near
    for finding in found[CLEAN]:
        if finding["severity"] == "high":
            print(f"DIFFERENT: {CLEAN}: nothing, rovelog: {finding['kind']} high at {seconds(finding):.3f} s")
            different += 1
    print(f"{len(CAUSES)} causes compared, {different} different")
    return 1 if different else 0


sys.exit(main())
