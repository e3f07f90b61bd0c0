"""Runs of minutes, at full scale: `make endurance`. Smaller ones of their kind are in the suite."""
