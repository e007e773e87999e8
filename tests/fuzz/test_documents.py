"""Test that studies and manifests are accepted, or refused with a UsageError naming the place."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator
from wattwire.catalog import Catalog, manifest
from wattwire.catalog.rigs import links_of_rig, placed_keys
from wattwire.cli.studies import change
from wattwire.design import cautions, expand
from wattwire.model.errors import UsageError
from wattwire.model.links.profile import read_link
from wattwire.model.rig import read_rig
from wattwire.model.study import apply_preset, parse_study

ROOT = Path(__file__).resolve().parents[2]
TREATMENTS_MAX = 500


def documents(pattern: str) -> list[dict[str, Any]]:
    return [manifest.read_toml(path) for path in sorted(ROOT.glob(pattern))]


def study_is_taken(document: dict[str, Any], preset: str | None, wanted: str) -> bool:
    try:
        merged = apply_preset(document, preset, "FILE")
        if wanted:
            merged = change(merged, wanted)
        study = parse_study("fuzz", merged, "FILE")
        if math.prod(len(levels) for levels in study.factors.values()) > TREATMENTS_MAX:
            return True
        treatments = [treatment for treatment, _ in expand(study)]
        cautions(study, treatments)
    except UsageError as error:
        assert len(str(error)) > 10
        return False
    return True


def test_a_study_is_taken_or_refused(cases: Cases) -> None:
    found = documents("studies/*/study.toml")
    assert all(study_is_taken(document, None, "") for document in found)
    for seed in cases(3_000):
        mutator = Mutator(seed)
        document = mutator.table(mutator.random.choice(found))
        preset = mutator.random.choice((None, "quick", "smoke", "none"))
        wanted = mutator.text("factors.clients=[1,2]") if seed % 4 == 0 else ""
        study_is_taken(document, preset, wanted)


KINDS = {
    "languages/python/language.toml": "languages/*/language.toml",
    "middleware/mw/middleware.toml": "middleware/*/middleware.toml",
    "middleware/mw/python/node.toml": "middleware/*/*/node.toml",
}


def whole_catalogue(root: Path, files: dict[str, Any]) -> None:
    """Read everything that a catalogue of these manifests offers."""
    catalog = Catalog([root])
    catalog.titles()
    for name in catalog.cells:
        cell = catalog.cell(name)
        cell.gap("topic", ["encoding.bytes"], 64)
        cell.gap("service", ["encoding.record"], 96)
        cell.middleware.listens("topic")
        cell.middleware.effective_settings({})
    catalog.resolve("mw", "python")


def test_manifests_are_taken_or_refused(
    cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {path: documents(pattern) for path, pattern in KINDS.items()}
    sound = {path: tables[0] for path, tables in found.items()}
    sound["middleware/mw/python/node.toml"] = {"patterns": ["topic"], "capabilities": []}
    for path in KINDS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    files: dict[str, Any] = {}
    real = manifest.read_toml

    def read(path: Path) -> dict[str, Any]:
        inside = path.is_relative_to(tmp_path)
        return files[str(path.relative_to(tmp_path))] if inside else real(path)

    monkeypatch.setattr(manifest, "read_toml", read)
    for seed in cases(2_000):
        mutator = Mutator(seed)
        changed = mutator.random.choice(list(KINDS))
        table = mutator.table(mutator.random.choice(found[changed]))
        files.clear()
        files.update({**sound, changed: table})
        try:
            whole_catalogue(tmp_path, files)
        except UsageError as error:
            assert len(str(error)) > 10


@pytest.mark.parametrize("pattern", ["studies/*/study.toml", "middleware/*/*/node.toml"])
def test_a_damaged_file_is_refused_as_no_toml(pattern: str, cases: Cases, tmp_path: Path) -> None:
    texts = [path.read_bytes() for path in sorted(ROOT.glob(pattern))]
    place = tmp_path / "file.toml"
    for seed in cases(400):
        mutator = Mutator(seed)
        place.write_bytes(mutator.bytes(mutator.random.choice(texts)))
        try:
            table = manifest.read_toml(place)
        except UsageError as error:
            assert str(place) in str(error)
            continue
        if pattern.startswith("studies"):
            study_is_taken(table, None, "")


def test_a_rig_is_taken_or_refused(cases: Cases) -> None:
    catalog = Catalog()
    found, placed = documents("rigs/*.toml"), placed_keys(catalog)

    def read(document: dict[str, Any]) -> None:
        links_of_rig(read_rig(document, "rig.toml", catalog.links, placed), catalog)

    for document in found:
        read(document)
    for seed in cases(500):
        mutator = Mutator(seed)
        try:
            read(mutator.table(mutator.random.choice(found)))
        except UsageError as error:
            assert len(str(error)) > 10


def test_a_link_is_taken_or_refused(cases: Cases) -> None:
    found = documents("links/*/link.toml")
    traces = [path.read_bytes()[:400] for path in sorted(ROOT.glob("links/*/*.txt"))]

    def read(document: dict[str, Any], trace: bytes) -> None:
        read_link("fuzz", document, "link.toml", lambda _: trace.decode(errors="replace"))

    for document in found:
        read(document, b"1\n2\n")
    for seed in cases(500):
        mutator = Mutator(seed)
        trace = mutator.bytes(mutator.random.choice(traces))
        try:
            read(mutator.table(mutator.random.choice(found)), trace)
        except UsageError as error:
            assert len(str(error)) > 10
