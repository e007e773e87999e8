"""Make the credentials of a run, and place on each host only those of its own processes."""

from wattwire.run.credentials.authority import Authority, Identity
from wattwire.run.credentials.placed import KEYS, Subject, credential_words, place

__all__ = ["KEYS", "Authority", "Identity", "Subject", "credential_words", "place"]
