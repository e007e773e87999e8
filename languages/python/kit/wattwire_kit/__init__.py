"""The Python kit of the node contract. API: languages/python/README.md."""

from .kit import Goal, Kit, SendFailed, Slot
from .main import run
from .spec import BadSpec, MiddlewareFailed, Unsupported

__all__ = [
    "BadSpec",
    "Goal",
    "Kit",
    "MiddlewareFailed",
    "SendFailed",
    "Slot",
    "Unsupported",
    "run",
]
