"""Drop-in replacements for older packages. A script only has to change its import."""
