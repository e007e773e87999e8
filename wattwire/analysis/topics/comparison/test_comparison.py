"""Tests of comparisons. A planted cost is detected, and unclear results are reported as such."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.responses import CPU, Response
from wattwire.analysis.topics.comparison.decision import (
    INCLUDES_MARGIN,
    NO_RATIO,
    NOT_WORSE,
    UNCLEAR,
    WORSE,
    Completions,
    Incomplete,
    Item,
    WithinNoise,
    completion,
    judged,
    judged_share,
)
from wattwire.analysis.topics.comparison.notes import (
    AcrossMachines,
    Changes,
    FactDifference,
    FiguresOfOne,
    LayersOfOne,
    NoiseNote,
    Occasions,
    SharesNote,
    UnchangedHead,
    Unmatched,
    UnpairedRuns,
    ValidityNote,
)
from wattwire.analysis.topics.comparison.numbers import compare, compared_variants
from wattwire.analysis.topics.comparison.requested import Wanted
from wattwire.analysis.topics.comparison.result import (
    PAIRED_BLOCKS,
    AllCompleted,
    ComparedVariants,
    Comparison,
)
from wattwire.analysis.topics.comparison.two_campaigns import Source, two_campaigns
from wattwire.analysis.topics.comparison.variants import suspect_keys, variants_of
from wattwire.analysis.topics.limits.numbers import Limits
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.cli import comparison_table
from wattwire.cli.verbs.compare import exit_code
from wattwire.model.errors import EXIT_CANNOT_TELL, EXIT_NOTHING_USABLE, UsageError
from wattwire.report.print import comparison
from wattwire.report.tests.answered import methods_of, page_headline
from wattwire.report.tests.compared_campaigns import (
    ALL,
    changed,
    made,
    of_variants,
    rewritten,
)
from wattwire.report.tests.synthetic import CPU_RATIO, FAST, SLOW, put_row, row_of
from wattwire.report.topic_page import Sentences, TopicPage, topic_page
from wattwire.store import Campaign
from wattwire.store.campaign import WARM_UP

SAID = Sentences("comparison")


def two(base: Campaign, head: Campaign, *names: str, **wanted: Any) -> Comparison:
    sources = [Source(one.path.name, one, {"cell x": one.path.name}) for one in (base, head)]
    pairing = two_campaigns(*sources, wanted.get("across_machines", False))
    return compare(pairing, Wanted(names, **wanted))


def inside(campaign: Campaign, *names: str, **wanted: Any) -> Comparison:
    return compare(variants_of(gather(campaign)), Wanted(names, **wanted))


def suspects(campaign: Campaign) -> list[str]:
    variants = variants_of(gather(campaign))
    return suspect_keys(variants, compare(variants, Wanted()))


def page(campaign: Campaign) -> TopicPage:
    return topic_page("comparison", compared_variants(gather(campaign)))


def verdicts(found: Comparison, column: str = "cpu_us_per_message") -> set[str]:
    return {item.verdict for item in found.items if item.response.column == column}


# -- two campaigns -------------------------------------------------------------------------------


def test_a_planted_extra_cost_is_worse_and_the_same_again_is_not(tmp_path):
    base = made(tmp_path / "base", 1)
    found = two(base, changed(made(tmp_path / "head", 2), cpu_us_per_message=2.0))
    assert verdicts(found) == {WORSE} and found.verdict == WORSE and found.bad(False)
    assert (len(found.worse), len(found.shown), found.margin) == (4, 4, 0.05)
    assert SAID.first_line(found).startswith("head is worse than base in 4 of 4 ")
    ratios = [item.ratio for item in found.items if item.response == CPU]
    assert all(isinstance(one, stats.Interval) and one.low < 2.0 < one.high for one in ratios)
    same = two(base, made(tmp_path / "again", 3), margin=0.5)
    assert same.verdict == NOT_WORSE and not same.bad(True)
    assert "again is not worse" in SAID.first_line(same)
    better = two(base, changed(made(tmp_path / "better", 4), cpu_us_per_message=0.5))
    assert verdicts(better) == {NOT_WORSE}


def test_what_the_margin_lies_within_cannot_be_told(tmp_path):
    found = two(made(tmp_path / "base", 1), made(tmp_path / "head", 2), margin=0.001)
    assert found.verdict == UNCLEAR and not found.bad(False) and found.bad(True)
    assert len(found.unclear) == 4 and found.common_reason is None
    assert SAID.detectable(found) in SAID.first_line(found)


def test_the_answers_hold_together_and_ranks_stand_beside(tmp_path):
    found = two(made(tmp_path / "base", 1), made(tmp_path / "head", 2))
    assert found.family == 4 and found.level == pytest.approx(1 - 0.05 / 4)
    item = found.items[0]
    assert isinstance(item.ratio, stats.Interval) and item.ratio.level == found.level
    assert isinstance(item.by_ranks, stats.Interval)


def test_another_machine_is_refused_by_its_facts_or_said_first(tmp_path):
    base = made(tmp_path / "base", 1)

    def slower(machine: dict[str, Any]) -> None:
        machine["hosts"]["local"]["facts"][1]["value"] = 2

    head = rewritten(made(tmp_path / "head", 2), "machine.json", slower)
    with pytest.raises(UsageError, match=r"cpus: 4 against 2.*--across-machines"):
        two(base, head)
    told = two(base, head, across_machines=True)
    assert told.across == AcrossMachines((), (FactDifference("cpus", 4, 2),))
    assert "cpus: 4 against 2" in SAID.first_line(told)


def test_other_windows_and_other_treatments_are_refused_in_words(tmp_path):
    base = made(tmp_path / "base", 1)
    with pytest.raises(UsageError, match="different windows.*plan.duration_s: 2.0 against 3.0"):
        two(base, made(tmp_path / "longer", 2, duration_s=3.0))

    def unstated(study: dict[str, Any]) -> None:
        del study["plan"]["duration_s"]

    # A default and the same stated value define the same window.
    default = made(tmp_path / "default", 3, duration_s=10.0)
    silent = rewritten(made(tmp_path / "silent", 4, duration_s=10.0), "study.json", unstated)
    assert verdicts(two(default, silent))
    with pytest.raises(UsageError, match="no treatment in common.*interval_s: 0.05 against 0.2"):
        two(base, made(tmp_path / "slower", 2, intervals_s=(0.2,)))


def test_a_look_is_said_of_the_side_that_was_one(tmp_path):
    look = {"study": {"validity": {"look": True}}}
    found = two(made(tmp_path / "base", 1), made(tmp_path / "head", 2, **look))
    looks = [note.campaign for note in found.notes if isinstance(note, ValidityNote)]
    assert looks == ["head"]
    (note,) = [note for note in found.notes if isinstance(note, ValidityNote)]
    assert SAID.note(note).startswith("head: The state of the machine excludes no run")
    of_one = inside(of_variants(tmp_path / "variants", **look))
    (note,) = [note for note in of_one.notes if isinstance(note, ValidityNote)]
    assert note.campaign is None and SAID.note(note).startswith("The state of the machine")


def warmed(campaign: Campaign, calls: int | None, found: int | None = None) -> Campaign:
    """Return the campaign in closed loop, with a warm-up from the study or from settling runs."""

    def closed(plan: list[dict[str, Any]]) -> None:
        for entry in plan:
            entry["levels"]["loop"] = "closed"

    def stated(study: dict[str, Any]) -> None:
        study["plan"] |= {} if calls is None else {"warmup_calls": calls}

    rewritten(campaign, "plan.json", closed)
    campaign = rewritten(campaign, "study.json", stated)
    if found is not None:
        campaign.journal.set(WARM_UP, {"calls": found, "cells": [], "words": "…"})
    return campaign


def test_campaigns_with_other_warm_ups_are_refused_found_or_stated(tmp_path):
    of_found = warmed(made(tmp_path / "base", 1), None, 200)
    for name, calls, found in (("later", None, 500), ("stated", 500, None)):
        with pytest.raises(UsageError, match="each client: 200 calls against 500.*--warmup 500"):
            two(of_found, warmed(made(tmp_path / name, 2), calls, found))
    # A campaign without settling runs includes its first calls in all results.
    with pytest.raises(UsageError, match="200 calls against 0"):
        two(of_found, warmed(made(tmp_path / "cold", 3), None))
    same = two(of_found, warmed(made(tmp_path / "same", 4), 200))
    assert verdicts(same)


def test_a_warm_up_in_calls_that_only_open_loops_have_is_none(tmp_path):
    def stated(study: dict[str, Any]) -> None:
        study["plan"]["warmup_calls"] = 500

    base, head = made(tmp_path / "base", 1), made(tmp_path / "head", 2)
    rewritten(head, "study.json", stated)
    assert gather(head).warmup_calls == 0
    assert verdicts(two(base, head))
    assert methods_of(gather(head)).conduct.warmup_calls == 0


def test_the_common_part_is_compared_and_the_rest_is_named(tmp_path):
    found = two(made(tmp_path / "base", 1), made(tmp_path / "head", 2, clients=(2, 3)))
    assert sum(item.response == CPU for item in found.items) == 2
    of_base, of_head = [note for note in found.notes if isinstance(note, Unmatched)]
    assert (of_base.counterpart, of_head.counterpart) == ("head", "base")
    assert "1 client" in of_base.treatments[0] and "3 clients" in of_head.treatments[0]
    assert of_base.named == of_base.treatments and of_base.unnamed == 0
    assert of_base.treatments[0] in SAID.note(of_base)


def test_a_figure_of_one_side_alone_is_named(tmp_path):
    path, both = "value.a_to_b_path_p50_us", "value.a_hop_p50_us"
    base = changed(made(tmp_path / "base", 1), **{path: 5, both: 2})
    head = changed(made(tmp_path / "head", 2), **{both: 2})
    found = two(base, head)
    (note,) = [note for note in found.notes if isinstance(note, FiguresOfOne)]
    assert note == FiguresOfOne("base", "head", (path,))
    assert path in SAID.note(note)
    (of_head,) = [note for note in two(head, base).notes if isinstance(note, FiguresOfOne)]
    assert (of_head.side, of_head.counterpart) == ("base", "head")
    campaign = of_variants(tmp_path / "variants")
    for file in campaign.path.glob("runs/*/summary.json"):
        row = row_of(file)
        time_us = 5.0 if row["factor.variant"].item() == SLOW else None
        row.with_columns(pl.lit(time_us, pl.Float64).alias(path)).pipe(put_row, file)
    notes = inside(Campaign(campaign.path)).notes
    assert FiguresOfOne(SLOW, FAST, (path,)) in notes


def test_occasions_noise_and_what_was_changed_are_said(tmp_path):
    base = made(tmp_path / "base", 1, b_over_a=2.5)
    head = changed(made(tmp_path / "head", 2, b_over_a=1.0), cpu_us_per_message=1.6)
    found = two(base, head)
    assert verdicts(found) == {UNCLEAR}, "the A/A pairs of base differ by more"
    assert all(isinstance(item.why, WithinNoise) for item in found.items if item.response == CPU)
    assert Occasions(same_boot=None) in found.notes and Changes(("cell x",)) in found.notes
    assert "cell x" in SAID.note(Changes(("cell x",)))
    bare = two(made(tmp_path / "x", 1), made(tmp_path / "y", 2))
    (noise,) = [note for note in bare.notes if isinstance(note, NoiseNote)]
    assert [side.floor for side in noise.sides] == [None, None]
    assert noise.share is None and not noise.imported


def test_a_response_is_asked_for_by_name_and_an_unknown_one_is_refused(tmp_path):
    base, head = made(tmp_path / "base", 1), made(tmp_path / "head", 2)
    slow = two(base, changed(head, latency_p50_us=3.0), "latency_p50_us")
    assert verdicts(slow, "latency_p50_us") == {WORSE}
    with pytest.raises(UsageError, match='unknown response "latency_p55_us".*latency_p50_us'):
        two(base, head, "latency_p55_us")
    rate = two(base, changed(head, rate_hz_achieved=0.5), "rate_hz_achieved")
    assert verdicts(rate, "rate_hz_achieved") == {WORSE}, "a lower rate is worse"


def test_runs_without_any_scatter_are_compared_without_an_interval(tmp_path):
    base, head = made(tmp_path / "base", 1), made(tmp_path / "head", 2)
    more = changed(head, schedule_late_p99_us=1.5)
    found = two(base, more, "schedule_late_p99_us", margin=0.2)
    items = [item for item in found.items if item.response.column == "schedule_late_p99_us"]
    assert {(item.verdict, item.exact) for item in items} == {(WORSE, 1.5)}
    assert not any(isinstance(item.ratio, stats.Interval) for item in items)


def test_a_head_that_does_not_work_is_worse_though_it_costs_nothing(tmp_path):
    base = made(tmp_path / "base", 1)
    dead = made(tmp_path / "head", 2, died_runs=tuple(range(20)))
    found = two(base, dead, "latency_p50_us")
    ends = [item for item in found.items if item.response.column == "completed"]
    assert {item.verdict for item in ends} == {WORSE}
    others = [item for item in found.items if item not in ends]
    assert {str(item.why) for item in others} == {"every run of one side failed"}
    assert {item.by_ranks for item in others} == {None}
    counts = {(item.why.completed, item.why.runs) for item in ends}
    assert counts == {((5, 0), (5, 5))}
    assert "0 of 5 runs completed" in SAID.first_line(found)


def saturated_variant(campaign: Campaign, *variants: str) -> Campaign:
    """Return the campaign after all runs of these variants were above their capacity."""
    for path in sorted(campaign.path.glob("runs/*/summary.json")):
        row = row_of(path)
        if row["factor.variant"][0] in variants:
            put_row(row.with_columns(outcome=pl.lit("saturated")), path)
    return Campaign(campaign.path)


def test_a_saturated_head_is_worse_and_no_saturated_cost_or_latency_is_compared(tmp_path):
    head = inside(saturated_variant(of_variants(tmp_path / "c"), SLOW))
    assert verdicts(head) == {UNCLEAR} and "saturated" in str(head.items[0].why)
    assert verdicts(head, "completed") == {WORSE} and head.bad(unclear_is_bad=False)
    both = saturated_variant(of_variants(tmp_path / "d"), SLOW, FAST)
    assert inside(both).verdict == UNCLEAR


def test_a_head_without_a_value_is_refused_for_it_and_not_for_its_blocks(tmp_path):
    campaign = of_variants(tmp_path / "c")
    for path in sorted(campaign.path.glob("runs/*/summary.json")):
        row = row_of(path)
        if row["factor.variant"].item() != FAST:
            put_row(row.with_columns(cpu_us_per_message=pl.lit(None, pl.Float64)), path)
    found = inside(Campaign(campaign.path), "cpu_us_per_message")
    (item,) = [item for item in found.items if item.response == CPU]
    reason = f"no run of {found.heads[0]} has a value"
    assert (str(item.why), str(found.common_reason)) == (reason, reason)
    assert reason in " ".join(comparison_table.lines(found))


def test_what_broke_the_first_run_stands_in_every_form(tmp_path):
    broken = of_variants(tmp_path / "c", base=SLOW)
    for path in broken.path.glob("runs/*/run.json"):
        document = json.loads(path.read_text())
        if document["treatment"]["variant"] == FAST:
            why = "client-0: RuntimeError: boom: config missing"
            path.write_text(json.dumps({**document, "outcome": "node_died", "outcome_detail": why}))
            table = path.parent / "summary.json"
            ended = [pl.lit("node_died").alias("outcome")]
            ended.append(pl.lit(None, pl.Float64).alias("cpu_us_per_message"))
            row_of(table).with_columns(*ended).pipe(put_row, table)
    found = inside(Campaign(broken.path))
    incomplete = {i.why.first_incomplete for i in found.items if isinstance(i.why, Completions)}
    assert incomplete == {Incomplete("node_died", why)}
    reason = f"first incomplete run: node died, {why}"
    assert reason in comparison.markdown(found) and reason in comparison.junit(found)
    assert reason in SAID.first_line(found)
    # These runs are valid, although they have no values.
    evidence = gather(Campaign(broken.path))
    assert "usable" not in page_headline(evidence, answer_all(evidence))
    result = unanswered(evidence, answer_all(evidence))
    assert (result.held, result.gaps) == ((), ())


def test_the_sentence_counts_the_rows_that_the_reader_sees(tmp_path):
    base = made(tmp_path / "base", 1)
    head = made(tmp_path / "head", 2, died_runs=(0,))
    found = two(base, head, "latency_p50_us", margin=0.0)
    rows = [line for line in comparison.markdown(found).splitlines() if " ❔ " in line]
    assert len(rows) == 5 and sum("runs completed" in row for row in rows) == 1
    assert (len(found.unclear), len(found.shown)) == (5, 5)
    assert "5 of 5 comparisons" in SAID.first_line(found)
    assert found.completed == AllCompleted(completed=3, treatments=4, runs=30)
    assert SAID.completed(found) in comparison_table.lines(found)


# -- variants ------------------------------------------------------------------------------------


def test_variants_are_compared_inside_blocks_against_the_first(tmp_path):
    found = inside(of_variants(tmp_path / "c"))
    assert (found.base, found.heads, found.margin) == (FAST, (SLOW,), 0.05)
    ratio = next(item.ratio for item in found.items if item.response == CPU)
    assert isinstance(ratio, stats.Interval) and ratio.low < 1 / CPU_RATIO < ratio.high
    assert found.verdict == WORSE and ratio.count == 5
    other = inside(of_variants(tmp_path / "d", base=SLOW))
    assert other.verdict == NOT_WORSE and other.heads == (FAST,)


def test_the_verdict_on_the_variants_is_the_first_sentence_of_their_page(tmp_path):
    campaign = of_variants(tmp_path / "c")
    evidence = gather(campaign)
    verdict = SAID.first_line(inside(campaign))
    # A sentence on the levels as such could contradict the verdict, which knows the margin.
    assert page_headline(evidence, answer_all(evidence)) == verdict
    assert answer_all(evidence).items == (), "the page has one verdict on each treatment"


def test_suspects_are_both_sides_of_what_is_worse_and_looks_share_the_error(tmp_path):
    campaign = of_variants(tmp_path / "c")
    once = inside(campaign)
    assert set(suspects(campaign)) == {FAST, SLOW}
    looking = rewritten(campaign, "study.json", lambda s: s["answers"].update(looks=2))
    twice = inside(looking)
    assert twice.level == pytest.approx(1 - (1 - once.level) / 3) and twice.looks == 3
    fine = of_variants(tmp_path / "d", base=SLOW)
    assert suspects(fine) == []


def disturbed(campaign: Campaign, first_blocks: int, factor: float) -> Campaign:
    """Return the campaign with two looks, and with other load in the blocks of the first look."""
    for path in campaign.path.glob("runs/*/summary.json"):
        row = json.loads(path.read_text())
        if row["block"] <= first_blocks and (row["block"] + (FAST in row["factor.variant"])) % 2:
            row["cpu_us_per_message"] *= factor
            path.write_text(json.dumps(row))

    def of_study(study: dict[str, Any]) -> None:
        study["answers"]["looks"] = 2
        study["plan"]["blocks"] = first_blocks

    return rewritten(campaign, "study.json", of_study)


def test_the_added_blocks_decide_alone_if_all_blocks_cannot_tell(tmp_path):
    campaign = disturbed(of_variants(tmp_path / "c", blocks=10), first_blocks=5, factor=1e4)
    found = inside(campaign)
    assert verdicts(found) == {WORSE}
    (item,) = (one for one in found.items if one.response == CPU)
    assert item.base_runs == 5 and item.ratio.low > 2  # the ratio of the undisturbed blocks
    # Without a second look, these blocks are part of the only test.
    once = rewritten(campaign, "study.json", lambda s: s["answers"].update(looks=1))
    assert verdicts(inside(once)) == {UNCLEAR}


def test_an_undecided_comparison_is_measured_again_and_states_what_it_could_detect(tmp_path):
    campaign = disturbed(of_variants(tmp_path / "c"), first_blocks=5, factor=1e4)
    found = inside(campaign)
    assert found.verdict == UNCLEAR
    assert set(suspects(campaign)) == {FAST, SLOW}
    assert SAID.detectable(found) and SAID.detectable(found) in SAID.first_line(found)
    assert SAID.detectable(found) not in "\n".join(comparison_table.lines(found)[1:])


def test_a_run_without_its_partner_is_left_out_and_counted(tmp_path):
    found = inside(of_variants(tmp_path / "c", unknown_runs=(0,)))
    ratio = next(item.ratio for item in found.items if item.response == CPU)
    assert isinstance(ratio, stats.Interval) and ratio.count == 4
    assert UnpairedRuns(1) in found.notes
    assert "1 run has no partner" in SAID.note(UnpairedRuns(1))


def test_too_few_blocks_and_no_variants_are_said(tmp_path):
    few = inside(of_variants(tmp_path / "c", blocks=2))
    assert verdicts(few) == {UNCLEAR}
    assert stats.TooFew(2, 3, "blocks") in [item.why for item in few.items]
    with pytest.raises(UsageError, match="has no variants.*--variant base="):
        inside(made(tmp_path / "d", 1))


def test_a_head_that_is_the_base_again_is_told(tmp_path):
    campaign = of_variants(tmp_path / "c")

    def said(**cells: str) -> bool:
        identity = {key.replace("_", ": ").replace("C", "cell "): of for key, of in cells.items()}
        campaign.journal.set("identity", identity)
        compared = inside(campaign)
        return UnchangedHead(SLOW, FAST) in compared.notes

    assert said(**{f"C{FAST}_x": "1", f"C{SLOW}_x": "1"})
    assert not said(**{f"C{FAST}_x": "1", f"C{SLOW}_x": "2"})
    assert not said(Cx="1", **{f"C{SLOW}_x": "2"}), "the base's own root is the usual one"
    assert not said(), "nothing is known"


def test_runs_of_the_base_count_once_however_many_heads_there_are():
    sides = (["completed"] * 3, ["completed"] * 3)
    items = tuple(
        completion(f"{size} ({head})", "base", head, sides, 0.95, base_treatment=size)
        for size in ("8 B", "64 B")
        for head in ("x", "y")
    )
    verdicts_ = Comparison("base", ("x", "y"), items, 0.05, 0.95, 4, 1, PAIRED_BLOCKS)
    assert verdicts_.completed == AllCompleted(completed=4, treatments=4, runs=18)


def test_the_page_has_the_verdicts_of_variants_and_no_such_part_without_them(tmp_path):
    part = page(of_variants(tmp_path / "c")).section()
    assert part is not None and part.id == "variants" and part.parts[0].tone == "warning"
    lines = [(line.key, line.value) for line in part.parts[:2]]
    assert lines == [("comparison.verdict", WORSE), ("comparison.completed", "10")]
    assert [(row["response"], row["verdict"]) for row in part.parts[2].rows] == [(CPU.title, WORSE)]
    assert part.parts[3].parts[0].key == "comparison.note"
    evidence = gather(of_variants(tmp_path / "f"))
    variants = methods_of(evidence).variants
    assert variants is not None and not variants.are_joint
    assert (variants.margin, variants.level) == (0.05, pytest.approx(0.95))
    without = compared_variants(gather(made(tmp_path / "d", 1)))
    assert without == ComparedVariants() and topic_page("comparison", without).section() is None
    none = of_variants(tmp_path / "e", skip={"language": FAST})
    told = page(none).section()
    assert told is not None and told.parts[0].key == "comparison.reason"
    assert compared_variants(gather(none)).reason == told.parts[0].value
    assert "no treatment is planned for both" in told.parts[0].value


# -- lost messages and failed calls ----------------------------------------------------------------


def losing(campaign: Campaign, variant: str, shares: list[float], name: str = "lost"):
    """Return the campaign after a variant loses a share of its messages, given per block."""
    for path in sorted(campaign.path.glob("runs/*/summary.json")):
        frame = row_of(path)
        of = shares[frame["block"][0] - 1] if frame["factor.variant"][0] == variant else 0.0
        counts = (pl.col("expected") * of).alias(name)
        frame.with_columns(counts).pipe(put_row, path)
    return Campaign(campaign.path)


TENTH = [0.10, 0.11, 0.09, 0.10, 0.10]


@pytest.mark.parametrize("name", ["lost", "failed"])
def test_a_head_that_loses_a_tenth_is_worse_whatever_else_is_compared(tmp_path, name):
    # The slow language is the base, so the head is better in all other responses.
    campaign = losing(of_variants(tmp_path / "c", base=SLOW), FAST, TENTH, name)
    found = inside(campaign, "latency_p50_us")
    assert found.verdict == WORSE and exit_code(found, Limits(), gate()) == 1
    told = f"{FAST} 10 %, {SLOW} 0 %; +10 percentage points"
    assert told in SAID.first_line(found)
    for text in (
        "\n".join(comparison_table.lines(found)),
        comparison.markdown(found),
        comparison.junit(found),
    ):
        assert told in text
    suite = ElementTree.fromstring(comparison.junit(found)).find("testsuite")
    assert suite is not None and suite.attrib["failures"] == "1"
    items = comparison.json_document(found)["items"]
    share = next(item for item in items if item["response"] != "completed"
                 and item["verdict"] == WORSE)  # fmt: skip
    assert share["shares"] == pytest.approx([0.0, 0.1])
    assert share["difference"][1] > 0.01 and share["ratio"] is None
    asked = inside(campaign, "loss_share", "failed_share")
    assert asked.verdict == WORSE
    part = page(campaign).section()
    assert part is not None and told in part.parts[0].words
    assert told in " ".join(sentence.text for sentence in page(campaign).sentences)


def test_losses_that_both_sides_have_or_that_are_few_are_not_worse_and_are_named(tmp_path):
    campaign = losing(of_variants(tmp_path / "c", base=SLOW), FAST, [0.001, 0.0, 0.0, 0.001, 0.0])
    found = inside(campaign)
    assert found.verdict == NOT_WORSE
    (lost,) = found.increased
    assert lost.shares == (0.0, pytest.approx(0.0004))
    assert SAID.increased(lost) in SAID.first_line(found)
    assert SharesNote(0.01, ("loss_share",)) in found.notes
    strict = inside(campaign, margin=0.0)
    assert verdicts(strict, "loss_share") == {UNCLEAR}
    erratic = losing(campaign, FAST, [0.0, 0.0, 0.5, 0.0, 0.0])
    assert verdicts(inside(erratic), "loss_share") == {UNCLEAR}
    none = inside(of_variants(tmp_path / "d"))
    assert SharesNote(None, ("loss_share",)) in none.notes  # topics have no calls
    assert "No message was lost" in SAID.note(SharesNote(None, ("loss_share",)))
    assert not verdicts(none, "loss_share")


def test_losses_that_no_run_recorded_are_not_called_absent(tmp_path):
    counters = {name: None for name in ("lost", "failed", "expected", "received_unique")}
    found = two(*(changed(made(tmp_path / side, 1), **counters) for side in ("a", "b")))
    assert SharesNote(None, ()) in found.notes
    assert "no record" in SAID.note(SharesNote(None, ()))


def test_a_campaign_of_a_command_gets_no_advice_on_variants(tmp_path):
    def of_command(study: dict[str, Any]) -> None:
        study["exec"] = {"command": ["true"]}

    sides = [made(tmp_path / side, 1) for side in ("a", "b")]
    assert Occasions(None, have_variants=True) in two(*sides).notes
    commands = [rewritten(side, "study.json", of_command) for side in sides]
    assert commands[0].study.request is not None
    assert Occasions(None, have_variants=False) in two(*commands).notes


@pytest.mark.parametrize("recorded", [(), ("a",), ("b",), ("a", "b")])
def test_a_command_with_layers_against_one_without_gets_a_note(tmp_path, recorded):
    def side(name: str) -> Campaign:
        document = {"command": ["true"], "layers": name in recorded}
        return rewritten(
            made(tmp_path / name, 1), "study.json", lambda study: study.update(exec=document)
        )

    notes = [note for note in two(side("a"), side("b")).notes if isinstance(note, LayersOfOne)]
    plain = {"a": "b", "b": "a"}
    expected = [LayersOfOne(r, plain[r]) for r in recorded] if len(recorded) == 1 else []
    assert notes == expected
    for note in notes:
        assert f"Only {note.recorded} ran with --layers" in SAID.note(note)


def test_losses_of_two_occasions_are_compared_by_their_difference_and_the_noise(tmp_path):
    base = made(tmp_path / "base", 1)
    found = two(base, made(tmp_path / "head", 2, loss_share=0.3), "cpu_us_per_message")
    assert verdicts(found, "loss_share") == {WORSE}
    assert found.named[0].response.column == "loss_share", "losses precede costs"
    same = two(made(tmp_path / "one", 3, loss_share=0.3), made(tmp_path / "two", 4, loss_share=0.3))
    assert WORSE not in verdicts(same, "loss_share")
    assert verdicts(two(base, made(tmp_path / "more", 5), "loss_share"), "loss_share") == {
        NOT_WORSE
    }
    lost = Response("loss_share", "lost", "", share=True)
    apart = stats.Interval(0.1, 0.08, 0.12, 0.95, 5, "t")
    shown = Item("t", lost, "a", "b", NO_RATIO, shares=(0.0, 0.1), difference=apart)
    assert judged_share(shown, 0.2, 0.05).verdict == UNCLEAR
    assert judged_share(shown, 0.05, 0.05).verdict == WORSE
    assert shown.detectable_share(0.05) == pytest.approx(0.03)


# -- verdicts ------------------------------------------------------------------------------------


def item(low: float, high: float, **more: Any) -> Item:
    centre = (low * high) ** 0.5
    interval = stats.Interval(centre, low, high, 0.95, 10, "made up")
    return replace(Item("t", CPU, "a", "b", interval), **more)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.06, 1.2, WORSE), (1.01, 1.2, UNCLEAR), (0.9, 1.2, UNCLEAR), (1.01, 1.04, NOT_WORSE),
     (0.5, 0.6, NOT_WORSE), (1.2, 1.3, WORSE)],
)  # fmt: skip
def test_worse_lies_beyond_the_margin_with_the_whole_interval(low, high, verdict):
    assert judged(item(low, high), 0.05).verdict == verdict
    rate = Response("rate_hz_achieved", "rate", "Hz")
    assert judged(item(1 / high, 1 / low, response=rate), 0.05).verdict == verdict


@pytest.mark.parametrize(("low", "high"), [(math.nan, 1.0), (2.0, math.inf), (0.0, math.nan)])
def test_an_estimate_without_a_finite_value_decides_nothing(low, high) -> None:
    rate = Response("rate_hz_achieved", "rate", "Hz")
    for response in (CPU, rate):
        decided = judged(item(low, high, response=response), 0.05)
        is_wide = decided.why == INCLUDES_MARGIN
        assert decided.verdict == UNCLEAR and (is_wide or "no finite number" in str(decided.why))
    assert judged(item(0.0, 0.5, response=rate), 0.05).verdict == UNCLEAR
    assert judged(item(1.0, 1.0, exact=math.inf), 0.05).verdict == UNCLEAR
    share = Response("loss_share", "lost", "", share=True)
    apart = stats.Interval(math.nan, low, high, 0.95, 5, "t")
    shown = Item("t", share, "a", "b", NO_RATIO, shares=(0.0, 0.1), difference=apart)
    assert judged_share(shown, None, 0.05).verdict == UNCLEAR


def test_no_effect_within_the_noise_of_identical_labels_is_claimed():
    assert judged(item(1.06, 1.2, noise=0.5), 0.05).verdict == UNCLEAR
    assert judged(item(1.06, 1.2, noise=0.01), 0.05).verdict == WORSE


def test_how_runs_ended_is_told_by_an_exact_test_of_counts():
    def of(base: str, head: str) -> str:
        sides = [["completed" if mark == "+" else "died" for mark in side] for side in (base, head)]
        return completion("t", "a", "b", (sides[0], sides[1]), 0.95).verdict

    assert of("+++", "+++") == NOT_WORSE and of("---", "---") == NOT_WORSE
    assert of("+++", "---") == WORSE and of("+", "-") == UNCLEAR
    assert of("++++++++++", "+++++++++-") == UNCLEAR
    assert of("++++++++++", "+++-------") == WORSE
    assert of("+++", "") == UNCLEAR and of("+--", "+++") == NOT_WORSE


# -- output --------------------------------------------------------------------------------------


def test_junit_has_a_case_for_each_treatment_and_response(tmp_path):
    found = two(
        made(tmp_path / "base", 1, clients=(1,)),
        changed(made(tmp_path / "head", 2, clients=(1,)), cpu_us_per_message=2.0),
        "cpu_us_per_message", "memory_kib_per_node", "loss_share",
    )  # fmt: skip
    suite = ElementTree.fromstring(comparison.junit(found)).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.attrib["tests"]) == len(found.items) == 8
    failed = [case for case in cases if case.find("failure") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    assert int(suite.attrib["failures"]) == len(failed) == 2
    assert int(suite.attrib["skipped"]) == len(skipped) == 0
    assert all(case.attrib["name"].startswith("CPU time per message, ") for case in failed)
    assert sum("share of messages lost" in case.attrib["name"] for case in cases) == 2
    few = two(
        made(tmp_path / "one", 1, clients=(1,), blocks=1),
        made(tmp_path / "other", 2, clients=(1,), blocks=1),
        "cpu_us_per_message",
    )  # fmt: skip
    suite = ElementTree.fromstring(comparison.junit(few)).find("testsuite")
    assert suite is not None and suite.attrib["skipped"] == "2"
    strict = ElementTree.fromstring(comparison.junit(few, Limits(), True)).find("testsuite")
    assert strict is not None and strict.attrib["failures"] == "2"


def test_a_limit_beyond_all_numbers_is_no_loss_and_stays_json():
    wide = judged(item(1e-320, float("inf")), 0.05)
    assert wide.verdict == UNCLEAR and "∞)" in SAID.numbers(wide)
    assert wide.why == INCLUDES_MARGIN
    told = Comparison("a", ("b",), (wide,), 0.05, 0.95)
    assert (
        json.loads(json.dumps(comparison.json_document(told), allow_nan=False))["items"][0]["high"]
        is None
    )


def test_markdown_has_the_answer_first_and_no_cell_breaks_its_table(tmp_path):
    found = two(
        made(tmp_path / "base", 1), changed(made(tmp_path / "he|ad", 2), cpu_us_per_message=2.0)
    )
    lines = comparison.markdown(found).splitlines()
    assert lines[0].startswith("**he&#124;ad is worse than base in 4 of 4")
    rows = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7} and len(rows) == 2 + 4
    assert comparison_table.lines(found)[0] == SAID.first_line(found)
    assert json.loads(json.dumps(comparison.json_document(found)))["verdict"] == WORSE


# -- no valid run, and detectable changes ----------------------------------------------------------


def gate(**options: Any) -> Any:
    return argparse.Namespace(**{"cannot_tell": None, **options})


def test_without_a_valid_run_nothing_is_compared_and_no_answer_is_green(tmp_path):
    found = inside(of_variants(tmp_path / "c", unknown_runs=ALL))
    assert found.nothing_usable and SAID.detectable(found) == ""
    assert "No comparison is possible" in SAID.first_line(found)
    root = ElementTree.fromstring(comparison.junit(found))
    assert sum(int(suite.get("errors", 0)) for suite in root) == 1
    assert root.find(".//error[@type='no valid run']") is not None
    for cannot_tell in ("pass", "fail"):
        assert exit_code(found, Limits(), gate(cannot_tell=cannot_tell)) == EXIT_NOTHING_USABLE
    base = made(tmp_path / "d", 1)
    two_of = two(base, made(tmp_path / "e", 2, unknown_runs=ALL))
    assert exit_code(two_of, Limits(), gate()) == EXIT_NOTHING_USABLE


def test_a_comparison_that_cannot_tell_has_its_own_code_and_is_no_pass(tmp_path):
    few = inside(of_variants(tmp_path / "c", blocks=2))
    assert not few.nothing_usable
    assert exit_code(few, Limits(), gate()) == EXIT_CANNOT_TELL
    assert exit_code(few, Limits(), gate(cannot_tell="pass")) == 0
    assert exit_code(few, Limits(), gate(cannot_tell="fail")) == 1
    worse = inside(of_variants(tmp_path / "d"))
    assert exit_code(worse, Limits(), gate()) == 1
    assert ElementTree.fromstring(comparison.junit(worse)).find(".//error") is None


@pytest.mark.parametrize(
    ("column", "low", "high", "noise", "share"),
    [
        ("cpu_us_per_message", 0.9, 1.1, None, 1.05 * 1.0 / 0.9 - 1.0),
        ("cpu_us_per_message", 0.9, 1.1, math.log(1.4), 0.4),
        ("rate_hz_achieved", 0.9, 1.1, None, 1.0 - 1.0 / (1.05 * 1.1)),
        ("cpu_us_per_message", 0.0, math.inf, None, None),
    ],
)
def test_the_smallest_change_that_would_have_been_worse_is_at_the_verdict_s_edge(
    column, low, high, noise, share
):
    interval = stats.Interval(1.0, low, high, 0.95, 5, "t")
    one = Item("t", Response(column, column, ""), "a", "b", interval, noise=noise)
    assert one.detectable_share(0.05) == (None if share is None else pytest.approx(share))
    if share is None:
        return
    less = column == "rate_hz_achieved"
    for times, expected in ((1.001, WORSE), (0.999, UNCLEAR)):
        effect = 1.0 - times * share if less else 1.0 + times * share
        moved = stats.Interval(effect, low * effect, high * effect, 0.95, 5, "t")
        assert judged(replace(one, ratio=moved), 0.05).verdict == expected


def test_a_gate_tells_what_it_could_have_detected_in_every_form(tmp_path):
    found = inside(of_variants(tmp_path / "c"))
    told = SAID.detectable(found)
    (change,) = found.changes
    assert (change.response, change.is_range) == (CPU, False)
    assert change.smallest == change.largest == pytest.approx(100 * found.detectable()[CPU][0])
    assert told in comparison_table.lines(found) and told in comparison.markdown(found)
    suite = ElementTree.fromstring(comparison.junit(found)).find("testsuite")
    assert told in (suite.find("system-out").text or "")
    assert min(comparison.json_document(found)["detectable"]["cpu_us_per_message"]) > 0.05


def test_a_percentile_of_few_messages_is_refused_for_its_messages_not_for_its_blocks(tmp_path):
    wanted = ("latency_p99_us",)
    together = inside(of_variants(tmp_path / "variants"), *wanted)
    apart = two(*(made(tmp_path / name, 1) for name in ("a", "b")), "latency_p99_us")
    for judged_ in (together, apart):
        told = " ".join(comparison_table.lines(judged_))
        assert "messages in a run, and at least 1\u202f000 are needed" in told, told
        assert "0 blocks" not in told


@pytest.mark.parametrize(("base", "head", "verdict"), [(0, 7, WORSE), (7, 0, NOT_WORSE)])
@pytest.mark.parametrize("are_variants", [True, False])
def test_a_count_that_is_zero_on_one_side_has_a_difference_and_a_verdict(
    tmp_path, are_variants, base, head, verdict
):
    """A gate on errors must be able to fail while its base has none."""
    if are_variants:
        campaign = of_variants(tmp_path / "c")
        for path in campaign.path.glob("runs/*/summary.json"):
            row = row_of(path)
            errors = base if row["factor.variant"].item() == FAST else head
            row.with_columns(pl.lit(float(errors)).alias("value.errors")).pipe(put_row, path)
        found = inside(Campaign(campaign.path), "value.errors")
    else:
        sides = [
            changed(made(tmp_path / name, seed), **{"value.errors": number})
            for seed, (name, number) in enumerate((("base", base), ("head", head)))
        ]
        found = two(*sides, "value.errors")
    assert verdicts(found, "value.errors") == {verdict}
    item = next(item for item in found.items if item.values)
    assert item.values == (base, head)
    assert item.difference.estimate == head - base and "a difference of" in SAID.numbers(item)


def test_a_requested_response_stays_without_values_and_default_costs_do_not(tmp_path):
    def asked(study: dict[str, Any]) -> None:
        study["question"][0]["responses"] = ["value.errors", "wire_bytes_per_message"]

    campaign = rewritten(of_variants(tmp_path / "c"), "study.json", asked)
    found = inside(campaign)
    assert verdicts(found, "value.errors") == {UNCLEAR}
    assert verdicts(found, "wire_bytes_per_message") == set()


@pytest.mark.parametrize(("head", "verdict"), [(7.0, WORSE), (0.0, NOT_WORSE)])
def test_a_count_that_is_zero_in_some_runs_has_a_difference(tmp_path, head, verdict):
    campaign = of_variants(tmp_path / "c")
    for path in campaign.path.glob("runs/*/summary.json"):
        row = row_of(path)
        some = float(row["block"].item() == 1)
        errors = some if row["factor.variant"].item() == FAST else some + head
        row.with_columns(pl.lit(errors).alias("value.errors")).pipe(put_row, path)
    found = inside(Campaign(campaign.path), "value.errors")
    item = next(item for item in found.items if item.values)
    assert item.verdict == verdict and "a difference of" in SAID.numbers(item)
    assert found.detectable() == {}, "a difference is no share"


def test_a_rate_that_falls_to_zero_is_worse(tmp_path):
    base, head = (
        changed(made(tmp_path / name, 1), **{"value.calls_per_s": number})
        for name, number in (("base", 900), ("head", 0))
    )
    assert verdicts(two(base, head, "value.calls_per_s"), "value.calls_per_s") == {WORSE}


def test_percentiles_of_too_few_messages_are_the_reason_of_the_first_line(tmp_path):
    found = inside(of_variants(tmp_path / "c"), "latency_p99_us")
    assert isinstance(found.common_reason, stats.TooFew)
    assert "More blocks" not in SAID.first_line(found), "more blocks do not make runs longer"


def test_an_interval_without_bounds_is_no_pass():
    ratio = stats.Interval(1.0, 0.0, math.inf, 0.95, 3, "t")
    for direction in ("lower", "higher"):
        response = replace(CPU, stated_direction=direction)
        assert judged(Item("t", response, "a", "b", ratio), 0.05).verdict == UNCLEAR
