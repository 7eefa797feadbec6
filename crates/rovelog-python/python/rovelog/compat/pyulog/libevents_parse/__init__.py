"""The events of PX4, by their definitions."""
