"""Tests of the study's design on the page: its questions, its levels, and counts of runs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.design.numbers import (
    AskedQuestion,
    Design,
    FactorLevels,
    FactorOfQuestion,
    MachineFacts,
    RunCounts,
    SetLevel,
    TimeTaken,
    VariantLevels,
    _machines,
    design,
)
from wattwire.model.stored_study import Part
from wattwire.model.study.study import Goal
from wattwire.report.parts import Table
from wattwire.report.tests.answered import methods_of
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import SLOW, Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("design")
SHAPE = Shape(
    blocks=2, patterns=("topic",), intervals_s=(0.05, 0.2), clients=(1,), duration_s=2.0,
    b_over_a=1.0, unknown_runs=(1,), drop_runs=(2,), skip={"language": SLOW, "interval_s": 0.2},
)  # fmt: skip


def test_runs_of_the_design_control_runs_and_skipped_treatments_are_counted_apart(
    tmp_path: Path,
) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", SHAPE)))
    result = design(evidence)
    assert result.runs == RunCounts(6, 4, 1, 1)
    assert result.controls == RunCounts(6, 6)
    assert (result.treatments, result.blocks, result.skipped) == (3, 2, 1)
    language, _, interval, clients = result.factors
    assert language == FactorLevels("language", ("Swift", "Python"))
    assert interval == FactorLevels("interval", ("0.05 s", "0.2 s"))
    assert clients == FactorLevels("clients", ("1",))
    assert result.window_s is not None and 0 < result.window_s <= 2.0


def test_the_page_and_the_methods_have_the_same_length_of_a_window(tmp_path: Path) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", SHAPE)))
    windows_s = [3.0] * (evidence.usable.height - 1) + [9.0]  # the costs refer to 2 s of each
    evidence.usable = evidence.usable.with_columns(window_s=pl.Series(windows_s))
    conduct = methods_of(evidence).conduct
    assert design(evidence).window_s == conduct.window_s == 3.0


def test_time_and_machine_are_those_of_all_attempts_and_of_all_hosts(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", SHAPE)
    for index, path in enumerate(sorted(folder.glob("runs/*/run.json"))):
        document = json.loads(path.read_text())
        begin_ns = (100 + 10 * index) * 10**9
        document["seconds"] = {"settle": 1.0, "window": 2.0, "note": "no number"}
        document["conditions_before"] = {"waited_s": 0.5}
        document["clocks"] = {
            "begin": [{"realtime_ns": begin_ns}], "end": [{"realtime_ns": begin_ns + 3 * 10**9}],
        }  # fmt: skip
        path.write_text(json.dumps(document))
    evidence = gather(Campaign(folder))
    attempts = evidence.attempts.height
    taken = design(evidence).time
    assert taken == TimeTaken(3.0 * attempts, 0.5 * attempts, 10.0 * (attempts - 1) + 3.5)


def test_machines_that_print_alike_are_one_and_hosts_without_facts_are_none() -> None:
    facts = [
        {"key": "cpu_name", "value": "Made-up <4>"}, {"key": "cpus", "value": 4},
        {"key": "memory_total", "value": 16 << 30}, {"key": "kernel", "value": "6.1"},
    ]  # fmt: skip
    alike = [*facts[:2], {"key": "memory_total", "value": (16 << 30) + 1}, facts[3]]
    hosts = {"a": {"facts": facts}, "b": {"facts": alike}, "c": {"facts": []}, "d": {}}
    result = tuple(_machines({"hosts": hosts}))
    assert result == (MachineFacts("Made-up <4>", "4", 16.0, "6.1"),) * 2
    assert SENTENCES.facts(result[0]) == "Made-up <4>, 4 CPUs, 16.0 GiB, kernel 6.1"
    assert SENTENCES.facts(MachineFacts(kernel="6.1")) == "kernel 6.1"


def test_levels_of_variants_are_those_that_a_variant_changes(tmp_path: Path) -> None:
    document = {
        "factors": {"variant": ["plain", "other"]},
        "fixed": {"middleware": "loopback", "language": "cpp", "pattern": "service"},
        "variants": {"plain": {}, "other": {"levels": {"language": "python"}}, "unplanned": {}},
    }
    treatments = [{"variant": "plain"}, {"variant": "other"}]
    result = design(planted(tmp_path / "c", document, treatments, lambda _: 100.0, 2))
    assert result.shared == ("loopback", "service")
    assert result.variants == (
        VariantLevels("plain", (SetLevel("language", "cpp"),)),
        VariantLevels("other", (SetLevel("language", "python"),)),
    )


def test_levels_of_variants_are_in_the_order_of_the_study(tmp_path: Path) -> None:
    """A page must not depend on the order in which Python iterates over a set of texts."""
    fixed = {"middleware": "loopback", "language": "cpp", "pattern": "service", "payload": 64}
    changed = {name: level for name, level in reversed(fixed.items())}
    document = {
        "factors": {"variant": ["plain", "other"]},
        "fixed": fixed,
        "variants": {"plain": {}, "other": {"levels": {**changed, "language": "python"}}},
    }
    treatments = [{"variant": "plain"}, {"variant": "other"}]
    result = design(planted(tmp_path / "c", document, treatments, lambda _: 100.0, 2))
    for variant in result.variants:
        assert [level.key for level in variant.levels] == list(fixed)


FULL = Design(
    Part("language=x", 2),
    Goal("nodes", "compare", "latency", "a developer", "on a bench"),
    (
        AskedQuestion("Q1", "Is it?", (FactorOfQuestion("depth", "5"), FactorOfQuestion("rate"))
            , ("latency", "CPU time"), ("memory",)),
        AskedQuestion("Q2", "Was it?", (FactorOfQuestion("rate"),), ("latency",)),
    ),
    (FactorLevels("rate", ("1 Hz", "2 Hz")),),
    ("loopback", "64 B"),
    (VariantLevels("base", ()), VariantLevels("new", (SetLevel("a", "1"), SetLevel("b", "2")))),
    treatments=2,
    blocks=3,
    runs=RunCounts(6, 4, 1, 1),
    controls=RunCounts(2, 1, 1),
    skipped=1,
    window_s=90.0,
    time=TimeTaken(60.0, 1.0, None),
    machines=(MachineFacts("A", "4"), MachineFacts("B")),
)  # fmt: skip


def facts_of(result: Design) -> dict[str, str]:
    section = topic_page("design", result).section()
    assert section is not None
    table = section.parts[-1]
    assert isinstance(table, Table) and table.id == "what-was-run"
    return {row["what"]: row["value"] for row in table.rows}


def test_the_page_states_questions_levels_runs_time_and_machines() -> None:
    page = topic_page("design", FULL)
    section = page.section()
    assert section is not None and (section.id, len(section.parts)) == ("design", 4)
    part, goal, questions, _ = section.parts
    assert (part.key, part.value, goal.key) == ("design.part", "2", "design.goal")
    assert [(row["factors"], row["responses"]) for row in questions.rows] == [
        ("depth (held at 5) and rate", "latency and CPU time; correlates: memory"),
        ("rate", "latency"),
    ]
    facts = facts_of(FULL)
    assert list(facts)[0] == "part of the design"
    assert facts["rate"] == "1 Hz, 2 Hz"
    assert (facts["in base"], facts["in new"]) == ("as in the study", "a = 1 and b = 2")
    assert facts["measured runs of the design"] == "6: 4 valid, 1 excluded, 1 not tried yet"
    assert facts["control runs"] == "2: 1 valid, 1 not valid"
    assert facts["window length of a run"] == "1 min 30 s"
    assert facts["machine"] == "A, 4 CPUs; B"


def test_the_first_lines_count_runs_and_name_the_machines() -> None:
    ((place, line),) = topic_page("design", FULL).lines
    assert place == (40,)
    assert line == (
        "6 runs in the design: 4 valid, 1 excluded, 1 not tried yet; 2 control runs: 1 valid, 1 "
        "not valid; 1 treatment skipped; part of the study's design. A, 4 CPUs; B."
    )
    assert SENTENCES.summary(Design()) == "0 runs in the design: 0 valid, 0 excluded."


def test_a_study_without_questions_has_only_the_table_of_runs() -> None:
    section = topic_page("design", Design()).section()
    assert section is not None and len(section.parts) == 1
    facts = facts_of(Design())
    assert (facts["control runs"], facts["treatments skipped"]) == ("none", "0")
    assert (facts["window length of a run"], facts["machine"]) == ("–", "–")
    assert "measured time, sum of all attempts" not in facts
