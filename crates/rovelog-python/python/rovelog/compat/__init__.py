"""Drop-in replacements for older packages: change the import, keep the script."""
