"""The build of the Python package, used by setup.py: one idea per module."""
