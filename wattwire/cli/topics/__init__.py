"""Implement `wattwire topics`: its dialogue with the probe, its table and its remarks."""
