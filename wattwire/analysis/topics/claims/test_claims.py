"""Test claims of a publication that planted latencies show, refute or cannot decide."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.document import document
from wattwire.analysis.topics.claims.numbers import claims as decided_claims
from wattwire.analysis.topics.claims.verdicts import DecidedClaims
from wattwire.model.errors import UsageError
from wattwire.model.layers import LAYERS, OPTIONAL
from wattwire.model.study import apply_preset, parse_study
from wattwire.report.parts import Table
from wattwire.report.tests.planted import planted
from wattwire.report.topic_page import Sentences, topic_page

SENTENCES = Sentences("claims")

SIZES = (512, 1024, 4096)
LATENCY_US = {
    ("udp", 512): 20.0, ("udp", 1024): 21.0, ("udp", 4096): 60.0,
    ("tcp", 512): 30.0, ("tcp", 1024): 21.1, ("tcp", 4096): 40.0,
    ("ros", 512): 10_500.0, ("ros", 1024): 41_600.0, ("ros", 4096): 42_000.0,
}  # fmt: skip
STEP = {
    "text": "Two messages of 512 B are faster than one of 1 kB.", "source": "section IV-B",
    "response": "latency_p50_us", "left": {"payload_bytes": 512}, "left_times": 2,
    "right": {"payload_bytes": 1024},
}  # fmt: skip
TRANSPORT = {
    "text": "UDP is the best choice.", "source": "section V", "question": "UDP or TCP?",
    "response": "latency_p50_us", "left": {"variant": "udp"}, "right": {"variant": "tcp"},
    "by": ["payload_bytes"],
}  # fmt: skip
MATLAB = {
    "text": "Split messages to MATLAB.", "source": "section IV-B",
    "unanswerable": "MATLAB was not measured",
}  # fmt: skip


def study_document(claims: Sequence[Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    """Return the document of a study of three protocols at three sizes."""
    factors = {"variant": ["udp", "tcp", "ros", "zenoh"], "payload_bytes": list(SIZES)}
    return {
        "title": "S",
        "factors": factors,
        "variants": {name: {} for name in factors["variant"]},
        "fixed": {"middleware": "loopback", "language": "cpp", "pattern": "service"},
        "answers": {"margin": 0.05},
        "claim": list(claims),
        **changes,
    }


def decide(
    folder: Path,
    claims: Sequence[Mapping[str, Any]],
    blocks: int = 5,
    scatter: Mapping[str, float] | None = None,
) -> Any:
    """Return the evidence, the answers and the decided claims of a planted campaign.

    `scatter` maps a variant to the standard deviation of the logarithm of its runs' latencies.
    """
    rng = np.random.default_rng(7)

    def latency_us(treatment: Mapping[str, Any]) -> float:
        deviation = (scatter or {}).get(treatment["variant"], 0.0)
        planted_us = LATENCY_US[treatment["variant"], treatment["payload_bytes"]]
        return planted_us * math.exp(deviation * rng.normal())

    treatments = [{"variant": variant, "payload_bytes": size} for variant, size in LATENCY_US]
    skipped = [
        ({"variant": "zenoh", "payload_bytes": size}, "no language Zig is installed")
        for size in SIZES
    ]
    plan = {"blocks": blocks, "primary": "variant"}
    evidence = planted(
        folder / "c",
        study_document(claims, plan=plan),
        treatments,
        latency_us,
        blocks,
        skipped,
    )
    answers = answer_all(evidence)
    return evidence, answers, decided_claims(evidence, answers)


def test_a_claim_is_shown_where_the_left_side_is_lower_and_refuted_where_it_is_higher(tmp_path):
    by_variant = [{**STEP, "where": {"variant": name}} for name in ("ros", "udp")]
    _, _, decided = decide(tmp_path, by_variant)
    assert [item.verdict for item in decided.items] == ["shown", "refuted"]
    for item, expected in zip(decided.items, (2 * 10.5 / 41.6, 2 * 20 / 21), strict=True):
        (comparison,) = item.comparisons
        assert comparison.result.low < expected < comparison.result.high
        assert item.claim.is_estimate and "is an estimate" in SENTENCES.sentence(item)


def test_a_claim_that_only_some_sizes_show_is_shown_in_part_and_answers_its_question(tmp_path):
    _, _, decided = decide(tmp_path, [TRANSPORT])
    (item,) = decided.items
    assert item.verdict == "shown in part"
    outcomes = {entry.at["payload_bytes"]: entry.outcome for entry in item.comparisons}
    assert outcomes == {512: "lower", 1024: "equivalent", 4096: "higher"}
    assert {entry.decision for entry in item.comparisons} == {"shown", "refuted"}
    assert decided.family == 3
    assert decided.level == pytest.approx(1 - 0.05 / 3)
    page = topic_page("claims", decided)
    ((place, line),) = page.terminal_lines
    assert place == (5,) and line.startswith(
        "UDP or TCP? “UDP is the best choice.” Shown in part. "
    )
    labels = [SENTENCES.label(entry) for group in item.groups for entry in group.comparisons]
    assert labels == ["512 B", "4096 B", "1024 B"]
    texts, (table,) = parts_of(decided)
    assert [(text.key, text.value) for text in texts if text.key] == [
        ("claims.verdict", "shown in part")
    ]
    assert [row["decision"] for row in table.rows] == ["shown", "refuted", "refuted"]
    assert {row["kind"] for row in table.rows} == {"measured"}
    assert "estimate" not in SENTENCES.sentence(item)


def parts_of(decided: DecidedClaims) -> tuple[list[Any], list[Table]]:
    """Return the paragraphs and the tables of the section."""
    section = topic_page("claims", decided).section()
    assert section is not None
    tables = [part for part in section.parts if isinstance(part, Table)]
    return [part for part in section.parts if not isinstance(part, Table)], tables


def test_a_claim_over_sizes_that_contradict_each_other_is_undecided(tmp_path):
    # UDP is faster than TCP at 512 B, and slower at 4096 B.
    over_sizes = {**TRANSPORT, "by": []}
    same_sign = {**over_sizes, "right": {"variant": "ros"}}
    evidence, answers, decided = decide(tmp_path, [over_sizes, same_sign])
    assert [item.verdict for item in decided.items] == ["undecided", "shown"]
    assert [item.comparisons[0].outcome for item in decided.items] == ["depends", "lower"]
    outcomes = [
        item["comparisons"][0]["outcome"] for item in document(evidence, answers).values["claims"]
    ]
    assert outcomes == ["depends", "lower"]


def test_equal_sides_are_shown_by_equivalence_and_a_list_requests_a_comparison_of_each(tmp_path):
    claim = {**TRANSPORT, "relation": "equal", "left": {"variant": ["tcp", "ros"]},
             "right": {"variant": "udp"}, "where": {"payload_bytes": 1024}}  # fmt: skip
    _, _, decided = decide(tmp_path, [claim])
    (item,) = decided.items
    decisions = {entry.left["variant"]: entry.decision for entry in item.comparisons}
    assert decisions == {"tcp": "shown", "ros": "refuted"}


@pytest.mark.parametrize(
    ("variant", "verdict"), [("udp", "refuted"), ("tcp", "shown"), ("ros", "shown")]
)
def test_a_side_is_at_most_another_if_it_is_lower_or_equivalent(tmp_path, variant, verdict):
    sides = {"left": {"payload_bytes": 4096}, "right": {"payload_bytes": 1024}, "right_times": 2}
    claim = {**STEP, "left_times": 1, **sides, "relation": "at most", "where": {"variant": variant}}
    _, _, decided = decide(tmp_path, [claim])
    assert [item.verdict for item in decided.items] == [verdict]


def test_the_scatter_of_one_variant_does_not_widen_the_interval_of_another(tmp_path):
    by_variant = {**STEP, "by": ["variant"], "where": {"variant": ["udp", "ros"]}}
    scatter = {"ros": 1.5}
    _, _, pair = decide(tmp_path / "pair", [by_variant], scatter=scatter)
    _, _, alone = decide(tmp_path / "alone", [{**STEP, "where": {"variant": "udp"}}])
    (udp, ros), (only_udp,) = pair.items[0].comparisons, alone.items[0].comparisons
    assert (udp.decision, ros.decision) == ("refuted", "undecided")
    assert pair.items[0].verdict == "refuted in part"
    assert math.log(udp.result.high / udp.result.low) < 2 * math.log(
        only_udp.result.high / only_udp.result.low
    )


def test_ratios_without_a_decision_leave_a_claim_undecided(tmp_path):
    claim = {**STEP, "where": {"variant": "ros"}}
    _, _, decided = decide(tmp_path, [claim], scatter={"ros": 2.0})
    assert [item.verdict for item in decided.items] == ["undecided"]


def test_a_skipped_variant_a_stated_reason_and_too_few_blocks_are_not_answerable(tmp_path):
    absent = {**STEP, "where": {"variant": "zenoh"}}
    claims = [{**TRANSPORT, "right": {"variant": "zenoh"}}, absent, MATLAB, TRANSPORT]
    _, _, decided = decide(tmp_path, claims, blocks=1)
    assert [item.verdict for item in decided.items] == ["not answerable"] * 4
    skipped, _, stated, few = decided.items
    assert all("no language Zig" in str(entry.result) for entry in skipped.comparisons)
    assert all(isinstance(entry.result, stats.TooFew) for entry in few.comparisons)
    assert (few.comparisons[0].result.count, few.comparisons[0].result.needed) == (1, 2)
    assert stated.reason == MATLAB["unanswerable"]
    assert SENTENCES.sentence(stated) == f"Not answerable: {MATLAB['unanswerable']}."
    ((count, verdict),) = [(entry.claims, entry.verdict) for entry in decided.counts]
    assert (count, verdict) == (4, "not answerable")


def test_a_claim_about_sizes_that_the_campaign_does_not_measure_gives_the_reason(tmp_path):
    where = {"variant": ["udp", "dds"]}
    claim = {**STEP, "left": {"payload_bytes": 2048}, "where": where}
    _, _, decided = decide(tmp_path, [claim])
    (item,) = decided.items
    assert item.verdict == "not answerable" and not item.comparisons
    assert "2048 B" in item.reason and "1024 B" not in item.reason and "dds" not in item.reason


def test_claims_are_part_of_the_analysis_document(tmp_path):
    evidence, answers, _ = decide(tmp_path, [STEP, MATLAB])
    numbers = document(evidence, answers).values
    schema = json.loads((resources.files("wattwire.analysis") / "analysis.schema.json").read_text())
    jsonschema.validate(numbers, schema)
    step, matlab = numbers["claims"]
    assert matlab["reason"] == MATLAB["unanswerable"] and not matlab["comparisons"]
    assert step["comparisons"][0]["low"] < step["comparisons"][0]["estimate"]


def parse(claim: Mapping[str, Any], **changes: Any) -> None:
    whole = study_document([claim], **changes)
    parse_study("s", apply_preset(whole, None, "study.toml"), "study.toml")


def test_a_claim_may_name_a_level_of_another_preset():
    presets = {"large": {"factors": {"payload_bytes": [65536]}}}
    parse({**STEP, "right": {"payload_bytes": 65536}}, presets=presets)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": {"payload_bytes": 513}}, "left.payload_bytes: found 513; allowed: 512, 1024, 40"),
        ({"where": {"variant": "upd"}}, 'where.variant: found .upd.; allowed: .*mean "udp"'),
        ({"where": {"varient": "udp"}}, 'where: unknown factor "varient"'),
        ({"where": {"variant": []}}, "where.variant: the list is empty"),
        ({"left": {"payload_bytes": "512"}}, "left.payload_bytes: found '512'; allowed: 512"),
        ({"by": ["size"]}, 'by: unknown factor "size"'),
        ({"by": ["payload_bytes"]}, "by: payload_bytes is a factor of left and right"),
        ({"right": {"variant": "udp"}}, "right: payload_bytes has no level"),
        ({"right": {"payload_bytes": 512}}, "right: found the levels of left"),
        ({"left": {}}, "left: found nothing; allowed: the comparison"),
        ({"left_times": 0}, "left_times: found 0; allowed: a number above 0"),
        ({"relation": "less"}, 'relation: unknown relation "less"; known: at most, equal, lower'),
        ({"response": "latency_p5_us"}, "response: unknown"),
        ({"unanswerable": "no MATLAB"}, "response: a claim with the key unanswerable has no"),
        ({"source": ""}, "source: found nothing"),
        ({"times": 2}, 'unknown key "times"'),
    ],
)
def test_a_bad_claim_names_the_key_the_value_and_what_is_allowed(change, message):
    with pytest.raises(UsageError, match=f"claim 1: {message}"):
        parse({**STEP, **change})


@pytest.mark.parametrize("relation", ["equal", "at most"])
def test_equality_needs_a_margin(relation):
    with pytest.raises(UsageError, match=f'relation: "{relation}" needs .* set answers.margin'):
        parse({**TRANSPORT, "relation": relation}, answers={})


OVERHEAD = {
    "text": "ROS adds up to 50 %.", "source": "section IV-C", "relation": "at most",
    "left_layers": ["Publisher rmw", "DDS"], "right_layers": ["DDS"], "right_times": 1.5,
    "where": {"variant": "ros"},
}  # fmt: skip


def decide_layers(
    folder: Path, ratios: Sequence[float], *others: Mapping[str, Any], lacking: Sequence[str] = ()
) -> DecidedClaims:
    """Return OVERHEAD and its changes, decided by recording runs with these ratios of layers."""
    document = study_document([OVERHEAD, *(OVERHEAD | changes for changes in others)])
    treatments = [{"variant": "ros", "payload_bytes": size} for size in SIZES]
    evidence = planted(folder / "c", document, treatments, lambda _: 1.0, 1)
    entries = [{**entry, "control": "layers", "treatment_key": repr(entry["treatment"])}
               for entry in evidence.plan]  # fmt: skip
    evidence.plan = entries if ratios else evidence.plan
    evidence.profiled = evidence.usable.head(len(ratios))
    documents = {}
    for row, ratio in zip(evidence.profiled.iter_rows(named=True), ratios, strict=True):
        medians = {layer.name: None if layer.name in OPTIONAL else 0.0 for layer in LAYERS}
        medians |= {"dds_write": 600.0, "transport": 400.0, "rmw_publish": 1000.0 * (ratio - 1)}
        medians |= dict.fromkeys(lacking, None)
        hop = {"deliveries": 9, "layer_medians_ns": medians}
        documents[f"{row['run']}-{row['attempt']}"] = {"layers": {"topics": [hop, hop]}}
    evidence.reader.run = documents.__getitem__  # type: ignore[method-assign]
    return decided_claims(evidence, answer_all(evidence))


def test_a_claim_on_layers_is_decided_by_the_runs_that_record_them(tmp_path):
    ratios = {"shown": (1.20, 1.21, 1.22), "refuted": (1.8, 1.81, 1.82), "undecided": (1.3, 2, 1.6)}
    for verdict, of_runs in ratios.items():
        decided = decide_layers(tmp_path / verdict, of_runs)
        (item,) = decided.items
        assert item.verdict == verdict
        (comparison,) = item.comparisons
        expected = float(np.exp(np.mean(np.log(of_runs)))) / 1.5
        assert comparison.result.estimate == pytest.approx(expected)
        sides = "edian time per hop of Publisher rmw and DDS divided by that of 1.5 × DDS"
        assert sides in SENTENCES.sentence(item)


def test_a_claim_on_layers_without_enough_runs_states_the_reason(tmp_path):
    (item,) = decide_layers(tmp_path / "none", ()).items
    assert item.verdict == "not answerable" and "set plan.layer_runs" in item.reason
    (item,) = decide_layers(tmp_path / "two", (1.2, 1.3)).items
    assert item.verdict == "not answerable"
    assert "there are only 2 runs, and at least 3 are needed" in SENTENCES.sentence(item)


def test_a_run_without_a_layer_decides_no_claim_on_layers(tmp_path):
    of_runs = (1.20, 1.21, 1.22)
    for lacking, title in (("dds_take", "DDS take"), ("rmw_take", "rmw, taking")):
        (item,) = decide_layers(tmp_path / lacking, of_runs, lacking=[lacking]).items
        assert item.verdict == "not answerable"
        assert f"a run records no {title}" in SENTENCES.sentence(item)
    (item,) = decide_layers(tmp_path / "optional", of_runs, lacking=OPTIONAL).items
    assert item.verdict == "shown"


def test_claims_with_other_layers_or_treatments_are_other_members_of_the_family(tmp_path):
    others = ({"left_times": 2}, {"right_layers": ["Publisher rmw"]}, {"where": {}})
    for number, family in ((1, 1), (2, 2), (3, 3)):
        decided = decide_layers(tmp_path / str(number), (1.2, 1.21, 1.22), *others[:number])
        assert decided.family == family


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"right_layers": []}, "right_layers: found nothing; allowed: Publisher ROS2 Common"),
        ({"right_layers": ["RMW"]}, "right_layers: unknown part"),
        ({"response": "latency_p50_us"}, "response: a claim on layers"),
        ({"left_layers": ["DDS"]}, "right_layers: found the parts of left_layers"),
    ],
)
def test_an_invalid_claim_on_layers_states_what_is_allowed(changes, message):
    with pytest.raises(UsageError, match=message):
        parse_study("s", study_document([OVERHEAD | changes]), "study.toml")
