"""Analyse work that a device does for a robot: its break-even, and emulated devices."""
