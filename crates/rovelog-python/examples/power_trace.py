"""Prints the energy of a power log: in total, and for each second.

python power_trace.py LOG [POWER]
"""

import sys

import rovelog as rl

log = rl.open(sys.argv[1])
power = sys.argv[2] if len(sys.argv) > 2 else "V1*I1"
current = power.rpartition("*")[2]
[whole] = log.rld.energy(power=power)
print(f"{log.name}: {power}")
# Rows in which neither range of the current is valid are not counted. `missing` has their number.
print(f"  energy {whole.energy[power]:.6g} J, charge {whole.charge[current]:.6g} C, {whole.missing[power]} rows missing")
for second in log.rld.energy("1s", power=power):
    joules = second.energy[power]
    if joules is None:
        print(f"  second {second.window}: no row counts")
    else:
        print(f"  second {second.window}: {joules / (second.duration_ns / 1e9):.6g} W")
