"""Tests of the check of bridges: its study, its text, and its options."""

from __future__ import annotations

import pytest

from wattwire.analysis.topics.hops.faults import HopFaults
from wattwire.catalog import Catalog, home
from wattwire.cli.bridge_check import Checked, document_of, outer_levels
from wattwire.cli.main import main
from wattwire.model.deployment import Deployment, Node, Process
from wattwire.model.errors import EXIT_USAGE
from wattwire.model.study import parse_study
from wattwire.run.resolve_cells import prepare

CATALOG = Catalog([home()])


@pytest.mark.parametrize("name", sorted(CATALOG.bridges))
def test_the_study_of_a_check_has_one_treatment_with_the_bridge(name):
    study = parse_study("check", document_of(CATALOG.bridge(name), CATALOG), "check")
    prepared = prepare(study, CATALOG, None)
    (treatment,) = prepared.treatments
    assert prepared.skipped == []
    assert (treatment["bridge"], treatment["verify"]) == (name, "full")


@pytest.mark.parametrize("name", sorted(CATALOG.bridges))
def test_the_study_of_a_check_has_each_level_of_what_a_study_can_set(name):
    default, *others = outer_levels(CATALOG.bridge(name))
    assert default == {} and others
    for outer in others:
        bridge = CATALOG.bridge(name, outer)
        study = parse_study("check", document_of(bridge, CATALOG), "check")
        (treatment,) = prepare(study, CATALOG, None).treatments
        assert outer.items() <= treatment.outer_settings.items()
        assert treatment.outer_settings == bridge.end_settings


def test_a_failure_names_hop_process_and_messages():
    deployment = Deployment(
        (Process("bridge-0", "bridge"),), (Node(3, "bridge-0", "relay", 1, 1, "c"),)
    )
    hops = [HopFaults(1, 3, lost=frozenset({7, 4}), doubled=frozenset(range(10)))]
    assert Checked(10, hops, deployment).failures == [
        "hop 1 to bridge-0: 2 messages lost: 4, 7",
        "hop 1 to bridge-0: 10 messages doubled: 0, 1, 2, 3, 4, 5, 6, 7, …",
    ]
    assert Checked(10, [], deployment, "the run is failed").failures == ["the run is failed"]
    assert Checked(10, [HopFaults(1, 3)], deployment).failures == []


def test_a_check_of_an_unknown_bridge_or_with_options_of_cells_is_refused(capsys):
    assert main(["check", "bridges", "no-such"]) == EXIT_USAGE
    assert "no-such" in capsys.readouterr().err
    assert main(["check", "bridges", "--cost"]) == EXIT_USAGE
    assert "--cost" in capsys.readouterr().err


def test_bridges_are_listed(capsys):
    assert main(["list", "bridges"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in CATALOG.bridges)
