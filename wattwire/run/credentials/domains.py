"""The DDS domains for which the signed documents of a run are valid."""

from __future__ import annotations

from collections.abc import Mapping

DOMAIN = "settings.domain"
DERIVED_DOMAINS = 100
DOMAIN_MAX = 230
"""The greatest domain that libraries accept in documents: port numbers end there."""


def domains_of(words: Mapping[str, str]) -> tuple[int, int]:
    """Return the first and the last domain.

    They are the domain of the process: the setting `domain` or, if it is 0 or does not exist, a
    domain from 1 to 100 that the FNV-1a hash of the key `run` of its spec determines, which is
    different in each flow. Nodes derive the same domain. Documents without it, such as those of the
    conformance suite, are for all domains.
    """
    domain, run = int(words.get(DOMAIN, "0")), words.get("run", "")
    if not domain and not run:
        return 0, DOMAIN_MAX
    if not domain:
        state = 0x811C9DC5
        for byte in run.encode():
            state = ((state ^ byte) * 0x01000193) % 2**32
        domain = 1 + state % DERIVED_DOMAINS
    return domain, domain
