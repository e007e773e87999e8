"""Test the section on flows, and the growth of latency in the first sentence."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.flows.growth import growths
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.interactions.numbers import by_level, interactions
from wattwire.analysis.topics.latency.numbers import latency
from wattwire.analysis.topics.ranking.order import choices
from wattwire.model.derived import with_derived
from wattwire.model.stored_study import stored_study
from wattwire.report import html
from wattwire.report.parts import Text
from wattwire.report.sections import flows
from wattwire.report.tests.answered import headline
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.words.headlines import flow_headline, growth_clause
from wattwire.report.words.phrases import Phrase, joined
from wattwire.store import Campaign

ALONE, BOTH = "command", "command+image"
GROWTH = {"native": 1.5, "wifi": 4.0}
DOCUMENT = {
    "name": "flows",
    "question": [
        {"id": "G", "text": "?", "factors": ["flows", "network"],
         "responses": ["latency_p50_us.flow.command"]},
        {"id": "B", "text": "?", "factors": ["settings.rmw"],
         "responses": ["latency_p50_us.flow.command"]},
    ],
    "flow": [
        {"name": "command", "payload_bytes": 64, "rate_hz": 50},
        {"name": "image", "payload_bytes": 1000, "rate_hz": 30},
    ],
    "factors": {"flows": [ALONE, BOTH], "network": ["native", "wifi"],
                "settings.rmw": ["fast", "slow"]},
    "fixed": {"cell": "x/y"},
    "plan": {"blocks": 6, "primary": "flows"},
    "answers": {"margin": 0.05, "best_of": ["settings.rmw"]},
}  # fmt: skip


def runs(lost=0):
    rows = []
    for block, levels in itertools.product(
        range(1, 7), itertools.product(*DOCUMENT["factors"].values())
    ):
        sent, network, rmw = levels
        noise = 1 + 0.01 * math.sin(7 * block + 3 * len(rows))
        median_us = 100 * noise * (GROWTH[network] if sent == BOTH else 1)
        row = {
            "run": f"b{block}-{len(rows)}", "attempt": 1, "block": block, "position": 1,
            "verdict": "valid", "outcome": "completed", "control": "", "used": True,
            "factor.flows": sent, "factor.network": network, "factor.settings.rmw": rmw,
            "latency_p50_us.flow.command": median_us * (2 if rmw == "slow" else 1),
            "sent.flow.command": 250, "expected.flow.command": 250, "lost.flow.command": 0,
            "rate_hz_achieved.flow.command": 50.0, "sent.flow.image": None,
            "latency_p50_us.flow.image": None, "expected.flow.image": None,
            "lost.flow.image": None, "rate_hz_achieved.flow.image": None,
        }  # fmt: skip
        if sent == BOTH:
            row |= {
                "sent.flow.image": 150, "expected.flow.image": 150, "lost.flow.image": lost,
                "latency_p50_us.flow.image": None if lost > 75 else 900.0,
                "rate_hz_achieved.flow.image": 25.0,
            }  # fmt: skip
        rows.append(row)
    return with_derived(pl.DataFrame(rows, infer_schema_length=None))


def evidence(**changes):
    usable = runs(**changes)
    plan = [
        {"run": run, "treatment": {}, "levels": {}, "block": block, "skipped": None}
        for run, block in zip(usable["run"], usable["block"], strict=True)
    ]
    study = stored_study(DOCUMENT, "study.toml")
    empty = usable.clear()
    reader = SimpleNamespace(study=study, plan=plan, machine={}, path="")
    return Evidence(
        reader, study, plan, usable, usable, empty, empty, empty, dict(study.factors), "flows",
        {}, {entry["run"]: entry for entry in plan},
    )  # fmt: skip


def growths_of(found):
    answers = answer_all(found)
    return growths(answers, interactions(found, answers))


def growth_of(found):
    """Return the clause on the growth at the end of the headline."""
    answers = answer_all(found)
    return growth_clause.growth(answers, interactions(found, answers))


def test_the_growth_is_split_by_the_factor_that_changes_it_most():
    found = evidence()
    (growth,) = growths_of(found)
    assert (growth.flow, growth.added) == ("command", ("image",))
    assert growth.change is not None and growth.change.other == "network"
    for at in growth.change.levels:
        assert at.interval.low < GROWTH[at.level] < at.interval.high
        assert at.interval.estimate == pytest.approx(GROWTH[at.level], rel=0.02)
    # The factor that the question names first changes the growth less than the network.
    by_rmw = {**DOCUMENT, "question": [{**DOCUMENT["question"][0], "factors": [
        "flows", "settings.rmw", "network"]}]}  # fmt: skip
    found = replace(found, study=stored_study(by_rmw, "study.toml"))
    (growth,) = growths_of(found)
    assert growth.change is not None and growth.change.other == "network"


def test_the_first_sentence_ends_with_the_growth():
    found = evidence()
    answers = answer_all(found)
    growth = growth_of(found)
    assert growth.startswith("with image also sent, the median latency of command changed by ")
    assert [phrase.values["level"] for phrase in phrases_in(growth, "growth.at")] == [
        "native", "wifi",
    ]  # fmt: skip
    assert only(growth, "growth.exploratory")
    sentence = flow_headline.sentence(found, choices(found, answers), growth)
    assert only(sentence, "flow_headline.growth").values["growth"] == growth
    # No mean over a fast and a slow network.
    everywhere = only(sentence, "flow_headline.everywhere").values
    assert (everywhere["leader"], everywhere["conditions"]) == ("fast", 4)
    assert everywhere["lowest"] == pytest.approx(100, rel=0.02)
    assert everywhere["highest"] == pytest.approx(400, rel=0.02)


def test_the_table_has_the_mean_of_the_first_sentence():
    found = evidence()
    everywhere = only(flow_headline.sentence(found, choices(found, answer_all(found)), Phrase()),
                      "flow_headline.everywhere").values  # fmt: skip
    rows = flows.section(found).parts[-1].rows
    fast = [row["latency_p50_us"] for row in rows
            if row["flow"] == "command" and row["settings.rmw"] == "fast"]  # fmt: skip
    assert (min(fast), max(fast)) == (everywhere["lowest"], everywhere["highest"])


def with_growth(of_network, scatter=0.0):
    """Return the evidence with other factors of growth, and with scatter between blocks."""
    found = evidence()
    latency, both = "latency_p50_us.flow.command", pl.col("factor.flows") == BOTH
    planted = pl.col("factor.network").replace_strict(of_network, return_dtype=pl.Float64)
    usual = pl.col("factor.network").replace_strict(GROWTH, return_dtype=pl.Float64)
    noise = (
        scatter * (pl.col("block") * 2.7 + pl.col("factor.network").str.len_chars()).sin()
    ).exp()
    value = pl.when(both).then(pl.col(latency) / usual * planted * noise).otherwise(pl.col(latency))
    found.usable = found.usable.with_columns(value.alias(latency))
    return found


def test_a_growth_is_the_answer_of_the_table_or_not_detected():
    found = with_growth({"native": 2.0, "wifi": 2.0})
    answers = answer_all(found)
    answer = next(item for item in answers.items if item.factor == "flows")
    ratio = only(growth_of(found), "growth.ratio").values
    assert ratio["interval"] == answer.interval and ratio["family"] == "simultaneous "
    found = with_growth({"native": 1.02, "wifi": 1.02}, scatter=0.8)
    answers = answer_all(found)
    text = growth_of(found)
    assert [answers.outcome(item) for item in answers.items if item.factor == "flows"] == [
        "undecided"
    ]
    assert only(text, "growth.no_growth").values["outcome"] == "no difference detected"
    assert phrases_in(text, "growth.ratio") == []


def test_each_condition_has_its_own_best_alternative():
    found = evidence()
    slow_wins = (pl.col("factor.settings.rmw") == "slow") & (pl.col("factor.network") == "wifi")
    latency = "latency_p50_us.flow.command"
    found.usable = found.usable.with_columns(
        pl.when(slow_wins).then(pl.col(latency) / 8).otherwise(pl.col(latency)).alias(latency)
    )
    sentence = flow_headline.sentence(found, choices(found, answer_all(found)), Phrase())
    leaders = phrases_in(sentence, "flow_headline.leader")
    assert [one.values["leader"] for one in leaders] == ["fast", "slow", "fast"]
    assert only(sentence, "flow_headline.more").values == {"more": 1}
    first = choices(found, answer_all(found))[:1]
    assert phrases_in(flow_headline.sentence(found, first, Phrase()), "flow_headline.others") == []
    several = flow_headline.sentence(found, [*first, *first, *first], Phrase())
    assert only(several, "flow_headline.others").values == {"others": 2}


@pytest.mark.parametrize(
    ("flow", "conditions", "highest_us"), [("command", 2, 150), ("image", 4, 400)]
)
def test_a_condition_in_which_the_flow_itself_is_saturated_is_in_no_mean(
    flow, conditions, highest_us
):
    found = evidence()
    ranked = choices(found, answer_all(found))
    wifi = pl.col("factor.network") == "wifi"
    found.usable = found.usable.with_columns(
        pl.when(wifi).then(pl.lit("saturated")).otherwise(pl.col("outcome")).alias("outcome"),
        pl.when(wifi).then(50).otherwise(0).alias(f"undelivered.flow.{flow}"),
    )
    sentence = flow_headline.sentence(found, ranked, Phrase())
    everywhere = only(sentence, "flow_headline.everywhere").values
    assert everywhere["conditions"] == conditions
    assert everywhere["highest"] == pytest.approx(highest_us, rel=0.02)


def test_a_minority_of_saturated_runs_takes_no_condition_from_the_headline():
    found = evidence()
    ranked = choices(found, answer_all(found))
    latency = "latency_p50_us.flow.command"
    one_run = (pl.col("factor.network") == "wifi") & (pl.col("block") == 1)
    found.usable = found.usable.with_columns(
        pl.when(one_run).then(50).otherwise(0).alias("undelivered.flow.command"),
        pl.when(one_run).then(1e6).otherwise(pl.col(latency)).alias(latency),
    )
    sentence = flow_headline.sentence(found, ranked, Phrase())
    everywhere = only(sentence, "flow_headline.everywhere").values
    assert everywhere["conditions"] == 4
    assert everywhere["highest"] == pytest.approx(400, rel=0.02)


def test_the_first_words_are_what_does_not_arrive():
    found = evidence(lost=150)
    sentence = headline(found, answer_all(found))
    assert sentence.startswith("0 of 3")
    arrived = only(sentence, "flow_headline.arrived").values
    assert (arrived["received"], arrived["expected"], arrived["flow"]) == (0, 24 * 150, "image")
    assert not phrases_in(headline(evidence(), answer_all(evidence())), "flow_headline.arrived")
    only_wifi = evidence(lost=150)
    native = pl.col("factor.network") == "native"
    only_wifi.usable = only_wifi.usable.with_columns(
        pl.when(native).then(0).otherwise(pl.col("lost.flow.image")).alias("lost.flow.image")
    )
    (where,) = phrases_in(flow_headline.arrivals(only_wifi), "flow_headline.at")
    assert where.values["conditions"] == ["wifi"]


def test_where_nothing_arrives_is_not_summed_with_the_rest():
    some = evidence(lost=150)
    native = pl.col("factor.network") == "native"
    some.usable = some.usable.with_columns(
        pl.when(native).then(50).otherwise(pl.col("lost.flow.image")).alias("lost.flow.image")
    )
    arrived = only(flow_headline.arrivals(some), "flow_headline.arrived").values
    assert (arrived["received"], arrived["expected"]) == (0, 12 * 150)
    assert arrived["otherwise"].values == {"received": 12 * 100, "expected": 12 * 150}


@pytest.mark.parametrize("names", [3, 40])
def test_a_headline_has_three_lines_and_keeps_its_first_sentence(names):
    """However long the names of levels and flows are."""
    sentences = [Phrase(f"{n} of 900 messages arrived at {'x' * 10 * names}.") for n in range(9)]
    compared = "A is better than B in all 2 responses."
    text = joined([sentences[0], compared, joined(sentences[1:])])
    text = flow_headline.shortened(text, compared)
    assert text.startswith(sentences[0])
    assert len(text) <= max(flow_headline.HEADLINE_CHARS_MAX, len(sentences[0]))
    assert compared not in text
    short = joined([sentences[0][:30], compared])
    assert flow_headline.shortened(short, compared) == short


def nodes_with(delivery: str, **effective: object) -> list[dict[str, object]]:
    ready = {"effective": effective, "guarantee": {"delivery": delivery, "overload": "drop_oldest"}}
    return [{"node": number, "ready": ready} for number in range(6)]


@pytest.mark.parametrize(
    ("nodes", "queues"),
    [
        (nodes_with("best_effort", reliability="reliable", history="keep_last", depth=10),
         ["history = keep_last", "depth = 10"]),
        (nodes_with("reliable"), ["drop oldest"]),
        (nodes_with("best_effort", reliability="best_effort", depth=10), None),
    ],
)  # fmt: skip
def test_losses_of_reliable_delivery_name_the_queue_in_force(monkeypatch, nodes, queues):
    """Nodes whose queue is limited guarantee best effort, although their setting is reliable."""
    lossy = evidence(lost=100)
    flow = SimpleNamespace(sender=4, name="image")
    monkeypatch.setattr(flows, "deployment_of_run", lambda _run: SimpleNamespace(flows=[flow]))
    lossy.runs = {run: {"nodes": nodes} for run in lossy.usable["run"].to_list()}
    section = flows.section(lossy)
    texts = [part.words for part in section.parts if isinstance(part, Text)]
    named = [phrase.values for text in texts for phrase in phrases_in(text, "flows.queues")]
    assert named == ([{"queues": queues}] if queues else [])


def test_the_table_has_a_row_for_each_flow_of_each_treatment():
    section = flows.section(evidence(lost=100))
    figure, table = section.parts
    assert figure.id == "flows-latency"
    rows = table.rows
    assert len(rows) == 4 + 2 * 4
    images = [row for row in rows if row["flow"] == "image"]
    assert {row["flows"] for row in images} == {BOTH}
    assert {(row["offered"], row["achieved"], row["lost"]) for row in images} == {(30, 25, 600)}
    assert all(math.isinf(row["latency_p50_us"]) for row in images)
    commands = [row for row in rows if row["flow"] == "command"]
    assert {row["lost"] for row in commands} == {0}
    assert all(row["latency_p50_us"] > 0 for row in commands)


def test_no_percentile_is_over_the_messages_of_several_flows_and_names_are_not_capitalized(
    tmp_path,
):
    campaign = Campaign(write_campaign(tmp_path / "campaign", Shape(blocks=2)))
    found = gather(campaign)
    series = all_series(found)
    result = latency(found, series)
    assert result.curves is not None and result.percentiles and result.flows == ()
    found.study = replace(found.study, flows=stored_study(DOCUMENT, "study.toml").flows)
    result = latency(found, series)
    assert (result.curves, result.percentiles) == (None, ())
    assert result.flows == ("command", "image")
    css = (Path(html.__file__).parent / "templates" / "page.css").read_text()
    assert "text-transform: uppercase" not in css and "text-transform: capitalize" not in css


def test_a_response_of_a_flow_that_one_level_does_not_send_names_that_level():
    # The baseline sends no image, so that only the level with images has values.
    document = {**DOCUMENT, "question": [
        {"id": "L", "text": "?", "factors": ["flows"], "responses": ["latency_p50_us.flow.image"]},
    ]}  # fmt: skip
    found = evidence()
    found = replace(found, study=stored_study(document, "study.toml"))
    (answer,) = answer_all(found).items
    assert str(answer.result) == "command sends no image"
    for row in by_level(found, answer_all(found), [answer]):
        assert str(row.result) == "command sends no image"
