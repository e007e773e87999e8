"""Names of levels and columns as a chart can hold them, whatever a table or a study called them."""

from __future__ import annotations

import re
from functools import lru_cache

UNDRAWABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)
INHERITED = frozenset(
    {"__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__",
     "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
     "toString", "valueOf"}
)  # fmt: skip
"""What every object of JavaScript has: Object.getOwnPropertyNames(Object.prototype)."""


@lru_cache(maxsize=10_000)
def drawable(text: str) -> str:
    """Return `text` as a chart may hold it: by its number where no letter can be drawn.

    Vega looks words up in plain JavaScript objects, where constructor is found although nobody
    put it there; a no-break space after it makes it another word that looks the same. Control
    characters end its parser and SVG alike, and so does half of a pair of surrogates.
    """
    text = UNDRAWABLE.sub(lambda letter: f"[U+{ord(letter[0]):04X}]", text)
    return f"{text}\u00a0" if text in INHERITED else text
