"""Test the flows of a study, the growth of their latency, and what the headline states."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.analysis.answering.disagreement import contrast_at
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.latency import all_series
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.flows import queues as queues_module
from wattwire.analysis.topics.flows.arrivals import Arrivals, Counted
from wattwire.analysis.topics.flows.best_by_condition import (
    BestByCondition,
    Leader,
    best_by_condition,
)
from wattwire.analysis.topics.flows.growth import TOO_FEW, growths
from wattwire.analysis.topics.flows.numbers import Flows, flows
from wattwire.analysis.topics.flows.queues import ReliableLosses, reliable_losses
from wattwire.analysis.topics.flows.results import flow_results
from wattwire.analysis.topics.interactions.numbers import interactions
from wattwire.analysis.topics.latency.numbers import latency
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.analysis.topics.ranking.order import choices
from wattwire.model.derived import with_derived
from wattwire.model.stored_study import stored_study
from wattwire.report import html
from wattwire.report.parts import Column, Figure, Table, Text
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
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


def flows_of(found):
    answers = answer_all(found)
    return flows(found, answers, interactions(found, answers), ranking(found, answers))


def best_of(found):
    return best_by_condition(found, choices(found, answer_all(found)))


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


def test_the_headline_has_the_growth_at_each_level_and_no_mean_over_conditions():
    result = flows_of(evidence())
    (growth,) = result.growths
    assert [at.level for at in growth.at_levels] == ["native", "wifi"] and growth.ratio is None
    assert Sentences("flows").growths(result).startswith("With image also sent, the median ")
    assert (result.best.title, result.best.others) == ("fast", 0)
    assert len(result.best.leaders) == 4
    assert result.best.lowest == pytest.approx(100, rel=0.02)
    assert result.best.highest == pytest.approx(400, rel=0.02)


def test_the_table_has_the_means_of_the_headline():
    result = flows_of(evidence())
    fast = [row.latency_us[0] for row in result.rows
            if row.flow == "command" and row.treatment[-1] == "fast"]  # fmt: skip
    assert (min(fast), max(fast)) == (result.best.lowest, result.best.highest)


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
    answer = next(item for item in answer_all(found).items if item.factor == "flows")
    (growth,) = growths_of(found)
    assert (growth.ratio, growth.at_levels, growth.outcome) == (answer.interval, (), "different")
    assert growth.family > 1
    found = with_growth({"native": 1.02, "wifi": 1.02}, scatter=0.8)
    (growth,) = growths_of(found)
    assert (growth.ratio, growth.at_levels, growth.outcome) == (None, (), "undecided")
    words = Sentences("flows").growth_of
    assert "no difference detected" in words(growth)
    assert "too few repetitions" in words(replace(growth, outcome=TOO_FEW))
    assert "A/A noise" in words(replace(growth, outcome="within noise"))


def test_each_condition_has_its_own_best_alternative():
    found = evidence()
    slow_wins = (pl.col("factor.settings.rmw") == "slow") & (pl.col("factor.network") == "wifi")
    latency = "latency_p50_us.flow.command"
    found.usable = found.usable.with_columns(
        pl.when(slow_wins).then(pl.col(latency) / 8).otherwise(pl.col(latency)).alias(latency)
    )
    best = best_of(found)
    assert [leader.title for leader in best.named] == ["fast", "slow", "fast"]
    assert (best.title, best.more) == ("", 1)
    (first,) = choices(found, answer_all(found))
    assert best_by_condition(found, [first, first, first]).others == 2
    assert best_by_condition(found, []) is None


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
    best = best_by_condition(found, ranked)
    assert best.title == "fast" and len(best.leaders) == conditions
    assert best.highest == pytest.approx(highest_us, rel=0.02)


def test_a_minority_of_saturated_runs_takes_no_condition_from_the_headline():
    found = evidence()
    ranked = choices(found, answer_all(found))
    latency = "latency_p50_us.flow.command"
    one_run = (pl.col("factor.network") == "wifi") & (pl.col("block") == 1)
    found.usable = found.usable.with_columns(
        pl.when(one_run).then(50).otherwise(0).alias("undelivered.flow.command"),
        pl.when(one_run).then(1e6).otherwise(pl.col(latency)).alias(latency),
    )
    best = best_by_condition(found, ranked)
    assert best.title == "fast" and len(best.leaders) == 4
    assert best.highest == pytest.approx(400, rel=0.02)


def test_the_headline_counts_what_does_not_arrive():
    (arrived,) = flows_of(evidence(lost=150)).arrivals
    assert (arrived.flow, arrived.counted) == ("image", Counted(0, 24 * 150))
    assert (arrived.lossy, arrived.treatments, arrived.conditions) == (4, 4, ())
    assert flows_of(evidence()).arrivals == ()
    only_wifi = evidence(lost=150)
    native = pl.col("factor.network") == "native"
    only_wifi.usable = only_wifi.usable.with_columns(
        pl.when(native).then(0).otherwise(pl.col("lost.flow.image")).alias("lost.flow.image")
    )
    (arrived,) = flows_of(only_wifi).arrivals
    assert (arrived.conditions, arrived.lossy, arrived.treatments) == (("wifi",), 2, 2)


def test_where_nothing_arrives_is_not_summed_with_the_rest():
    some = evidence(lost=150)
    native = pl.col("factor.network") == "native"
    some.usable = some.usable.with_columns(
        pl.when(native).then(50).otherwise(pl.col("lost.flow.image")).alias("lost.flow.image")
    )
    (arrived,) = flows_of(some).arrivals
    assert arrived.counted == Counted(0, 12 * 150)
    assert arrived.otherwise == Counted(12 * 100, 12 * 150)


def test_arrivals_name_what_the_lossy_treatments_share():
    words = Sentences("flows").arrived
    assert words(Arrivals("image", Counted(1, 2), 3, 3)) == "1 of 2 messages of image arrived."
    some = Arrivals("image", Counted(1, 2), 1, 3, ("wifi",), Counted(4, 5))
    assert words(some).endswith("arrived in 1 of 3 treatments with wifi, and 4 of 5 otherwise.")


def test_the_headline_names_three_conditions_and_counts_the_others():
    response = Response("latency_p50_us", "median latency", "µs")
    leaders = tuple(Leader(f"r{n % 2}", f"c{n}", 100.0 + n, "µs") for n in range(5))
    text = Sentences("flows").best(BestByCondition(response, leaders, 1))
    assert text.startswith("Lowest observed median latency: r0 at c0 (100 µs), ")
    assert "; 2 more conditions; " in text and text.endswith("ranks 1 other response.")


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
    deployment = SimpleNamespace(flows=[flow])
    monkeypatch.setattr(queues_module, "deployment_of_run", lambda _run: deployment)
    lossy.runs = {run: {"nodes": nodes} for run in lossy.usable["run"].to_list()}
    losses = reliable_losses(lossy)
    assert losses == (ReliableLosses(("image",), tuple(queues)) if queues else None)


def test_the_page_has_a_row_for_each_flow_of_each_treatment():
    result = flows_of(evidence(lost=100))
    assert len(result.rows) == 4 + 2 * 4 and result.has_lost_medians
    images = [row for row in result.rows if row.flow == "image"]
    assert {row.treatment[0] for row in images} == {BOTH}
    assert {(row.offered_hz, row.achieved_hz, row.lost) for row in images} == {(30, 25, 600)}
    assert all(math.isinf(row.latency_us[0]) for row in images)
    commands = [row for row in result.rows if row.flow == "command"]
    assert {row.lost for row in commands} == {0}
    factors = [Column(name, name) for name in DOCUMENT["factors"]]
    page = topic_page("flows", replace(result, reliable=ReliableLosses(("a", "b"), ())), factors)
    warning, figure, table = page.section().parts
    assert isinstance(warning, Text) and (warning.key, warning.value) == ("flows.reliable", "a b")
    assert isinstance(figure, Figure) and figure.id == "flows-latency"
    assert isinstance(table, Table)
    first = table.rows[0]
    assert (first["flow"], first["network"]) == ("command", "native") and first["lost"] == 0
    assert first["latency_p50_us"] == pytest.approx(100, rel=0.02)
    assert topic_page("flows", Flows()).section() is None


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
    for network in found.factors["network"]:
        result = contrast_at(found, answer, "network", network)
        assert str(result) == "command sends no image"


def test_late_and_too_late_messages_are_apart_as_in_ros2_performance():
    found = evidence()
    shares = {
        "soft_deadline_missed_share.flow.command": 0.3,
        "hard_deadline_missed_share.flow.command": 0.1,
        "hard_deadline_missed_share.flow.image": 0.2,
    }
    columns = [pl.lit(share).alias(name) for name, share in shares.items()]
    found = replace(found, usable=found.usable.with_columns(columns))
    by_flow = {result.flow: result for result in flow_results(found)}
    assert by_flow["command"].late_percent == pytest.approx(20.0)
    assert by_flow["command"].too_late_percent == pytest.approx(10.0)
    # The study has no share of messages later than the soft deadline.
    assert by_flow["image"].late_percent is None
    assert by_flow["image"].too_late_percent == pytest.approx(20.0)
