"""Tests of the output of a comparison, which is printed even if its files cannot be written."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.comparison.numbers import compare as comparison_of
from wattwire.analysis.topics.comparison.numbers import compared_variants
from wattwire.analysis.topics.comparison.requested import Wanted
from wattwire.analysis.topics.comparison.variants import variants_of
from wattwire.analysis.topics.limits.numbers import Limits
from wattwire.cli import exit_status
from wattwire.cli.main import main
from wattwire.cli.verbs import compare
from wattwire.cli.verbs import report as reporting
from wattwire.cli.verbs import run as campaigns
from wattwire.model.errors import EXIT_CANNOT_TELL, UsageError
from wattwire.report.tests.compared_campaigns import of_variants
from wattwire.report.tests.synthetic import SLOW
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

STUDY = """
[factors]
pattern = ["topic"]
[fixed]
cell = "loopback/python"
rate_hz = 20
"""


def outputs(**given: Any) -> argparse.Namespace:
    options = {"json": False, "markdown": None, "junit": None, "cannot_tell": "pass", **given}
    return argparse.Namespace(**options)


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, capsys, option
):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(STUDY)
    typed = ["run", "s.toml", "--variant", "a=", "--variant", "b=", "--campaign", "c"]
    assert main([*typed, option, "nowhere/answer"]) == 2
    assert f"{option} nowhere/answer: No such file or directory" in capsys.readouterr().err
    assert not Path("c").exists()


def test_the_try_to_write_leaves_no_file_and_keeps_one_that_is_there(tmp_path):
    kept, fresh = tmp_path / "kept.xml", tmp_path / "fresh.md"
    kept.write_text("before")
    compare.refuse_outputs(outputs(junit=str(kept), markdown=str(fresh)))
    assert kept.read_text() == "before" and not fresh.exists()
    compare.refuse_outputs(outputs(markdown="-"))
    with pytest.raises(UsageError, match="--junit"):
        compare.refuse_outputs(outputs(junit=str(tmp_path)))


def test_the_answer_is_printed_though_its_file_cannot_be_written_any_more(tmp_path, capsys):
    variants = variants_of(gather(of_variants(tmp_path / "c", base=SLOW)))
    found = comparison_of(variants, Wanted())
    with pytest.raises(OSError):
        compare.hand_out(found, Limits(), outputs(junit=str(tmp_path / "gone" / "x.xml")))
    assert "swift is not worse than python" in capsys.readouterr().out


def test_a_run_of_one_variant_compares_nothing_and_states_it(tmp_path, capsys):
    campaign = of_variants(tmp_path / "c")
    rows = [{**run, "treatment": {**run["treatment"], "variant": "head"}} for run in campaign.plan]
    (campaign.path / "plan.json").write_text(json.dumps(rows))
    of_one = exit_status.of(campaign, Limits(), compared_variants(gather(campaign)))
    assert of_one == (None, Limits(), True)
    assert "(head)" in capsys.readouterr().err
    assert exit_status.hand_out((None, Limits(), False), outputs()) == 0
    unset = outputs(cannot_tell=None)
    assert exit_status.hand_out((None, Limits(), True), unset) == EXIT_CANNOT_TELL
    assert exit_status.hand_out((None, Limits(), True), outputs(cannot_tell="pass")) == 0
    assert (
        exit_status.hand_out((None, Limits(), True), outputs(cannot_tell=None, junit="x.xml")) == 5
    )
    assert "--junit: no variants were compared" in capsys.readouterr().err
    with pytest.raises(UsageError, match="--junit: no variants were compared"):
        exit_status.hand_out((None, Limits(), False), outputs(junit="x.xml"))


def test_a_report_prints_the_answer_of_its_page(tmp_path, monkeypatch, capsys):
    made = of_variants(tmp_path / "c")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(reporting, "open_campaign", lambda _: made)
    monkeypatch.setattr(Campaign, "close", lambda _: None, raising=False)
    options = {
        "trace": None,
        "trace_class": None,
        "campaign": str(made.path),
        "stored": None,
        "validity": [],
        "figures": False,
    }
    assert reporting.report(argparse.Namespace(**options)) == 0
    told = capsys.readouterr().out.splitlines()
    answer = (made.path / "report/answer.txt").read_text().splitlines()
    assert told[0] == answer[0] and told[0]
    assert told[-1] == str((made.path / "report/index.html").resolve())


def test_a_run_without_a_page_has_the_same_answer(tmp_path):
    made = of_variants(tmp_path / "c")
    page, document = reporting.write_report(made)
    lines, same = campaigns._answered(made)  # noqa: SLF001
    assert lines[0] and lines[0] in reporting.answer_of(page)[0]
    assert same.values == document.values


def test_the_verdict_on_variants_is_the_pages_and_is_printed_once(tmp_path):
    made = of_variants(tmp_path / "c")
    lines, _ = campaigns._answered(made)  # noqa: SLF001
    outcome = exit_status.of(made, Limits(), compared_variants(gather(made)))
    verdict = Sentences("comparison").first_line(outcome[0])
    assert verdict in lines[0]
    assert verdict not in " ".join(exit_status.without_verdict(lines, outcome))
    assert exit_status.without_verdict(lines, (None, Limits(), False)) == list(lines)
