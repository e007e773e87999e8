"""A study whose cells are not there yet: it is listed, planned in words, and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.catalog.manifest import read_toml
from wattwire.cli.main import main
from wattwire.model.study import parse_study

FOLDER = Path(__file__).resolve().parents[1]


def test_the_study_is_listed_and_so_are_its_recipes(capsys):
    assert main(["list", "studies"]) == 0
    assert FOLDER.name in capsys.readouterr().out
    assert main(["import"]) == 0
    told = capsys.readouterr().out
    assert FOLDER.name in told and "authors:" in told


def test_plan_names_what_is_lacking_and_what_works_all_the_same(capsys):
    code = main(["plan", FOLDER.name])
    if code == 0:  # somebody has written a cell since
        pytest.skip("a cell of the study is here")
    told = " ".join(capsys.readouterr().err.split())
    assert code == 3
    assert "no middleware grpc is here yet" in told
    assert f"can be read: wattwire import {FOLDER.name} DIR" in told


def test_what_is_awaited_is_asked_for_and_nothing_else_is(study):
    document = read_toml(FOLDER / "study.toml")
    factors = parse_study(FOLDER.name, document, "study.toml").factors
    assert set(document["awaits"]) <= {*factors["middleware"], *factors["language"]}
    assert set(factors["middleware"]) == set(study.observed.IPCS)
    assert set(factors["language"]) == set(study.observed.LANGUAGES)
