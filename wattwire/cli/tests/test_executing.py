"""Tests of `wattwire exec`, which rejects invalid commands and targets before it measures."""

from __future__ import annotations

import contextlib
import os

import polars as pl
import pytest

from wattwire.analysis.topics.processes.executed import executed as executed_of
from wattwire.cli.exec import table as exec_table
from wattwire.cli.exec.request import requested, study_of, topics_of
from wattwire.cli.main import main, parser
from wattwire.design import expand, make_plan
from wattwire.model.deployment import Request
from wattwire.model.errors import EXIT_ENVIRONMENT, EXIT_USAGE
from wattwire.model.study import Study, parse_study
from wattwire.model.warm_up import SETTLING


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        (
            "no-such-program-here",
            EXIT_USAGE,
            "no-such-program-here: cannot be started (the program does not exist",
        ),
        ("./gone", EXIT_USAGE, "./gone: cannot be started (the program does not exist in"),
        ("./plain.txt", EXIT_ENVIRONMENT, "./plain.txt: permission denied"),
        (".", EXIT_USAGE, "cannot be started"),
    ],
)
def test_a_program_that_cannot_be_started_leaves_nothing(
    tmp_path, monkeypatch, capsys, program: str, code: int, words: str
) -> None:
    (tmp_path / "plain.txt").write_text("not a program")
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--baseline", "60s", "--out", "out", "--", program]) == code
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_attached_twice_is_refused_since_it_would_count_twice(tmp_path, capsys) -> None:
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "cgroup.procs").touch()
    process, group = f"pid:{os.getpid()}", f"cgroup:{tmp_path / 'group'}"
    arguments = ["exec", "--out", str(tmp_path / "out"), "--for", "0.1s"]
    assert main([*arguments, "--attach", process, "--attach", process]) == EXIT_USAGE
    assert "already attached, so it would be counted twice" in capsys.readouterr().err
    assert main([*arguments, "--attach", group, "--attach", f"{group}/."]) == EXIT_USAGE
    assert f"already attached (it is {group})" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_mean_of_a_printed_figure_names_the_repeats_without_it() -> None:
    rows = [
        {"verdict": "valid", "block": block, "value.p50_ms": p50_ms}
        for block, p50_ms in ((3, 4.0), (1, None), (2, 4.0))
    ]
    request = Request(command=("x",), values_from=("p50_ms",))
    executed = executed_of(request, pl.DataFrame(rows), pl.DataFrame())
    _, printed = exec_table._printed_sentences(executed)
    assert printed == "value.p50_ms has no value in repeat 1 of 3, which its mean omits."
    unprinted = executed_of(request, pl.DataFrame(rows[:2]).drop("value.p50_ms"), pl.DataFrame())
    only_sentence = ["value.p50_ms has no value in any repeat."]
    assert list(exec_table._printed_sentences(unprinted)) == only_sentence


def study(*arguments: str) -> Study:
    options = parser().parse_args(["exec", *arguments])
    return parse_study("exec", study_of(requested(options), options), "exec")


