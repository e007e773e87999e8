"""What the process of a service is called, and which service it is."""

from __future__ import annotations

import re

_AGAIN = re.compile(r"\.try\d+$")


def process_of(service: str, attempt: int) -> str:
    """Return the name of the process that is this attempt, from 0, to start a service."""
    return f"{service}.try{attempt}" if attempt else service


def service_of(process: str) -> str:
    """Return the service that a process is: a broker that found its port taken is the broker."""
    return _AGAIN.sub("", process)
