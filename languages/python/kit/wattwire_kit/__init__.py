"""The Python kit of the node contract. API: languages/python/README.md."""

from .actions import Goal
from .core import SendFailed
from .events import Slot
from .kit import Kit
from .main import run
from .record import UNREADABLE, Record
from .spec import POINT_BYTES, POINT_FIELDS, BadSpec, MiddlewareFailed, Unsupported

__all__ = [
    "POINT_BYTES",
    "POINT_FIELDS",
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
