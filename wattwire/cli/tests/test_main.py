import argparse
import gc
import subprocess
import sys

import pytest

from wattwire.catalog import home
from wattwire.cli.main import main, outline, parser
from wattwire.cli.verbs import VERBS, verb_named
from wattwire.report.tests.synthetic import Shape, write_campaign


def verbs_of(grammar):
    (verbs,) = [a for a in grammar._actions if isinstance(a, argparse._SubParsersAction)]
    return verbs.choices


def test_the_whole_grammar_has_the_verbs_of_the_table_in_its_order():
    names = [known for name, verb in VERBS.items() for known in (name, *verb.aliases)]
    assert list(verbs_of(parser())) == names
    assert list(verbs_of(outline())) == names
    assert parser().format_help() == outline().format_help()


def test_the_help_imports_no_module_of_a_verb():
    program = (
        "import sys; from wattwire.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(n for n in sys.modules if n.startswith(('wattwire.cli.verbs.', 'polars'))))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("verb", [*VERBS, "ls"])
def test_a_verb_alone_reads_as_it_does_among_all(verb):
    alone, among_all = verbs_of(parser([verb_named(verb).module])), verbs_of(parser())
    assert verb in alone
    assert alone[verb].format_help() == among_all[verb].format_help()


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("import csv t.csv --response a --factor b --block c --block d", "--block"),
        ("import csv t.csv --response a --factor b --run c --run d", "--run"),
        ("run study --campaign x --campaign y", "--campaign"),
    ],
)
def test_an_option_with_one_value_is_not_given_two(capsys, line, option):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    words = line.split()
    assert f"argument {option}: found {words[-3]} and {words[-1]}" in capsys.readouterr().err


def test_a_repeatable_option_and_a_repeated_value_are_accepted():
    options = parser().parse_args(
        "import csv t --response a --response b --block d --block d".split()
    )
    assert (options.response, options.block) == (["a", "b"], "d")


def test_a_verb_that_is_none_is_told_which_there_are(capsys):
    with pytest.raises(SystemExit) as left:
        main(["reprot", "c"])
    told = capsys.readouterr().err
    assert left.value.code == 2
    assert all(verb in told for verb in VERBS)


def test_how_often_cycles_are_looked_for_is_as_before_after_a_verb(capsys):
    before = gc.get_threshold()
    assert main(["list", "meters"]) == 0
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    ("typed", "usage", "meant"),
    [
        (["try", "udp/cpp", "--patern", "topic"], "usage: wattwire try", "--pattern"),
        (["plan", "first-look", "--onyl=a=b"], "usage: wattwire plan", "--only"),
        (["status", "c", "d"], "usage: wattwire status", ""),
        (["exec", "--pid", "1"], "usage: wattwire exec", "--attach pid:1"),
        (["exec", "--unit=a.service"], "usage: wattwire exec", "--attach unit:a.service"),
        (["exec", "--pix", "1"], "usage: wattwire exec", ""),
    ],
)
def test_what_a_command_does_not_know_is_told_with_its_own_usage(typed, usage, meant, capsys):
    with pytest.raises(SystemExit) as left:
        main(typed)
    told = capsys.readouterr().err
    assert left.value.code == 2
    assert told.startswith(usage)
    assert "unrecognized arguments: " in told
    assert (f'Did you mean "{meant}"?' in told) == bool(meant)


def test_a_misspelt_command_is_offered_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["reprot", "c"])
    assert 'Did you mean "report"?' in capsys.readouterr().err


def test_ls_lists_what_list_lists(capsys):
    assert main(["ls", "meters"]) == 0
    listed = capsys.readouterr().out
    assert main(["list", "meters"]) == 0
    assert capsys.readouterr().out == listed


def test_a_look_at_a_resumed_campaign_is_refused_with_the_way_that_works(tmp_path, capsys):
    campaign = write_campaign(tmp_path / "c d", Shape(blocks=2))
    assert main(["run", "--resume", str(campaign), "--look"]) == 2
    assert f"wattwire report '{campaign}' --validity look=true" in capsys.readouterr().err


def test_a_resumed_campaign_cannot_begin_to_align(tmp_path, capsys):
    campaign = write_campaign(tmp_path / "c", Shape(blocks=2))
    assert main(["run", "--resume", str(campaign), "--align"]) == 2
    assert "no load before its first run" in capsys.readouterr().err


REQUIRED = (home() / "requirements.in").read_text(encoding="utf-8").splitlines()
LIBRARIES = tuple(
    name.removesuffix("-python").replace("-", "_")
    for name in REQUIRED
    if not name.startswith(("#", "tomli"))  # every command reads TOML
)
STATISTICS = ("analysis", "imports", "links", "report", "run.campaign", "stats")
HEAVY = (*LIBRARIES, *(f"wattwire.{name}" for name in STATISTICS))
"""Modules that take long to import, by their beginnings."""
WITHOUT_RUNS = tuple(f"wattwire.{name}" for name in ("hosts", "rig", "run", "store"))


@pytest.mark.parametrize(
    ("line", "code", "unused"),
    [
        ("--help", 0, ("wattwire.catalog", *WITHOUT_RUNS)),
        ("list", 0, WITHOUT_RUNS),
        ("list studies", 0, WITHOUT_RUNS),
        ("run --help", 0, ()),
        ("plan --help", 0, ("wattwire.hosts", "wattwire.run", "wattwire.store")),
        ("plan first-look", 0, ()),
        ("status CAMPAIGN", 0, ("wattwire.catalog", *WITHOUT_RUNS[:3])),
        ("build --help", 0, ("wattwire.hosts", "wattwire.run", "wattwire.store")),
        ("check --help", 0, WITHOUT_RUNS),
    ],
)
def test_a_quick_command_imports_nothing_that_it_does_not_use(tmp_path, line, code, unused):
    campaign = write_campaign(tmp_path / "c", Shape(blocks=2))
    words = [str(campaign) if word == "CAMPAIGN" else word for word in line.split()]
    program = (
        f"import sys; from wattwire.cli.main import main\ncode = 0\n"
        f"try: code = main({words!r})\n"
        "except SystemExit as ended: code = ended.code\n"
        f"print(code, sorted(n for n in sys.modules if n.startswith({(*HEAVY, *unused)!r})))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{code} []", done.stdout[-2000:] + done.stderr
