"""Tests of the option --rig of `run` and `plan`."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import pytest

from wattwire.catalog import Catalog, home
from wattwire.cli import studies
from wattwire.cli.main import main
from wattwire.cli.verbs import plan
from wattwire.model.errors import EXIT_OK, EXIT_USAGE
from wattwire.model.study import RIG

STUDY = """
[factors]
network = "each"
[fixed]
placement = "apart"
cell = "udp/python"
pattern = "pingpong"
rate_hz = 10
"""
THREE = str(home() / "rigs" / "three.toml")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(plan, "starting_agent", lambda: contextlib.nullcontext(lambda: None))
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return str(path)


def test_a_plan_has_the_networks_of_the_rig_and_names_the_file(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", study, "--rig", THREE, "--only", "network=lte|native"]) == EXIT_OK
    printed = capsys.readouterr().out
    assert "2 treatments" in printed and "network: native, lte" in printed
    assert f"--rig {THREE}" in printed.replace("\n", " ")


def test_a_study_of_networks_without_the_option_is_refused(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", study]) == EXIT_USAGE
    assert "Add --rig FILE" in capsys.readouterr().err


def test_a_study_cannot_contain_a_rig(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(study).write_text(STUDY + '[rig.hosts]\na = {kind = "netns"}\n', encoding="utf-8")
    assert main(["plan", study]) == EXIT_USAGE
    assert "a study names no hosts" in capsys.readouterr().err


def test_a_resume_without_a_study_refuses_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--resume", "nowhere", "--rig", THREE]) == EXIT_USAGE
    assert "--rig" in capsys.readouterr().err


def loaded(study: str, rig: str | None) -> dict[str, object]:
    options = argparse.Namespace(
        study=study, preset=None, changes=[], warmup=None, look=False, rig=rig
    )
    return studies.loaded(Catalog(), options, None)[2]


def test_the_document_of_a_study_contains_its_rig_and_nothing_else_is_new(study: str) -> None:
    without, with_rig = loaded(study, None), loaded(study, THREE)
    assert RIG not in without
    assert {key: value for key, value in with_rig.items() if key != RIG} == without
    assert set(with_rig[RIG]) == {"hosts", "networks", "placements"}  # type: ignore[call-overload]
