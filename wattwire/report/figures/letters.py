"""Convert names of levels and columns to text that Vega can draw."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

UNDRAWABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)
INHERITED = frozenset(
    {"__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__",
     "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
     "toString", "valueOf"}
)  # fmt: skip
"""Properties that every JavaScript object inherits (Object.getOwnPropertyNames)."""


def all_drawable(texts: Collection[str]) -> bool:
    """Return whether `drawable` changes none of the texts."""
    return INHERITED.isdisjoint(texts) and UNDRAWABLE.search("\n".join(texts)) is None


@lru_cache(maxsize=10_000)
def drawable(text: str) -> str:
    """Return `text` with each undrawable character replaced by its code point.

    Vega uses names as keys of plain JavaScript objects, which inherit properties such as
    "constructor". An invisible no-break space after such a name avoids the clash. Control
    characters and lone surrogates break Vega's parser and SVG.
    """
    text = UNDRAWABLE.sub(lambda letter: f"[U+{ord(letter[0]):04X}]", text)
    return f"{text}\u00a0" if text in INHERITED else text