TWO = ("--variant", "base=true", "--variant", "head=true x")
FIGURE = ("--value-from", "score")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--variant", "a=true"], "needs two variants"),
        (["--variant", "a=true", "--variant", "a=false"], "have the same name"),
        (["--variant", "a=", "--variant", "b=true"], "--variant a=: allowed: NAME=COMMAND"),
        (["--variant", "a='x", "--variant", "b=true"], "allowed: NAME=COMMAND"),
        (["--variant", "true", "--variant", "b=true"], "allowed: NAME=COMMAND"),
        ([*TWO, "--attach", "pid:1"], "each variant names its own command"),
        (["--variant", "a=true", "--variant", "b=no-such-program"], "no-such-program: cannot be"),
        ([*TWO, "--value-from", "("], "is not a regular expression"),
        ([*TWO, *FIGURE, "--response", "value.p99_ms"], "no --value-from reads this figure"),
        ([*TWO, *FIGURE, "--higher-is-better", "scores"], 'Did you mean "score"?'),
        ([*TWO, "--higher-is-better", "score"], "add --value-from score"),
        ([*TWO, *FIGURE, "--higher-is-better", "score", "--lower-is-better", "score"], "delete"),
        ([*TWO, "--max", "cpu_s"], "allowed: NAME=NUMBER"),
        ([*TWO, "--max", "cpu_s=nan"], "allowed: NAME=NUMBER"),
        ([*TWO, "--max", "speed=2"], 'unknown response "speed"'),
        ([*TWO, "--max", "cpu_s=2", "--max", "cpu_s=3"], "has two limits"),
        ([*TWO, "--max", "cpu_s=2", "--min", "cpu_s=3"], "no value satisfies both"),
        ([*TWO, "--max", "value.p50_ms=2"], "no --value-from reads this figure; known: none"),
        ([*TWO, "--max", "value.a_to_b_path_p50_us=2"], "Add --layers, or --value-from a_to_b"),
        ([*TWO, "--max", "value.a_latency_p50_us=2"], "Add --topics, or --value-from a_latency"),
        (["--max", "cpu_s=2", "--", "true"], "--max and --min need 3 repeats or more"),
        (["--junit", "x.xml", "--", "true"], "set --max or --min"),
        (["--warmup", "3", "--", "true"], "write --warmup 3runs"),
        (["--warmup", "0runs", "--", "true"], "allowed: 1run or more"),
        (["--warmup", "2runs", "--attach", "pid:1"], "attached processes have no runs"),
    ],
)
def test_an_option_that_cannot_be_measured_is_refused_first(
    tmp_path, monkeypatch, capsys, arguments, words
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--out", "out", *arguments]) == EXIT_USAGE
    assert words in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["./robot.sh"], "found a program instead of a pattern of topics; allowed: a topic, a"),
        (["./robot.sh", "fast"], "write -- before it: --topics -- ./robot.sh fast"),
        (["./robot.sh", "-x"], "unrecognized arguments: -x. If this is an option of the command"),
        (["./plain.sh"], "--topics ./plain.sh: found a program"),
        (["sh", "x.sh"], "--topics -- sh x.sh"),
        (["./robot.sh", "--attach", "pid:1"], "--topics ./robot.sh: found a program"),
        (["/camera/*"], "no command after this pattern of topics; allowed"),
        (["/a", "--topics", "/b"], "--topics /a -- COMMAND"),
    ],
)
def test_a_program_that_topics_took_as_a_pattern_is_named_with_the_remedy(
    tmp_path, monkeypatch, capsys, arguments, words
) -> None:
    for name, mode in (("robot.sh", 0o755), ("plain.sh", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):  # argparse exits itself
        assert main(["exec", "--out", "out", "--topics", *arguments]) == EXIT_USAGE
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topics", "sh", "--", "true"],
        ["--topics", "--", "sh", "-c", "true"],
        ["--topics", "/camera", "true"],
        ["--topics", "sh", "--attach", f"pid:{os.getpid()}"],
    ],
)
def test_a_pattern_before_a_command_remains_one(arguments) -> None:
    options = parser().parse_args(["exec", *arguments])
    assert requested(options) and topics_of(options) is not None


def test_a_warm_up_in_runs_is_a_round_of_each_variant_before_the_first_block() -> None:
    measured = study(*TWO, "--repeat", "2", "--warmup", "3runs")
    treatments = [treatment for treatment, _ in expand(measured)]
    plan = make_plan(treatments, measured.plan, measured.settling_rounds)
    first = [run for run in plan if run.block == 0]
    assert [run.control for run in first] == [SETTLING] * 6 and plan[:6] == first
    names = [str(run.treatment["variant"]) for run in first]
    assert {*names[:2]} == {*names[2:4]} == {*names[4:]} == {"base", "head"}
    without = study(*TWO, "--repeat", "2")
    same = make_plan(treatments, without.plan, without.settling_rounds)
    assert [(r.run, r.treatment) for r in plan[6:]] == [(r.run, r.treatment) for r in same]


def test_limits_and_directions_are_those_of_the_options() -> None:
    measured = study(
        *TWO, *FIGURE, "--higher-is-better", "score", "--max", "memory_peak_kib=9000",
        "--min", "value.score=3", "--max", "value.score=5", "--max", "wall_s=2",
    )  # fmt: skip
    limits = [(limit.response, limit.min, limit.max) for limit in measured.limits]
    assert limits == [
        ("memory_peak_kib", None, 9000.0), ("value.score", 3.0, 5.0), ("wall_s", None, 2.0)
    ]  # fmt: skip
    assert measured.request is not None and measured.request.higher_is_better == ("score",)


def test_layers_of_programs_that_cannot_record_them_are_refused_before_anything_is_written(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    arguments = ["exec", "--layers", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--attach", f"pid:{os.getpid()}"]) == EXIT_USAGE
    assert "--layers cannot be combined with --attach" in capsys.readouterr().err
    setuid = tmp_path / "setuid"
    setuid.write_text("#!/bin/sh\n")
    setuid.chmod(0o4755)
    assert main([*arguments, "--", str(setuid)]) == EXIT_USAGE
    assert "is setuid" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
