"""Sentences as data, in a table of texts by key with placeholders for values.

Each file of the report begins with such a table, in the order of the page:

    PHRASES = Phrases("design", {"skipped": "{treatments:plural treatment} skipped"})

`PHRASES("skipped", treatments=7)` is a Phrase. It contains the text for the reader, the key
"design.skipped" and the unformatted values. Tests assert the key and the values, so rewriting a
sentence changes only its table. tests/tidy checks every call against its table.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model import words


class Phrase(str):
    """A text with its `key` and its unformatted `values`, which may be phrases."""

    key: str
    values: Mapping[str, Any]

    def __new__(
        cls, text: str = "", key: str = "", values: Mapping[str, Any] | None = None
    ) -> Phrase:
        phrase = super().__new__(cls, text)
        phrase.key, phrase.values = key, values or {}
        return phrase


def joined(phrases: Iterable[str], separator: str = " ") -> Phrase:
    """Join nonempty phrases into a Phrase that contains them as values."""
    kept = tuple(phrase for phrase in phrases if phrase)
    return Phrase(separator.join(kept), "joined", {"phrases": kept})


def _plural(amount: Any, nouns: str) -> str:
    """Return `amount` with its noun. `nouns` is "run" or, if irregular, "query/queries"."""
    singular, _, plural = nouns.partition("/")
    return words.plural(amount, singular, plural or None)


def _number(value: Any, digits: str) -> str:
    return words.number(value, int(digits)) if digits else words.number(value)


def _percent(share: Any, digits: str) -> str:
    return words.percent(share, int(digits)) if digits else words.percent(share)


def _listed(names: Any, most: str) -> str:
    return words.listed_first(list(names), int(most)) if most else words.listed(list(names))


FORMATS: Mapping[str, Callable[[Any, str], str]] = {
    "number": _number,
    "percent": _percent,
    "plural": _plural,
    "listed": _listed,
    "count": lambda value, _: words.count(value),
    "duration": lambda seconds, _: words.duration(seconds),
    "confidence": lambda level, _: words.confidence(level),
    "margin": lambda margin, _: f"{100 * margin:.4g} %",
    "factor": lambda ratio, _: words.factor(ratio),
    "points": lambda points, _: f"{'+' if points > 0 else ''}{words.number(points, 2)}",
    "p": lambda p, digits: words.p_equals(p, int(digits or 2)),
    "capital": lambda text, _: f"{text[:1].upper()}{text[1:]}",
    "lower": lambda text, _: f"{text[:1].lower()}{text[1:]}",
    "estimate": lambda interval, _: _limits(interval)[0],
    "limits": lambda interval, _: " to ".join(_limits(interval)[1:]),
    "interval": lambda interval, _: "{} [{}, {}]".format(*_limits(interval)),
}
"""First word of a placeholder's format → function of the value and the rest of the format. Other
formats are Python formats, such as {share:.1f}.
"""


def _limits(interval: Any) -> tuple[str, str, str]:
    return words.limits(interval.estimate, interval.low, interval.high)


@dataclass(frozen=True)
class _Template:
    """A parsed text, as pieces of literal text and the placeholder that follows each piece."""

    pieces: tuple[tuple[str, str | None, str], ...]
    names: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Template:
        pieces = []
        for literal, name, layout, conversion in string.Formatter().parse(text):
            if name is not None and (not name.isidentifier() or conversion):
                raise ValueError(f'placeholder "{name}" in "{text}": allowed: a plain name')
            pieces.append((literal, name, layout or ""))
        return cls(tuple(pieces), frozenset(name for _, name, _ in pieces if name is not None))

    def filled(self, values: Mapping[str, Any]) -> str:
        texts = []
        for literal, name, layout in self.pieces:
            texts.append(literal)
            if name is not None:
                texts.append(_formatted(values[name], layout))
        return "".join(texts)


def _formatted(value: Any, layout: str) -> str:
    first, _, rest = layout.partition(" ")
    return FORMATS[first](value, rest) if first in FORMATS else format(value, layout)


class Phrases:
    """The texts of a file by key. The key of each phrase begins with `name` and a dot."""

    def __init__(self, name: str, templates: Mapping[str, str]) -> None:
        self._name = name
        self._templates = {key: _Template.of(text) for key, text in templates.items()}

    def __call__(self, key: str, /, **values: Any) -> Phrase:
        """Return the text of `key`.

        Raises KeyError for an unknown key, and TypeError unless `values` match the placeholders.
        """
        full_key = f"{self._name}.{key}"
        template = self._templates.get(key)
        if template is None:
            raise KeyError(f"{full_key}: no such phrase; known: {', '.join(self._templates)}")
        if template.names != values.keys():
            missing, unused = template.names - values.keys(), values.keys() - template.names
            raise TypeError(f"{full_key}: missing {sorted(missing)}, unused {sorted(unused)}")
        return Phrase(template.filled(values), full_key, values)
