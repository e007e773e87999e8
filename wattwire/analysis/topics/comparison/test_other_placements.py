"""Test comparisons of runs in different placements: no verdict on times, with the reason."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.comparison.decision import (
    NOT_WORSE,
    UNCLEAR,
    WORSE,
    OtherPlacement,
)
from wattwire.analysis.topics.comparison.numbers import compare
from wattwire.analysis.topics.comparison.requested import Wanted
from wattwire.analysis.topics.comparison.two_campaigns import Source, two_campaigns
from wattwire.analysis.topics.comparison.variants import variants_of
from wattwire.analysis.topics.placements.apart import COLUMNS
from wattwire.cli.main import main
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_CANNOT_TELL
from wattwire.report.tests.compared_campaigns import of_variants
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

SHAPE = Shape(blocks=5, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
SAID = Sentences("comparison")
TIMES = ("cpu_us_per_message", "latency_p50_us")


def placed(row, same):
    """Return a summary row whose nodes shared a CPU for this share of the time."""
    shares = dict.fromkeys(COLUMNS, 0.0) | {COLUMNS[0]: same, COLUMNS[2]: 1 - same}
    return row.with_columns(**{name: pl.lit(share) for name, share in shares.items()})


def campaign(folder, same, seed=1, slower=1.0, levels=None):
    """Return a campaign whose nodes shared a CPU for the share `same` of the time."""
    random = np.random.default_rng(seed)
    write_campaign(folder, SHAPE, seed)
    for path in folder.glob("runs/*/summary.json"):
        times = [(pl.col(name) * slower).alias(name) for name in TIMES]
        share = float(np.clip(same + random.normal(0, 0.03), 0, 1))
        put_row(placed(row_of(path).with_columns(times), share), path)
    if levels:
        plan = json.loads((folder / "plan.json").read_text())
        plan = [{**entry, "levels": {**entry["levels"], **levels}} for entry in plan]
        (folder / "plan.json").write_text(json.dumps(plan))
    return Campaign(folder)


def compared(base, head, *names):
    sources = [Source(one.path.name, one, {}) for one in (base, head)]
    return compare(two_campaigns(*sources), Wanted(names or TIMES, 2.0))


def test_a_slower_head_on_other_cores_is_neither_worse_nor_not_worse(tmp_path):
    base = campaign(tmp_path / "base", 0.99)
    elsewhere = compared(base, campaign(tmp_path / "head", 0.05, 2, slower=9.0))
    of_times = [item for item in elsewhere.items if item.response.column in TIMES]
    assert of_times and {item.verdict for item in of_times} == {UNCLEAR}
    for item in of_times:
        assert isinstance(item.why, OtherPlacement) and item.why.nearness == "same_cpu"
        assert item.why.shares == pytest.approx((0.99, 0.05), abs=0.05)
        assert "different placements" in SAID.numbers_and_reason(item)
    assert elsewhere.verdict == UNCLEAR
    assert elsewhere.in_other_placements == len(of_times)
    assert SAID.placements(elsewhere) in SAID.first_line(elsewhere)
    not_slower = compared(base, campaign(tmp_path / "fast", 0.05, 3))
    assert {item.verdict for item in not_slower.items if item.response.column in TIMES} == {UNCLEAR}


def test_the_same_placement_and_unknown_placements_have_their_verdicts(tmp_path):
    base = campaign(tmp_path / "base", 0.05)
    slower = compared(base, campaign(tmp_path / "head", 0.05, 2, slower=9.0))
    assert {i.verdict for i in slower.items if i.response.column in TIMES} == {WORSE}
    write_campaign(tmp_path / "unread", SHAPE, 3)
    unread = compared(base, Campaign(tmp_path / "unread"))
    assert {i.verdict for i in unread.items if i.response.column in TIMES} == {NOT_WORSE}


def test_bytes_and_failures_do_not_depend_on_the_placement(tmp_path):
    base = campaign(tmp_path / "base", 0.99)
    head = campaign(tmp_path / "head", 0.05, 2)
    for side, bytes_sent in ((base, 100.0), (head, 400.0)):
        for number, path in enumerate(sorted(side.path.glob("runs/*/summary.json"))):
            count = pl.lit(bytes_sent + number % 3)
            put_row(row_of(path).with_columns(count.alias("wire_bytes_per_message")), path)
    sides = (Campaign(base.path), Campaign(head.path))
    found = compared(*sides, "wire_bytes_per_message", "cpu_us_per_message")
    verdicts = {item.response.column: item.verdict for item in found.items}
    assert verdicts["wire_bytes_per_message"] == WORSE
    assert verdicts["cpu_us_per_message"] == UNCLEAR
    assert verdicts["completed"] == NOT_WORSE


def test_the_exit_code_is_that_of_a_comparison_that_cannot_tell(tmp_path, capsys):
    campaign(tmp_path / "base", 0.99).close()
    campaign(tmp_path / "head", 0.05, 2, slower=9.0).close()
    typed = ["compare", str(tmp_path / "base"), str(tmp_path / "head"), "--response", TIMES[0]]
    assert main(typed) == EXIT_CANNOT_TELL
    assert "different placements" in capsys.readouterr().out.splitlines()[0]
    assert main([*typed, "--cannot-tell", "fail"]) == EXIT_BAD_RESULT


def test_a_campaign_without_the_factor_has_the_treatments_of_one_with_its_default(tmp_path):
    base = campaign(tmp_path / "base", 0.5)
    head = campaign(tmp_path / "head", 0.5, 2, levels={"cores": "free"})
    assert {i.verdict for i in compared(base, head).items if i.response.column in TIMES} == {
        NOT_WORSE
    }


@pytest.mark.parametrize(("head_cores", "verdict"), [("free", UNCLEAR), ("apart", WORSE)])
def test_variants_that_ask_for_other_cores_have_a_verdict(tmp_path, head_cores, verdict):
    found = of_variants(tmp_path / "variants", blocks=5)  # the head takes three times the CPU time
    base, head = found.study.factors["variant"]
    cores = {base: "free", head: head_cores}
    for path in found.path.glob("runs/*/summary.json"):
        row = row_of(path)
        put_row(placed(row, 0.99 if row["factor.variant"][0] == base else 0.05), path)
    plan = json.loads((found.path / "plan.json").read_text())
    for entry in plan:
        entry["levels"]["cores"] = cores[entry["treatment"]["variant"]]
    (found.path / "plan.json").write_text(json.dumps(plan))
    judged = compare(variants_of(gather(Campaign(found.path))), Wanted(TIMES[:1]))
    assert {item.verdict for item in judged.items if not item.response.share} == {verdict}
