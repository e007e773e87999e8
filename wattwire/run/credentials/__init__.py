"""Make the credentials of a run, and place on each host only those of its own processes."""

from wattwire.run.credentials.authority import Authority, Identity
from wattwire.run.credentials.placed import (
    AUTHORITY,
    KEYS,
    Subject,
    credential_files,
    credential_words,
    place,
)

__all__ = [
    "AUTHORITY", "KEYS", "Authority", "Identity", "Subject", "credential_files", "credential_words",
    "place",
]  # fmt: skip
