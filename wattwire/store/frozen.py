"""Detect campaign documents that were edited after the campaign began.

The journal has a digest of each version that the controller wrote. A study is no longer registered
if its questions, margin or limits were changed later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

DOCUMENTS = ("study.json", "plan.json")
KEY = "frozen"
"""The journal's key: document → digests of the versions that wattwire wrote."""


def digest(document: Any) -> str:
    """Return a hash of the content of a document, independent of its layout."""
    text = json.dumps([document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def written(digests: Mapping[str, list[str]] | None, name: str, document: Any) -> dict[str, Any]:
    """Return the journal's digests with the digest of this version of a document added."""
    known = {key: list(versions) for key, versions in (digests or {}).items()}
    document_versions = known.setdefault(name, [])
    if digest(document) not in document_versions:
        document_versions.append(digest(document))
    return known


def is_edited(digests: Mapping[str, list[str]] | None, name: str, document: Any) -> bool:
    """Return whether a document differs from all versions that wattwire wrote.

    `digests` are those of the journal. A document without a digest counts as unedited.
    """
    known = (digests or {}).get(name)
    return known is not None and digest(document) not in known
