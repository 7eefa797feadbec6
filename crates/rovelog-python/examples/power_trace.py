"""The energy of a power trace: volts times amperes, summed over the time that the log tells.

python power_trace.py LOG [VOLTAGE CURRENT]
"""

import sys

import numpy as np

import rovelog as rl

log = rl.open(sys.argv[1])
volts, amperes = sys.argv[2:4] if len(sys.argv) > 3 else ("V1", "I1H")
columns = log["samples"].select(volts, amperes).numpy()
seconds = np.diff(columns["t_ns"]) / 1e9
# A value out of range is NaN: it counts for nothing, and that is said.
power = columns[volts][:-1] * columns[amperes][:-1]
known = np.isfinite(power)
print(f"{log.name}: {volts} * {amperes}")
print(f"  energy {np.sum(power[known] * seconds[known]):.6g} J in {seconds.sum():.3f} s")
print(f"  mean power {np.mean(power[known]):.6g} W; {np.count_nonzero(~known)} samples out of range")
