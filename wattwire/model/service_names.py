"""Names of service processes, and the service that a process belongs to."""

from __future__ import annotations

import re

_AGAIN = re.compile(r"\.try\d+$")


def process_of(service: str, attempt: int) -> str:
    """Return the name of the process of one attempt, counted from 0, to start a service."""
    return f"{service}.try{attempt}" if attempt else service


def service_of(process: str) -> str:
    """Return the service of a process, for any attempt to start the service.

    A broker that failed because its port was taken is still the broker.
    """
    return _AGAIN.sub("", process)
