"""Convert between the names of services and of their processes."""

from __future__ import annotations

import re

_AGAIN = re.compile(r"\.try\d+$")


def process_of(service: str, attempt: int) -> str:
    """Return the name of the process for an attempt (from 0) to start a service."""
    return f"{service}.try{attempt}" if attempt else service


def service_of(process: str) -> str:
    """Return the service of a process.

    If a broker fails because its port is in use, the process of the next attempt belongs to the
    same service.
    """
    return _AGAIN.sub("", process)
