"""Parse the documents of many runs into little memory.

Runs of the same cells share most of their documents. Equal parts become one object, which must not
be changed, and all documents of a batch share the texts of their keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wattwire.store.files import read_json, read_text

RUN_KEYS = ("attempt", "cells", "levels", "nodes", "outcome", "run")
DEPLOYMENT_KEYS = ("flows", "hosts", "links", "nodes", "processes")
"""Keys that every reader needs."""
BATCH_CHARACTERS = 1 << 20
SHARED_MAX = 256
"""Maximum number of kept values of each key, for campaigns whose runs all differ."""
SHARED_KEYS = ("treatment", "levels", "cells", "environments")
READY_KEYS = ("library", "effective", "guarantee")
_SERIES = '"series": '
_decoder = json.JSONDecoder()


class RunDocuments:
    """A parser that returns one object for the equal parts of all documents."""

    def __init__(self) -> None:
        self._series: list[tuple[str, Any]] = []
        self._deployments: dict[str, Any] = {}
        self._values: dict[str, list[Any]] = {}

    def read(self, folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
        """Yield run.json of each folder with the content of deployment.json.

        Raise UsageError for a damaged or missing document.
        """
        pending: list[tuple[Path, str]] = []
        characters = 0
        for folder in folders:
            text = read_text(folder / "run.json")
            pending.append((folder, text))
            characters += len(text)
            if characters > BATCH_CHARACTERS:
                yield from self._parsed(pending)
                pending, characters = [], 0
        yield from self._parsed(pending)

    def _parsed(self, pending: Sequence[tuple[Path, str]]) -> Iterator[dict[str, Any]]:
        cut = [self._without_series(text) for _, text in pending]
        try:
            documents = json.loads(f"[{','.join(text for text, _ in cut)}]")
        except ValueError:
            documents = []
        is_whole = len(documents) == len(pending)  # a damaged file can close the array early
        for index, (folder, _) in enumerate(pending):
            document: dict[str, Any]
            if is_whole and _accept(documents[index], cut[index][1]):
                document = documents[index]
            else:
                document = read_json(folder / "run.json", RUN_KEYS)
            self._share(document)
            document["deployment"] = self._deployment(folder / "deployment.json")
            yield document

    def _without_series(self, text: str) -> tuple[str, Any]:
        """Return the text with null for the list of series, and the list.

        The list is two thirds of a document, and few runs differ in it.
        """
        begin = text.find(_SERIES) + len(_SERIES)
        if begin < len(_SERIES):
            return text, None
        for known, series in self._series:
            if text.startswith(known, begin):
                return f"{text[:begin]}null{text[begin + len(known) :]}", series
        try:
            series, end = _decoder.raw_decode(text, begin)
        except ValueError:
            return text, None
        if not isinstance(series, list) or len(self._series) >= SHARED_MAX:
            return text, None
        self._series.append((text[begin:end], series))
        return f"{text[:begin]}null{text[end:]}", series

    def _deployment(self, path: Path) -> Any:
        text = read_text(path)
        if text not in self._deployments:
            deployment = read_json(path, DEPLOYMENT_KEYS)
            if len(self._deployments) >= SHARED_MAX:
                return deployment
            self._deployments[text] = deployment
        return self._deployments[text]

    def _share(self, document: dict[str, Any]) -> None:
        tables: list[tuple[Any, Sequence[str]]] = [(document, SHARED_KEYS)]
        tables.append((document.get("sampling"), ("absent",)))
        nodes = document["nodes"] if isinstance(document["nodes"], list) else []
        tables += [(node.get("ready"), READY_KEYS) for node in nodes if isinstance(node, dict)]
        for table, keys in tables:
            for key in keys if isinstance(table, dict) else ():
                if key in table:
                    table[key] = self._equal_value(key, table[key])

    def _equal_value(self, key: str, value: Any) -> Any:
        """Return an equal value of an earlier document, or the value."""
        values = self._values.setdefault(key, [])
        equal = next((earlier for earlier in values if earlier == value), None)
        if equal is None and len(values) < SHARED_MAX:
            values.append(value)
        return value if equal is None else equal


def _accept(document: Any, series: Any) -> bool:
    """Put the series into a document. Return whether the document is complete."""
    if not isinstance(document, dict) or not set(RUN_KEYS) <= set(document):
        return False
    if series is None:
        return True
    sampling = document.get("sampling")
    if not isinstance(sampling, dict) or sampling.get("series", series) is not None:
        return False  # the text had another list of this name before
    sampling["series"] = series
    return True
