"""The DDS domain of a run, for which the signed documents of DDS Security are valid."""

from __future__ import annotations

from collections.abc import Mapping

DOMAIN = "settings.domain"
DERIVED_DOMAINS = 100


def domain_of(words: Mapping[str, str]) -> int:
    """Return the setting `domain` or, if it is 0 or does not exist, a domain from 1 to 100.

    The FNV-1a hash of the run token determines it. Nodes derive the same domain, so that it is in
    no spec; a document for another domain refuses them.
    """
    domain = int(words.get(DOMAIN, "0"))
    if domain:
        return domain
    state = 0x811C9DC5
    for byte in words["token"].encode():
        state = ((state ^ byte) * 0x01000193) % 2**32
    return 1 + state % DERIVED_DOMAINS
