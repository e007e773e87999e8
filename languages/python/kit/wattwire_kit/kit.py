"""The class that cells use; languages/python/README.md describes the API.

Each part is a separate file and imports only the parts above it:

    schedule.py, native_timer.py    the next message and its due time
    core.py                         opening, counts, the end
    replies.py, arrivals.py         checks and records of arrivals
    sending.py                      a sender's schedule and its SENT
    blocking.py, events.py          the two front ends of that schedule
    actions.py                      goals, acceptances, feedback
    relays.py                       messages that a relay forwards
    members.py                      the publishers and subscribers of a member
"""

from __future__ import annotations

from .actions import ActionClient, ActionServer
from .blocking import BlockingSender
from .members import Members
from .relays import Relays


class Kit(Members, BlockingSender, ActionClient, ActionServer, Relays):
    """One node of one run; `run` passes it to the role's function."""
