"""Implement `wattwire exec`: its options as a study, and its tables."""
