"""The Python kit of the node contract. API: languages/python/README.md."""

from .actions import Goal
from .core import SendFailed
from .events import Slot
from .kit import Kit
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
