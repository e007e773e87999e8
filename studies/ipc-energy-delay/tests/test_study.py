"""The study is listed with its recipes, and every implementation that it asks for is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.cli.main import main
from wattwire.model.study import apply_preset, parse_study
from wattwire.run.resolve_cells import prepare

FOLDER = Path(__file__).resolve().parents[1]


def test_the_study_is_listed_and_so_are_its_recipes(capsys):
    assert main(["list", "studies"]) == 0
    assert FOLDER.name in capsys.readouterr().out
    assert main(["import"]) == 0
    told = capsys.readouterr().out
    assert FOLDER.name in told and "authors:" in told


PRESETS = (None, "paper", "arm", "quick", "smoke")


def test_the_study_asks_for_what_the_paper_measured_and_for_two_languages_more(study):
    document = read_toml(FOLDER / "study.toml")
    factors = parse_study(FOLDER.name, document, "study.toml").factors
    assert set(factors["middleware"]) == set(study.observed.IPCS)
    assert set(factors["language"]) == {*study.observed.LANGUAGES, "cpp", "rust"}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_implementation_has_a_cell(preset):
    document = apply_preset(read_toml(FOLDER / "study.toml"), preset, "study.toml")
    prepared = prepare(parse_study(FOLDER.name, document, "study.toml"), Catalog(), None)
    assert prepared.skipped == []
    cells = {cell.name for roles in prepared.cells.values() for cell in roles.values()}
    assert len(prepared.treatments) == len(cells) == 27


def test_the_papers_counts_are_presets():
    document = read_toml(FOLDER / "study.toml")
    found = {name: apply_preset(document, name, "study.toml") for name in ("paper", "arm")}
    assert (found["paper"]["plan"]["blocks"], found["paper"]["fixed"]["count"]) == (50, 20_000)
    assert (found["arm"]["plan"]["blocks"], found["arm"]["fixed"]["count"]) == (50, 5_000)


RING = ("cpp", "csharp", "javascript", "php", "python", "ruby", "rust", "go", "java")
"""Clients by the order of their servers; `rpc` has one wire up to rust, where its ring closes."""
CENTRE = "javascript"


def ring_and_star(languages):
    ring = zip(languages, [*languages[1:], languages[0]], strict=True)
    return {*ring} | {pair for one in languages for pair in ((one, CENTRE), (CENTRE, one))}


def test_the_preset_cross_has_a_ring_and_a_star_over_the_languages_that_share_a_wire():
    document = apply_preset(read_toml(FOLDER / "study.toml"), "cross", "study.toml")
    prepared = prepare(parse_study(FOLDER.name, document, "study.toml"), Catalog(), None)
    found = {}
    for treatment in prepared.treatments:
        pair = (treatment["language"], treatment["server_language"])
        found.setdefault(treatment["middleware"], set()).add(pair)
    of_seven = ring_and_star(RING[:7])
    of_nine = ring_and_star(RING) | of_seven
    assert found == {"grpc": of_nine, "rest": of_nine, "rpc": of_seven}
    assert ("php", CENTRE) in of_seven, "the paper's own pair"
    left_out = {(t["middleware"], t["language"], t["server_language"]) for t, _ in prepared.skipped}
    assert left_out == {("rpc", *pair) for pair in of_nine - of_seven}
    assert all("uses the wire format" in reason for _, reason in prepared.skipped)


def test_the_preset_placement_ranks_the_languages_of_grpc_in_each_placement():
    document = apply_preset(read_toml(FOLDER / "study.toml"), "placement", "study.toml")
    study = parse_study(FOLDER.name, document, "study.toml")
    prepared = prepare(study, Catalog(), None)
    assert prepared.skipped == []
    found = {(t["language"], t["cores"]) for t in prepared.treatments}
    assert found == {(name, cores) for name in RING for cores in ("free", "same", "apart")}
    (question,) = study.questions
    assert {*question.factors} == {"language", "cores"}, "no answer is a mean over placements"
    assert {*question.responses} == {"cpu_us_per_message", "latency_p50_us"}
