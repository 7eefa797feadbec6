"""Parser for PX4 events and their definitions."""
