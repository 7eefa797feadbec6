"""Writes the point cloud of one Velodyne revolution as a PLY file for CloudCompare or MeshLab.

python point_cloud.py LOG OUT.ply [NUMBER]
"""

import itertools
import sys

import numpy as np

import rovelog as rl

log = rl.open(sys.argv[1])
number = int(sys.argv[3]) if len(sys.argv) > 3 else 0
cloud = next(itertools.islice(log.vel.revolutions("x", "y", "z", "intensity"), number, None), None)
if cloud is None:
    sys.exit(f"{log.name} has no revolution {number}")
columns = cloud.numpy()
names = ("x", "y", "z", "intensity")
points = np.column_stack([columns[name].astype("<f4") for name in names])
properties = "".join(f"property float {name}\n" for name in names)
with open(sys.argv[2], "wb") as out:
    out.write(f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n{properties}end_header\n".encode())
    out.write(points.tobytes())
print(f"{log.name}: {len(points)} points of revolution {number}, from {points[:, 2].min():.2f} m to {points[:, 2].max():.2f} m high")
