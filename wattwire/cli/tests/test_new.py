"""Tests of `wattwire new`, which writes a valid study whose keys have comments."""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.cli.main import main
from wattwire.design import cautions, make_plan
from wattwire.model.study import apply_preset, parse_study
from wattwire.run.resolve_cells import prepare


@pytest.mark.parametrize("preset", [None, "quick"])
def test_the_template_is_a_study_whose_treatments_can_all_be_run(tmp_path, preset):
    path = tmp_path / "mine.toml"
    assert main(["new", str(path)]) == 0
    document = apply_preset(read_toml(path), preset, str(path))
    study = parse_study("mine", document, str(path))
    prepared = prepare(study, Catalog(), None)
    assert len(prepared.treatments) == 3 and prepared.skipped == []
    assert len(make_plan(prepared.treatments, study.plan)) == 3 * study.plan.blocks
    assert study.questions[0].factors == ("payload_bytes",)


def test_every_key_of_the_template_has_a_comment_near_it(tmp_path):
    main(["new", str(tmp_path / "mine.toml")])
    text = (tmp_path / "mine.toml").read_text()
    assert text.count("#") > 30
    for table in ("[factors]", "[fixed]", "[plan]", "[validity]", "[answers]", "[[question]]"):
        assert table in text


def test_cells_that_are_named_are_those_of_the_study(tmp_path, capsys):
    assert main(["new", str(tmp_path / "mine"), "loopback/cpp", "loopback/python"]) == 0
    document = read_toml(tmp_path / "mine/study.toml")
    assert document["factors"]["cell"] == ["loopback/cpp", "loopback/python"]
    study = parse_study("mine", document, "")
    assert study.questions[0].factors == ("cell", "payload_bytes"), "cells are compared"
    assert study.plan.primary == "cell"
    assert study.answers.baseline == {"cell": "loopback/cpp", "payload_bytes": 64}
    assert cautions(study, prepare(study, Catalog(), None).treatments) == []
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"Next: wattwire plan {tmp_path / 'mine/study.toml'}"


def test_an_unknown_cell_writes_nothing(tmp_path, capsys):
    assert main(["new", str(tmp_path / "mine.toml"), "loopback/pyton"]) == 2
    assert 'Did you mean "loopback/python"?' in capsys.readouterr().err
    assert not (tmp_path / "mine.toml").exists()


def test_what_is_there_stays_as_it_is(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text("kept")
    assert main(["new", str(path)]) == 2
    assert path.read_text() == "kept"
    assert "this file already exists" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["new", str(tmp_path / "file/mine.toml")]) == 3
    assert "cannot be written" in capsys.readouterr().err
