"""Which of a campaign's documents are no longer what they were when it began.

The journal keeps a digest of each version that the controller wrote. A study whose questions,
margin or limits were changed afterwards is no registered one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from wattwire.model.study import ONLY

DOCUMENTS = ("study.json", "plan.json")
KEY = "frozen"
"""The journal's key: document → digests of the versions that wattwire wrote."""


def digest(document: Any) -> str:
    """Return a hash of what a document says, whatever its layout."""
    text = json.dumps([document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def written(digests: Mapping[str, list[str]] | None, name: str, document: Any) -> dict[str, Any]:
    """Return the journal's digests with this version of a document among them."""
    known = {key: list(of) for key, of in (digests or {}).items()}
    of_document = known.setdefault(name, [])
    if digest(document) not in of_document:
        of_document.append(digest(document))
    return known


def is_edited(journal: Mapping[str, Any], name: str, document: Any) -> bool:
    """Whether a document is none of the versions that wattwire wrote.

    `journal` holds the values of KEY and "identity", which of campaigns of old has a digest of the
    study without its name; of their plan nobody knows.
    """
    digests = (journal.get(KEY) or {}).get(name)
    if digests is not None:
        return digest(document) not in digests
    before = (journal.get("identity") or {}).get("study")
    if name != "study.json" or before is None or not isinstance(document, dict):
        return False
    return digest({k: v for k, v in document.items() if k not in ("name", ONLY)}) != before
