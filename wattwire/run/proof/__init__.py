"""Prove the security of a treatment in a control run: uninvited nodes, and the fill on the link."""

from __future__ import annotations

WAIT_S = 5.0
"""Time for uninvited nodes to find their way in, before the messages of the run begin."""
