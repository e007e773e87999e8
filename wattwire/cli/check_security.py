"""Give the conformance suite what it needs to check a secured cell (C-43)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wattwire.catalog import Cell
from wattwire.catalog.services import setting_words
from wattwire.model.setting_purposes import SECURED, SECURITY
from wattwire.run.credentials import Authority, Subject, credential_files

ELSEWHERE = "192.0.2.1"
"""An address that no host has (RFC 5737)."""
PRIVATE_MODE = 0o600
Issue = Callable[[Path, str], dict[str, str]]


def security_of(
    suite: Any,
    cell: Cell,
    addresses: tuple[str, ...],
    absent: str,
    start_services: Callable[..., Any],
) -> Any:
    """Return how a cell is secured as a value of the suite, or None.

    `addresses` are those of the hosts of nodes and services. `start_services` starts the services
    of a cell with settings and credentials.
    """
    setting = cell.middleware.setting_with(SECURITY)
    if setting is None:
        return None
    settings = {**cell.first_settings, setting: SECURED}

    def service(paths: Mapping[str, str]) -> Any:
        return start_services(settings, paths)

    def issuer() -> Issue:
        return _issuer(suite, cell, settings, addresses)

    # Signed permissions admit the subject of a certificate, not an address.
    checks_addresses = not cell.middleware.security_documents
    return suite.Security(setting, issuer, service, absent, checks_addresses)


def _issuer(
    suite: Any, cell: Cell, settings: Mapping[str, Any], addresses: tuple[str, ...]
) -> Issue:
    """Return a function that writes credentials of one new authority, or with a fault."""
    authority, other = Authority(), Authority()
    # The tokens of the suite's nodes are not known yet, so documents name none.
    words = {"token": "", **setting_words(settings)}

    def issue(folder: Path, fault: str) -> dict[str, str]:
        is_other = fault == suite.OTHER_AUTHORITY
        yesterday = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        subject = Subject(
            folder.name,
            (ELSEWHERE,) if fault == suite.OTHER_ADDRESS else addresses,
            cell.middleware.security_documents,
            words,
            other.certificate if is_other else b"",
            {"not_after": yesterday} if fault == suite.EXPIRED else {},
        )
        folder.mkdir(parents=True, exist_ok=True)
        paths = {}
        files = credential_files(authority, other if is_other else authority, subject)
        for key, (name, content) in files.items():
            path = folder / name
            path.touch(PRIVATE_MODE)
            path.write_bytes(content)
            paths[key] = str(path)
        return paths

    return issue
