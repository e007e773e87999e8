"""Tests of the pairing of cells as all pairs, as a ring and a star, or without pairs."""

from unittest import mock

import pytest

from wattwire.catalog import Catalog
from wattwire.cli import conformance
from wattwire.cli.conformance import early_words
from wattwire.cli.main import main
from wattwire.cli.pairing import Pairs, pairs_of, partners, unpaired
from wattwire.model.errors import EXIT_CANNOT_TELL, EXIT_USAGE, UsageError

FIVE = dict.fromkeys(["wire/a", "wire/b", "wire/c", "wire/d", "wire/e"], "")
WIRES = {"calls/a": "json", "calls/b": "soap", "calls/c": "json", "other/a": "json"}


def test_a_ring_and_a_star_have_each_pair_once():
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "e")]
    star = [("a", "c"), ("a", "d")]  # b and e are adjacent to a in the ring
    found = [(one[-1], other[-1]) for one, other in pairs_of(FIVE, Pairs.CROSS)]
    assert sorted(found) == sorted(ring + star)


def test_all_is_each_with_each():
    assert len(pairs_of(FIVE, Pairs.ALL)) == 10


@pytest.mark.parametrize("pairs", [Pairs.ALL, Pairs.CROSS])
def test_two_cells_are_one_pair_and_one_is_none(pairs):
    assert pairs_of(dict.fromkeys(["wire/a", "wire/b"], ""), pairs) == [("wire/a", "wire/b")]
    assert pairs_of({"wire/a": ""}, pairs) == []


def test_none_is_none():
    assert pairs_of(FIVE, Pairs.NONE) == []


@pytest.mark.parametrize("pairs", [Pairs.ALL, Pairs.CROSS])
def test_only_cells_of_one_middleware_and_one_wire_are_paired(pairs):
    assert pairs_of(WIRES, pairs) == [("calls/a", "calls/c")]


def test_a_cell_without_a_pair_has_the_reason():
    assert unpaired(WIRES, "calls/a") == ""
    message = unpaired(WIRES, "calls/b")
    assert message == "it uses the wire format soap, and the other cells of calls use json"
    assert unpaired(WIRES, "other/a") == "this check has no other cell of other"


def test_a_pair_is_checked_with_its_first_cell_and_a_cell_alone_with_both_sides():
    found = pairs_of(FIVE, Pairs.CROSS)
    assert partners(found, "wire/c", alone=False) == ["wire/d"]
    assert sorted(partners(found, "wire/c", alone=True)) == ["wire/a", "wire/b", "wire/d"]
    checked = [(name, other) for name in FIVE for other in partners(found, name, alone=False)]
    assert sorted(checked) == sorted(found)


def test_a_pattern_names_the_cells_of_a_middleware_each_once():
    catalog = Catalog()
    names = [cell.name for cell in catalog.cells_like(["loopback/rust", "loopback/*"])]
    assert names[0] == "loopback/rust"
    assert sorted(names) == [name for name in catalog.cells if name.startswith("loopback/")]


def test_a_pattern_that_fits_nothing_is_told_with_the_cells_that_are_there():
    with pytest.raises(UsageError, match=r'unknown cell "loopbak/\*".* Did you mean "loopback"?'):
        Catalog().cells_like(["loopbak/*"])


def test_pairs_that_are_asked_for_and_left_out_are_a_contradiction(capsys):
    for leaving_out in (["--no-pairs"], ["--pairs", "none"]):
        assert main(["check", "loopback/python", "--clause", "pair", *leaving_out]) == EXIT_USAGE
        message = capsys.readouterr().err
        assert "--clause pair" in message and "--pairs cross" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "ring"], ["invalid choice", "none", "cross", "all"]),
        (["--pairs", "all", "--no-pairs"], ["not allowed with argument --pairs"]),
    ],
)
def test_a_choice_of_pairs_that_is_none_is_refused(options, message, capsys):
    with pytest.raises(SystemExit) as left:
        main(["check", "loopback/python", *options])
    assert left.value.code == EXIT_USAGE
    error = capsys.readouterr().err.rpartition("error:")[2]
    assert all(word in error for word in message)


@pytest.mark.parametrize(
    ("ended_by", "message"),
    [
        (["", "", "C-14"], ""),
        (["C-07", "", "C-06"], "2 of 3 scenarios ended before the nodes were READY"),
        (["C-07"], "1 of 1 scenario ended before the nodes were READY"),
    ],
)
def test_scenarios_that_ended_before_ready_are_told_with_the_counts(ended_by, message):
    assert early_words(ended_by).startswith(message) and bool(early_words(ended_by)) == bool(
        message
    )


@pytest.mark.parametrize(
    ("rig", "message"),
    [
        ('[hosts]\na = {kind = "netns"}\nb = {kind = "ssh", to = "b"}\n', "b (ssh)"),
        ('[hosts]\na = {kind = "netns"}\n', "found 1 host"),
        ('[hosts]\na = {kind = "netns"}\nb = {kind = "netns"}\n', "no network joins all hosts"),
    ],
)
def test_a_rig_whose_hosts_cannot_run_nodes_of_the_suite_is_refused(rig, message, tmp_path, capsys):
    path = tmp_path / "rig.toml"
    path.write_text(rig)
    assert main(["check", "loopback/python", "--rig", str(path)]) == EXIT_USAGE
    assert message in capsys.readouterr().err


def test_the_name_of_a_middleware_means_all_of_its_cells() -> None:
    catalog = Catalog()
    names = [cell.name for cell in catalog.cells_like(["loopback", "loopback/rust"])]
    assert names == [name for name in catalog.cells if name.startswith("loopback/")]
    assert len(names) > 1
    with pytest.raises(UsageError, match="loopbak"):
        catalog.cells_like(["loopbak"])


def test_a_check_that_tests_no_clause_is_no_success(monkeypatch, capsys):
    assert main(["check", "loopback/python", "--clause", "C-999"]) == EXIT_USAGE
    assert 'unknown clause "C-999"' in capsys.readouterr().err
    for name in ("AgentClient", "CheckHosts", "Builder", "here"):
        monkeypatch.setattr(conformance, name, mock.MagicMock())
    monkeypatch.setattr(conformance._Check, "run", lambda *_: 0)
    assert main(["check", "loopback/python", "--clause", "C-29"]) == EXIT_CANNOT_TELL
    assert "no clause was tested" in capsys.readouterr().out
