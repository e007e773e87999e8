"""Run a probe that watches the messages of a running system."""
