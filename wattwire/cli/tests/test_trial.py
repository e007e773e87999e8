"""Tests of the study that `try` writes. It records all options, and `run` accepts it."""

from __future__ import annotations

import re

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import tomllib
from wattwire.cli.main import main, parser
from wattwire.cli.verbs import try_cmd
from wattwire.cli.verbs.try_cmd import document_of, to_toml
from wattwire.design import expand
from wattwire.model.errors import EXIT_USAGE, UsageError
from wattwire.model.study import parse_study
from wattwire.rig import Builder

CELLS = ["loopback/cpp", "loopback/python"]


def document(*arguments, cells=CELLS):
    catalog = Catalog()
    options = parser().parse_args(["try", *cells, *arguments])
    return document_of(options, [catalog.cell(name) for name in cells])


def test_every_option_stands_in_the_study():
    study = document(
        "--pattern", "service", "--payload", "1m,64,1Ki", "--rate", "50", "--for", "500ms",
        "--blocks", "3", "--clients", "4",
    )  # fmt: skip
    assert study["factors"] == {"cell": CELLS, "payload_bytes": [64, 1024, 1_000_000]}
    assert study["fixed"] == {
        "pattern": "service", "rate_hz": 50.0, "clients": 4, "cores": "free"
    }  # fmt: skip
    plan = study["plan"]
    assert (plan["blocks"], plan["duration_s"], plan["primary"]) == (3, 0.5, "cell")
    assert 0 < plan["warmup_s"] <= 0.05


def test_two_cells_alone_are_compared_in_five_blocks_within_a_minute():
    study = parse_study("try", document(), "try")
    assert len(expand(study)) == 2 and study.plan.blocks == 5
    assert study.fixed["payload_bytes"] == 64 and study.fixed["pattern"] == "pingpong"
    assert study.questions[0].factors == ("cell",)


@pytest.mark.parametrize(
    ("arguments", "fixed", "varied"),
    [
        ((), "same", None),
        (("--clients", "1,4"), "free", None),
        (("--cores", "apart"), "apart", None),
        (("--placement", "same,apart"), None, ["same", "apart"]),
        (("--set", 'cores=["free","same"]'), None, ["free", "same"]),
        (("--set", "cores=free"), "free", None),
    ],
)
def test_the_placement_of_the_nodes_is_always_stated(arguments, fixed, varied):
    """Left to the scheduler, the number of threads of a library decides how many cores it has."""
    study = document(*arguments)
    assert study["fixed"].get("cores") == fixed
    assert study["factors"].get("cores") == varied


def test_a_word_that_is_no_placement_is_refused_with_the_words(capsys):
    assert main(["try", *CELLS, "--cores", "sam"]) == 2
    error = capsys.readouterr().err
    assert "--cores: found 'sam'" in error and '"free", "same", "apart"' in error


def test_what_is_written_reads_back_as_the_same_study():
    study = document("--payload", "64,128", "--set", "reply=ack", "--set", "delay_us=20")
    assert tomllib.loads(to_toml(study)) == study
    odd = {"title": 'a "quoted" \\ line\nand é', "fixed": {"x": True, "y": 1e-06, "z": []}}
    assert tomllib.loads(to_toml(odd)) == odd
    nested = {"answers": {"baseline": {"cell": "a/b", "settings.x": 1}}}
    assert tomllib.loads(to_toml(nested)) == nested


def test_a_bare_name_is_a_level_or_a_setting_and_a_dotted_one_a_studys_key():
    study = document("--set", "reply=ack", "--set", "delay_us=20", "--set", "plan.seed=7")
    parsed = parse_study("try", study, "try")
    assert parsed.fixed["reply"] == "ack" and parsed.fixed["settings.delay_us"] == 20
    assert parsed.plan.seed == 7


@pytest.mark.parametrize(
    ("arguments", "factor", "levels"),
    [
        (["--set", "delay_us=[0,20]"], "settings.delay_us", [0, 20]),
        (["--set", "settings.delay_us=[0,20]"], "settings.delay_us", [0, 20]),
        (["--rate", "5,1000"], "rate_hz", [5.0, 1000.0]),
        (["--set", "rate_hz=[5,1000]"], "rate_hz", [5, 1000]),
        (["--clients", "2,1"], "clients", [1, 2]),
        (["--set", "clients=[1,2]"], "clients", [1, 2]),
        (["--payload", "64,1k"], "payload_bytes", [64, 1000]),
        (["--pattern", "pingpong,service"], "pattern", ["pingpong", "service"]),
        (["--set", 'reply=["echo","ack"]'], "reply", ["echo", "ack"]),
    ],
)
@pytest.mark.parametrize("cells", [CELLS, CELLS[:1]])
def test_every_list_of_levels_is_a_factor_of_the_question(arguments, factor, levels, cells):
    study = parse_study("try", document(*arguments, cells=cells), "try")
    assert study.factors[factor] == tuple(levels) and factor not in study.fixed
    assert study.questions[0].factors == (("cell", factor) if len(cells) > 1 else (factor,))
    assert study.plan.primary == ("cell" if len(cells) > 1 else factor)
    assert len(expand(study)) == len(levels) * len(cells)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "5,fast"], "--rate: found 'fast'"),
        (["--clients", "1.5"], "--clients: found '1.5'"),
        (["--set", "delay_us=1", "--set", "settings.delay_us=2"], "is set 2 times"),
        (["--set", "reply=[echo,ack]"], 'reply=["echo","ack"]'),
        (["--set", "delay_uss=20"], 'Did you mean "delay_us"'),
        (["--set", "delay_us"], "allowed: KEY=VALUE"),
        (["--pattern", "pingpng"], 'Did you mean "pingpong"'),
        (["--payload", "64,big"], "--payload: found 'big'"),
        (["--for", "0s"], "--for: found '0s'"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(arguments, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        document(*arguments)


def test_a_cell_named_twice_is_refused():
    with pytest.raises(UsageError, match="found a cell twice"):
        document(cells=["loopback/python", "loopback/python"])


def test_an_unknown_cell_names_the_nearest_and_leaves_no_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["try", "loopback/pyton"]) == 2
    assert 'Did you mean "loopback/python"?' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_rate_that_no_study_allows_is_refused_before_anything_is_built(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["try", *CELLS, "--rate", "-5"]) == 2
    assert "rate_hz: found -5.0" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_cell_that_cannot_be_built_here_is_skipped_before_the_runs_are_counted(monkeypatch):
    builders = []

    def seen(study, catalog, builder):
        builders.append(builder)
        raise UsageError("seen")

    monkeypatch.setattr(try_cmd, "prepare", seen)
    assert main(["try", *CELLS]) == EXIT_USAGE
    assert [isinstance(builder, Builder) for builder in builders] == [True]


def test_a_rig_is_refused_with_the_commands_that_use_it(capsys):
    assert main(["try", "zenoh/python", "--rig", "rigs/three.toml"]) == EXIT_USAGE
    refusal = " ".join(capsys.readouterr().err.split())
    assert "wattwire new study.toml zenoh/python" in refusal
    assert "wattwire run study.toml --rig rigs/three.toml" in refusal
