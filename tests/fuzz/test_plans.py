"""Test that mutated studies give a message, never a crash, from `plan --table` to the specs."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator
from tests.fuzz.verbs import contents, say
from wattwire.catalog import Catalog, manifest
from wattwire.cli.planning import printed_plan
from wattwire.cli.verbs import plan
from wattwire.design import make_plan
from wattwire.model.errors import WattwireError
from wattwire.model.study import apply_preset, parse_study
from wattwire.run.node_specs import run_nodes
from wattwire.run.resolve_cells import prepare

ROOT = Path(__file__).resolve().parents[2]
SHAPES = (5, "x", True, [], [5], [{}], {}, {"a": 5}, {"a": {"b": [1]}}, 1.5, "../x", "/etc/passwd")
KEYS = ("presets", "published", "source", "title", "goal", "plan", "meters", "answers", "limit",
        "question", "factors", "fixed", "variants", "table", "figure", "ranking", "paper_path",
        "exclude", "include", "awaits", "validity")  # fmt: skip


def toml(value: Any) -> str:
    """Return a value as TOML. Null and lone surrogates, which TOML lacks, are omitted."""
    if isinstance(value, dict):
        pairs = (f"{toml(str(k))} = {toml(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value if item is not None) + "]"
    if isinstance(value, str):
        return json.dumps(value.encode("utf-8", "replace").decode()).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else str(value).removeprefix("+")
    return json.dumps(value)


def study_text(seed: int, texts: list[bytes], tables: list[dict[str, Any]]) -> bytes:
    mutator = Mutator(seed)
    kind = mutator.random.randrange(10)
    if kind < 2:
        return mutator.bytes(mutator.random.choice(texts))
    table = dict(mutator.random.choice(tables))
    if kind < 5:
        table[mutator.random.choice(KEYS)] = mutator.random.choice(SHAPES)
    else:
        table = mutator.table(table)
    lines = (f"{toml(str(k))} = {toml(v)}" for k, v in table.items() if v is not None)
    return "\n".join(lines).encode()


def specs_of(path: Path, catalog: Catalog) -> None:
    """Create the specs of the first planned run, as a run would."""
    try:
        study = parse_study("fuzz", apply_preset(manifest.read_toml(path), None, "FILE"), "FILE")
        prepared = prepare(study, catalog, None)
        first = make_plan(prepared.treatments, study.plan)[0].treatment
    except WattwireError:
        return
    for node in run_nodes(prepared.placed[first.key], study.plan, "token"):
        json.dumps(node.spec, allow_nan=False)


def test_a_mutated_study_is_planned_or_refused_in_words(
    cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = sorted(ROOT.glob("studies/*/study.toml"))
    texts = [path.read_bytes() for path in paths]
    tables = [manifest.read_toml(path) for path in paths]
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "victim.csv").write_text("precious")
    monkeypatch.chdir(place)
    # Starting the agent takes longer than everything else, and its reply does not depend on the
    # study.
    monkeypatch.setattr(plan, "starting_agent", lambda: contextlib.nullcontext(lambda: None))
    catalog = Catalog()
    # Manifests do not change during the test.
    monkeypatch.setattr(printed_plan, "Catalog", lambda: catalog)
    file = place / "study.toml"
    for seed in cases(40, 1_060):
        mutator = Mutator(seed)
        file.write_bytes(study_text(seed, texts, tables))
        preset = mutator.random.choice(([], [], ["--preset", "quick"], ["--preset", "smoke"]))
        changed = ["--set", mutator.text("payload_bytes=[64,1024]")] if seed % 5 == 0 else []
        try:
            said = say("plan", file, "--table", *preset, *changed)
            if said.code == 0:
                specs_of(file, catalog)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}\n{file.read_bytes()!r}") from error
        assert contents(tmp_path).keys() == {"place", "place/study.toml", "victim.csv"}, seed
