"""The Python kit of the node contract. API: languages/python/README.md."""

from .kit import Goal, Kit, SendFailed, Slot
from .main import run
from .record import UNREADABLE, Record
from .spec import BadSpec, MiddlewareFailed, Unsupported

__all__ = [
    "UNREADABLE",
    "BadSpec",
    "Goal",
    "Kit",
    "MiddlewareFailed",
    "Record",
    "SendFailed",
    "Slot",
    "Unsupported",
    "run",
]
