"""Place the credentials of a run: each host gets those of its own processes, and no others."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wattwire.hosts.host import Host
from wattwire.rig.builds import substitute
from wattwire.run.credentials.authority import Authority, Identity
from wattwire.run.credentials.check import require_private
from wattwire.run.credentials.domains import domains_of

AUTHORITY, CERTIFICATE, KEY = "tls.authority", "tls.certificate", "tls.key"
SECURITY = "security."
"""Prefix of the spec keys of the signed documents; the manifest's table has the same names."""
KEYS = (AUTHORITY, CERTIFICATE, KEY, f"{SECURITY}governance", f"{SECURITY}permissions")
"""Spec keys of all credentials. Their values are paths."""
PRIVATE_MODE = 0o600
VALIDITY = datetime.timedelta(days=20 * 365)
"""Validity of signed documents before and after now: clocks of hosts may differ by years."""


@dataclass(frozen=True)
class Subject:
    """A process that gets an identity.

    - `addresses` are those of its host.
    - `documents` are the texts to sign (spec key → text), with placeholders in `words`.
    - `trusted` are further authorities (PEM), which it trusts before that of the run.
    - `validity` has the times `not_before` and `not_after` of its certificate, if they matter.
    """

    process: str
    addresses: tuple[str, ...]
    documents: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    trusted: bytes = b""
    validity: Mapping[str, Any] = field(default_factory=dict)


def place(
    authority: Authority,
    token: str,
    subjects: Iterable[tuple[Host, Subject]],
    signer: Authority | None = None,
) -> dict[str, dict[str, str]]:
    """Write the credentials of a run's processes to their hosts; return process → key → path.

    The identities and documents are those of `signer`, by default those of the `authority` that
    every process trusts. Raises MissingError if a host does not keep a private key private.
    """
    placed = {}
    for host, subject in subjects:
        files = credential_files(authority, signer or authority, subject)
        folder = host.private_folder(token) / subject.process
        host.make_folder(folder)
        paths = {key: folder / name for key, (name, _) in files.items()}
        for key, (_, content) in files.items():
            host.write(paths[key], content, mode=PRIVATE_MODE)
        require_private(host, paths[KEY])
        placed[subject.process] = {key: str(path) for key, path in paths.items()}
    return placed


def credential_files(
    authority: Authority, signer: Authority, subject: Subject
) -> dict[str, tuple[str, bytes]]:
    """Return spec key → name and content of each file of a process."""
    identity = signer.identity(subject.process, subject.addresses, **subject.validity)
    documents = signed_documents(signer, subject, identity)
    return {
        AUTHORITY: ("authority.pem", subject.trusted + authority.certificate),
        CERTIFICATE: ("certificate.pem", identity.certificate),
        KEY: ("key.pem", identity.key),
        **{key: (f"{key.removeprefix(SECURITY)}.p7s", text) for key, text in documents.items()},
    }


def signed_documents(signer: Authority, subject: Subject, identity: Identity) -> dict[str, bytes]:
    """Return the documents of a process, with placeholders filled in, signed by `signer`."""
    if not subject.documents:
        return {}
    now = datetime.datetime.now(datetime.timezone.utc)
    domain_min, domain_max = domains_of(subject.words)
    words = {
        **subject.words,
        "subject": identity.subject,
        "domain_min": str(domain_min),
        "domain_max": str(domain_max),
        "not_before": f"{now - VALIDITY:%Y-%m-%dT%H:%M:%S}",
        "not_after": f"{now + VALIDITY:%Y-%m-%dT%H:%M:%S}",
    }
    return {
        key: signer.signed(substitute([text], words, {})[0])
        for key, text in subject.documents.items()
    }


def credential_words(paths: Mapping[str, str]) -> dict[str, str]:
    """Return the placeholders of a service: the paths of its credentials, "" without any."""
    return {key: paths.get(key, "") for key in KEYS}
