"""Test that the documents of many runs are read completely, and that their equal parts are one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wattwire.model.errors import UsageError
from wattwire.store import run_documents
from wattwire.store.run_documents import RunDocuments

SERIES = [{"series": 0, "unit": "ns"}, {"series": 1, "unit": 'J "}, ['}]
DEPLOYMENT: dict[str, Any] = {"flows": [], "hosts": [], "links": [], "nodes": [], "processes": []}


def document(number: int, **changes: Any) -> dict[str, Any]:
    ready = {"library": {"name": "made up"}, "seen_ns": number}
    return {
        "run": f"b{number}", "attempt": 1, "cells": {"ping": "a/b"}, "levels": {"count": 5},
        "nodes": [{"ready": ready}, {"ready": None}], "outcome": "completed",
        "sampling": {"ticks": number, "series": SERIES}, "verdict": "valid", **changes,
    }  # fmt: skip


def stored(folder: Path, documents: list[dict[str, Any]], indent: int | None = None) -> list[Path]:
    folders = []
    for number, each in enumerate(documents):
        folders.append(folder / str(number))
        folders[-1].mkdir(parents=True)
        (folders[-1] / "run.json").write_text(json.dumps(each, indent=indent), "utf-8")
        (folders[-1] / "deployment.json").write_text(json.dumps(DEPLOYMENT), "utf-8")
    return folders


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("batch", [1, 700, 1 << 20])
def test_documents_are_those_of_their_files(tmp_path, monkeypatch, indent, batch) -> None:
    monkeypatch.setattr(run_documents, "BATCH_CHARACTERS", batch)
    documents = [document(number) for number in range(5)]
    documents[2] |= {"sampling": {"series": [7]}}
    documents[3] |= {"before": {"series": [1]}, "services": []}
    documents.append({"note": {"series": None, "own": 'a "series": b'}} | document(5))
    documents.append(document(6, sampling=None))
    folders = stored(tmp_path, documents, indent)
    expected = [{**document, "deployment": DEPLOYMENT} for document in documents]
    assert list(RunDocuments().read(folders)) == expected


def test_equal_parts_of_documents_are_one_object(tmp_path) -> None:
    folders = stored(tmp_path, [document(number) for number in range(3)])
    reader = RunDocuments()
    first, second = reader.read(folders[:2])
    (third,) = reader.read(folders[2:])
    for later in (second, third):
        assert later["levels"] is first["levels"]
        assert later["deployment"] is first["deployment"]
        assert later["sampling"]["series"] is first["sampling"]["series"]
        assert later["nodes"][0]["ready"]["library"] is first["nodes"][0]["ready"]["library"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"run": "x", "sampling": {"series": [1, ', "not valid JSON"),
        ("{}], [{}", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"run": "x"}', "not an object with attempt"),
        ("[1, 2]", "not an object with attempt"),
    ],
)
def test_a_damaged_document_is_named_among_sound_ones(tmp_path, text: str, words: str) -> None:
    folders = stored(tmp_path, [document(number) for number in range(3)])
    (folders[1] / "run.json").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=f"/1/run.json: damaged, {words}"):
        list(RunDocuments().read(folders))
    (folders[1] / "run.json").unlink()
    with pytest.raises(UsageError, match="/1/run.json: this file of the campaign is missing"):
        list(RunDocuments().read(folders))
    (folders[0] / "deployment.json").unlink()
    with pytest.raises(UsageError, match="/0/deployment.json: this file"):
        list(RunDocuments().read(folders[:1]))
