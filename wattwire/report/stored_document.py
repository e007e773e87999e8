"""Write the document of a report to files, and read it again without the campaign.

- analysis.json: the values of the document, and under `results` the other files with the SHA-256
  digest of each
- results.json: the header of the page, and the result of each topic in a line
- series/*.parquet: the long sequences of the results, such as the points of charts
"""

from __future__ import annotations

import hashlib
import json
import typing
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from wattwire import __version__
from wattwire.analysis.document import VERSION, Document
from wattwire.analysis.header import Header
from wattwire.analysis.result_codec import UnreadableResult, decoded, encoded, plain
from wattwire.analysis.stored_tables import StoredTable
from wattwire.analysis.topics import topics
from wattwire.model.errors import UsageError

VALUES, RESULTS, SERIES = "analysis.json", "results.json", "series"
FILES_KEY = "results"
"""Key of analysis.json with the digests of the other files."""
REFERENCE = "_series"
"""The only key of an object in results.json that stands for a table; its value is the file."""
AGAIN = "Write the report again with `wattwire report DIR`"


def write_document(document: Document, folder: Path) -> None:
    """Write the document to a folder, replacing an older document.

    Raises TypeError if a result has a value that its type does not allow.
    """
    (folder / SERIES).mkdir(parents=True, exist_ok=True)
    for path in (folder / SERIES).glob("*.parquet"):
        path.unlink()
    tables = _Tables(folder)
    header = tables.text("header", document.header, Header)
    topic_lines = ",\n".join(
        f'"{name}": {tables.text(name, result, result_type(name))}'
        for name, result in document.results.items()
    )
    text = f'"wattwire": "{__version__}",\n"header": {header},\n"topics": {{\n{topic_lines}\n}}'
    (folder / RESULTS).write_text(f"{{{text}}}\n", "utf-8")
    files = {name: _digest(folder / name) for name in (RESULTS, *tables.names)}
    values = json.dumps({**document.values, FILES_KEY: files}, indent=1, allow_nan=False)
    (folder / VALUES).write_text(f"{values}\n", "utf-8")


def read_document(path: Path) -> Document:
    """Return the document whose analysis.json is `path`.

    Raises UsageError if a file is missing, is no document, or was changed, and if another version
    of wattwire wrote results that this one does not have.
    """
    values = _values(path)
    files = values.pop(FILES_KEY)
    for name, digest in {RESULTS: None, **files}.items():
        _check_content(path, name, digest)
    where = path.parent / RESULTS
    stored = _json(where, object_hook=lambda entry: _with_table(path.parent, files, entry))
    writer = stored.get("wattwire") if isinstance(stored, dict) else None
    try:
        kinds = {name: result_type(name) for name in topics()}
        _compare_names(stored["topics"], kinds)
        results = {name: _read(name, stored["topics"][name], kinds[name]) for name in kinds}
        return Document(results, values, _read("header", stored["header"], Header))
    except (UnreadableResult, KeyError, TypeError) as error:
        raise UsageError(
            f"{where}: {error}. wattwire {writer} wrote this file, and this is wattwire "
            f"{__version__}. {AGAIN}, or use the version that wrote it."
        ) from error


def result_type(topic: str) -> Any:
    """Return the annotated type of a topic's result."""
    return typing.get_type_hints(topics()[topic].compute)["return"]


class _Tables:
    """Writes each series of a result to a file, and names the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names: list[str] = []

    def text(self, topic: str, result: Any, kind: Any) -> str:
        """Return a result as JSON, whose series are files."""
        first = len(self.names)

        def stored(value: Any) -> Any:
            if not isinstance(value, StoredTable):
                return plain(value)
            name = f"{SERIES}/{topic}-{len(self.names) - first + 1}.parquet"
            value.frame.write_parquet(self._folder / name)
            self.names.append(name)
            return {REFERENCE: name}

        return json.dumps(encoded(result, kind), default=stored, allow_nan=False)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(path: Path, object_hook: Any = None) -> Any:
    try:
        return json.loads(path.read_text("utf-8"), object_hook=object_hook)
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: found no JSON document ({error}); the file is empty, cut or not of a report. "
            f"{AGAIN}."
        ) from error


def _values(path: Path) -> dict[str, Any]:
    """Return the content of analysis.json, of a version that this program reads."""
    if not path.is_file():
        raise UsageError(
            f"{path}: this file does not exist; allowed: the {VALUES} of a report, such as "
            f"DIR/report/{VALUES}. {AGAIN}."
        )
    values = _json(path)
    if not isinstance(values, dict) or "version" not in values:
        raise UsageError(
            f"{path}: found no key `version`; allowed: the {VALUES} of a report. {AGAIN}."
        )
    if values["version"] != VERSION:
        raise UsageError(
            f"{path}: version: found {values['version']!r}, allowed: {VERSION}. {AGAIN}, or use "
            "the version of wattwire that wrote the file."
        )
    files = values.get(FILES_KEY)
    if not isinstance(files, dict) or not all(map(_is_inside, files)):
        raise UsageError(
            f"{path}: {FILES_KEY}: found {files!r}, allowed: the files next to it with their "
            f"digests. {AGAIN}."
        )
    return values


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return not PurePosixPath(name).is_absolute() and ".." not in parts


def _check_content(path: Path, name: str, digest: Any) -> None:
    """Raise UsageError if a file next to analysis.json is missing or has another content."""
    file = path.parent / name
    if not file.is_file():
        raise UsageError(
            f"{file}: this file does not exist, but {path.name} refers to it. Copy the whole "
            f"folder of the report. {AGAIN} if the file is lost."
        )
    if _digest(file) != digest:
        raise UsageError(
            f"{file}: the content is not that of {path.name}; the file was cut or changed, or "
            f"belongs to another report. {AGAIN}."
        )


def _with_table(folder: Path, files: Mapping[str, Any], entry: dict[str, Any]) -> Any:
    """Return the table for an object that refers to one, and any other object as it is."""
    name = entry.get(REFERENCE) if len(entry) == 1 else None
    is_table = isinstance(name, str) and name in files
    return StoredTable(pl.read_parquet(folder / str(name), glob=False)) if is_table else entry


def _compare_names(stored: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    missing, unknown = kinds.keys() - stored.keys(), stored.keys() - kinds.keys()
    if missing or unknown:
        texts = [f"no result of {', '.join(sorted(missing))}"] if missing else []
        texts += [f"unknown topic {', '.join(sorted(unknown))}"] if unknown else []
        raise UnreadableResult("; ".join(texts))


def _read(name: str, values: Any, kind: Any) -> Any:
    try:
        return decoded(values, kind)
    except UnreadableResult as error:
        raise UnreadableResult(f"{name}: {error}") from error
