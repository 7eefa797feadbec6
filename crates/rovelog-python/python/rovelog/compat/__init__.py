"""Drop-ins for older packages: change the import, keep the script."""
