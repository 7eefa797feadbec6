"""Where the reference readers of ROS bags say something else than rovelog, and why."""

REASONS = {}
INTENDED = []
