"""Tests of --variant, including errors before the measurement and the plan of valid variants."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from wattwire.cli import quantities, study_variants
from wattwire.cli.main import main
from wattwire.design import expand, make_plan, more_blocks
from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study

DOCUMENT: dict[str, Any] = {
    "factors": {"pattern": ["topic", "pingpong"]},
    "fixed": {"cell": "loopback/python", "interval_s": 0.1},
    "plan": {"blocks": 2, "controls": False},
    "question": [{"id": "Q1", "text": "?", "factors": ["pattern"], "responses": ["lost"]}],
}
STUDY = """
[factors]
pattern = ["topic"]
[fixed]
cell = "loopback/python"
"""


def applied(*given: str, **more: Any) -> dict[str, Any]:
    options = {
        "confirm": False, "margin": None, "response": [], "junit": None, "markdown": None, **more,
    }  # fmt: skip
    return study_variants.applied(DOCUMENT, argparse.Namespace(variants=list(given), **options))


def test_variants_become_a_factor_and_the_one_question(tmp_path):
    (tmp_path / "middleware").mkdir()
    document = applied(
        "base=", f"head={tmp_path},settings.delay_us=5,rate_hz=50", confirm=True, margin="3%"
    )
    study = parse_study("s", document, "s")
    assert study.factors["variant"] == ("base", "head") and study.plan.primary == "variant"
    assert study.variants["base"].root == "" and study.variants["base"].levels == {}
    assert study.variants["head"].root == str(tmp_path)
    assert [q.factors for q in study.questions] == [("variant",)]
    assert document["answers"] == {"baseline": {"variant": "base"}, "margin": 0.03, "looks": 2}
    head = next(t for t, _ in expand(study) if t["variant"] == "head")
    assert (head["settings.delay_us"], head["rate_hz"]) == (5, 50.0)
    assert head.get("interval_s") is None, "a rate takes the place of an interval"
    assert dict(head.varied) == {"variant": "head", "pattern": "topic"}


def test_a_variants_sizes_take_suffixes_as_those_of_set_do():
    study = parse_study("s", applied("base=payload_bytes=1k", "head=payload_bytes=8k"), "s")
    levels = {t["variant"]: t["payload_bytes"] for t, _ in expand(study)}
    assert levels == {"base": 1000, "head": 8000}
    with pytest.raises(UsageError, match="--variant head: payload_bytes.*8q"):
        applied("base=", "head=payload_bytes=8q")


def test_every_block_has_all_variants_and_blocks_can_be_added_for_some():
    study = parse_study("s", applied("a=", "b=", "c="), "s")
    treatments = [t for t, _ in expand(study)]
    plan = make_plan(treatments, study.plan)
    for block in (1, 2):
        runs = [run.treatment for run in plan if run.block == block]
        assert sorted(runs, key=str) == sorted(treatments, key=str)
    again = [t for t in treatments if t["pattern"] == "topic" and t["variant"] in "ac"]
    more = more_blocks(plan, again, study.plan)
    assert [run.block for run in more] == [3, 3, 4, 4]
    assert {run.treatment for run in more} == set(again)
    assert more[0].predecessor == plan[-1].run and more[2].predecessor == more[1].run
    assert len({run.run for run in [*plan, *more]}) == len(plan) + len(more)
    assert more_blocks(plan, again, study.plan) == more


def test_without_variants_a_study_stays_as_it_is():
    assert applied() is DOCUMENT
    for option, value in {"confirm": True, "margin": "5%", "response": ["lost"]}.items():
        with pytest.raises(UsageError, match=f"--{option} needs a comparison. Add --variant"):
            applied(**{option: value})
    with pytest.raises(UsageError, match=r"--junit needs .*, add a \[\[limit\]\] to the study"):
        applied(junit="out.xml")


def test_a_study_with_limits_or_variants_has_a_use_for_the_options(monkeypatch):
    monkeypatch.setitem(DOCUMENT, "limit", [{"response": "lost", "max": 0}])
    assert applied(junit="out.xml") is DOCUMENT
    monkeypatch.setitem(DOCUMENT, "variants", {"base": {}, "head": {}})
    monkeypatch.setitem(DOCUMENT, "factors", {"variant": ["base", "head"]})
    assert applied() is DOCUMENT
    changed = applied(margin="5%", response=["lost"], confirm=True)
    assert changed["answers"] == {"margin": 0.05, "looks": 2}, "the page has the gate's margin"
    assert [(q["factors"], q["responses"]) for q in changed["question"]] == [
        (["pattern"], ["lost"]), (["variant"], ["lost"])
    ]  # fmt: skip


def test_two_ways_of_looking_are_not_mixed(monkeypatch):
    monkeypatch.setitem(DOCUMENT, "plan", {"stop_width": 0.05, "blocks": 20})
    with pytest.raises(UsageError, match="a study that stops by width"):
        applied("base=", "head=", confirm=True)
    assert applied("base=", "head=")["plan"]["stop_width"] == 0.05


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("base=",), "a comparison needs two"),
        (("base=", "base="), "have the same name"),
        (("base", "head="), "allowed: NAME=FOLDER"),
        (("a b=", "head="), "allowed: NAME=FOLDER"),
        (("base=", "head=nowhere"), "folder nowhere does not exist"),
        (("base=", "head=.,.."), "two folders"),
    ],
)
def test_a_variant_that_is_none_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        applied(*given)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--variant", "head=."), "this folder has no middleware/ or languages/"),
        (("--variant", "head=settings.delai_us=1"), 'unknown setting "delai_us"'),
        (("--variant", "head=pattern=topic"), "pattern is a factor of the study"),
        (("--variant", "head=variant=x"), "variant is a factor of the study"),
        (("--variant", "head=clients=0"), "variants.head: levels.clients: found 0"),
        (("--variant", "head=", "--margin", "5x"), "above 0% and below 100%"),
        (("--variant", "head=", "--json", "--markdown", "-"), "both write to the terminal"),
    ],
)
def test_nothing_is_measured_for_a_wrong_request(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    asked = ["run", "study.toml", "--campaign", "c", "--variant", "base=", *arguments]
    assert main(asked) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), (" 7.5% ", 0.075)])
def test_a_margin_is_per_cent_or_a_share(text, value):
    assert quantities.share(text, "--margin") == pytest.approx(value)


@pytest.mark.parametrize("text", ["0", "100%", "-1%", "5", "nan", "inf%", "", "%"])
def test_other_margins_are_refused(text):
    with pytest.raises(UsageError, match="above 0% and below 100%"):
        quantities.share(text, "--margin")


def test_campaigns_that_are_none_are_refused(tmp_path, capsys):
    assert main(["compare", str(tmp_path)]) == 2
    assert "this directory has no campaign" in capsys.readouterr().err
