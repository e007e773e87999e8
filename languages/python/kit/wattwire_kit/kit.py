"""What a cell calls: see languages/python/README.md for the whole API and its order.

Each part is a file of its own, and knows those above it only:

    schedule.py, native_timer.py    which message is next, and when it is due
    core.py                         opening, counts, the end
    replies.py, arrivals.py         what comes in: checked and recorded
    sending.py                      a sender's schedule and its SENT
    blocking.py, events.py          the two front ends of that schedule
    actions.py                      goals, acceptances, feedback
"""

from __future__ import annotations

from .actions import ActionClient, ActionServer
from .blocking import BlockingSender


class Kit(BlockingSender, ActionClient, ActionServer):
    """One node of one run. Made by `run`; a role function gets it."""
