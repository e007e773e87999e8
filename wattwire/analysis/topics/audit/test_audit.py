"""Tests of the audit trail: attempts with problems, exclusions by level, meters and machines."""

from __future__ import annotations

from pathlib import Path

from wattwire.analysis.charts import Chart
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import CPU
from wattwire.analysis.topics.audit.numbers import (
    Attempt,
    Audit,
    Exclusions,
    LevelExclusions,
    RunOrder,
    SkippedTreatment,
    Unusable,
    audit,
)
from wattwire.analysis.topics.audit.setup_facts import (
    Cgroup,
    Conduct,
    MachineFact,
    Meter,
    machine_facts,
)
from wattwire.report.parts import Figure, Table, Text
from wattwire.report.tests.synthetic import MACHINE, SLOW, Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("audit")
SHAPE = Shape(
    blocks=2, patterns=("topic",), intervals_s=(0.05, 0.2), clients=(1,), duration_s=2.0,
    unknown_runs=(1,), died_runs=(0,), skip={"language": SLOW, "interval_s": 0.2},
)  # fmt: skip


def evidence_of(folder: Path) -> Evidence:
    return gather(Campaign(write_campaign(folder, SHAPE)))


def test_attempts_with_problems_have_their_reasons_and_the_others_are_counted(tmp_path) -> None:
    evidence = evidence_of(tmp_path / "c")
    result = audit(evidence)
    died, invalid = result.attempts
    assert (invalid.verdict, invalid.outcome, invalid.is_counting) == ("invalid", "completed", True)
    assert invalid.reasons == "other_load: another process took 40 % <of> a core"
    assert (died.verdict, died.outcome) == ("valid", "died")
    assert died.reasons == "client-0: killed by signal 9"
    assert result.ordinary == evidence.attempts.height - 2 == 4
    assert [entry.reason for entry in result.skipped] == ["the cell has no such capability"]


def test_exclusions_are_counted_by_level_of_the_primary_factor(tmp_path) -> None:
    result = audit(evidence_of(tmp_path / "c")).exclusions
    assert (result.runs, result.excluded, result.factor_title) == (6, 1, "language")
    assert sorted((at.level, at.runs) for at in result.levels) == [("Python", 2), ("Swift", 4)]
    assert sum(at.excluded for at in result.levels) == 1
    assert result.p is not None and 0 < result.p <= 1


def test_the_run_order_has_excluded_runs_and_the_beginning_of_each_later_block(tmp_path) -> None:
    order = audit(evidence_of(tmp_path / "c")).order
    assert order is not None and order.response == CPU
    points = order.chart.points
    assert [point["used"] for point in points].count("excluded") == 1
    assert len(points) == 5, "the run that died has no CPU time"
    assert {point["edge"] for point in points if point["order"] <= 3} == {None}
    assert {point["edge"] for point in points if point["order"] > 3} == {3.5}
    assert set(order.chart.colours) == {"Python", "Swift"}


def test_a_replaced_attempt_does_not_count(tmp_path) -> None:
    evidence = evidence_of(tmp_path / "c")
    run = evidence.usable["run"][0]
    evidence.runs[run] = {**evidence.runs[run], "attempt": 2}
    frame = evidence.attempts
    evidence.attempts = frame.with_columns(used=(frame["run"] != run) & frame["used"])
    (replaced,) = [entry for entry in audit(evidence).attempts if entry.run == run]
    assert not replaced.is_counting
    assert SENTENCES.counts(replaced) == "no, replaced by another attempt"


def test_meters_that_are_absent_come_first_and_machines_have_all_facts(tmp_path) -> None:
    result = audit(evidence_of(tmp_path / "c"))
    rail, absent, present = result.meters
    assert (rail.meter, rail.reason) == ("rail_meter", "no address")
    assert (absent.meter, absent.reason, absent.grant) == (
        "wall_meter", "no device at /dev/wall0", "plug one in",
    )  # fmt: skip
    assert (present.meter, present.state) == ("fake", "present")
    host = absent.host
    assert MachineFact(host, "cgroup", None, cgroup=Cgroup("none", ("no per-tree CPU",))) in (
        result.machine
    )
    assert MachineFact(host, "kernel", "6.1.0") in result.machine
    assert MachineFact("", None, "0.1.0", version_of="agent") in result.machine
    assert tuple(machine_facts({})) == () and tuple(machine_facts(MACHINE)) == result.machine


def test_settings_baselines_and_repetitions_are_stated(tmp_path) -> None:
    rows = audit(evidence_of(tmp_path / "c")).conduct
    assert Conduct("plan.blocks", "2") in rows
    assert Conduct(baseline="machine", median_s=1.0) in rows
    assert rows[-1] == Conduct(retried=0)


FULL = Audit(
    False,
    RunOrder(CPU, Chart([], ["a"], "language")),
    Exclusions(4, 1, "language", (LevelExclusions("a", 1, 2), LevelExclusions("b", 0, 2)), 0.123),
    (Attempt("r1", 1, 2, "a", "completed", "invalid", True, "x: y"),),
    3,
    skipped=(SkippedTreatment("b", "why"),),
    meters=(Meter("h", "m", "absent", "no device", "plug one in"),),
    conduct=(
        Conduct("plan.blocks", "2"),
        Conduct(baseline="idle", median_s=2.0),
        Conduct(retried=7),
    ),
    machine=(
        MachineFact("h", "cpu", "A  B"),
        MachineFact("h", "cgroup", None, cgroup=Cgroup("v2", ("a", "b"))),
        MachineFact("", None, "1.2", version_of="agent"),
    ),
)


def parts_of(result: Audit) -> list:
    section = topic_page("audit", result).section()
    assert section is not None and section.id == "audit"
    return section.parts


def rows_of(table: Table) -> list[list]:
    return [list(row.values()) for row in table.rows]


def test_the_page_has_the_order_the_exclusions_and_all_tables() -> None:
    figure, excluded, attempts, skipped, meters, conduct, machine = parts_of(FULL)
    assert isinstance(figure, Figure) and isinstance(excluded, Text)
    assert figure.spec["layer"][1]["encoding"]["y"]["title"] == (
        "CPU time per message (µs, log scale)"
    )
    assert (excluded.key, excluded.value) == ("audit.excluded", "1")
    assert "By language: a 1 of 2; b 0 of 2 (Fisher's" in excluded.words
    assert excluded.words.endswith("p = 0.12).")
    assert rows_of(attempts) == [["r1", 1, 2, "a", "completed", "invalid", "yes", "x: y"]]
    assert "other 3 attempts completed" in attempts.note
    assert rows_of(skipped) == [["b", "why"]]
    assert rows_of(meters) == [["h", "m", "absent", "no device", "plug one in"]]
    assert rows_of(conduct) == [
        ["plan.blocks", "2"], ["baseline idle, median", "2.00 s"],
        ["attempts beyond the first", "7"],
    ]  # fmt: skip
    assert rows_of(machine) == [
        ["h", "cpu", "A  B", ""], ["h", "cgroup", "v2 (lost: a; b)", ""],
        ["", "version of agent", "1.2", ""],
    ]  # fmt: skip


def test_parts_of_topics_that_join_follow_the_run_order() -> None:
    section = topic_page("audit", FULL).section([((10,), Text("Joining."))])
    assert section is not None
    assert [type(part) for part in section.parts[:3]] == [Figure, Text, Text]
    assert section.parts[1].words == "Joining."


def test_an_imported_campaign_has_runs_without_a_value_by_reason_and_no_meters() -> None:
    unusable = (Unusable("failed", 2, "r1, r2"), Unusable(None, 1, "r3"))
    excluded, verdicts, _, _ = parts_of(Audit(is_imported=True, unusable=unusable))
    assert excluded.words == "No run was attempted."
    assert [part.id for part in parts_of(Audit(is_imported=True))[1:]] == [
        "verdicts", "conduct", "machine",
    ]  # fmt: skip
    assert rows_of(verdicts) == [["failed", 2, "r1, r2"], ["no reason recorded", 1, "r3"]]


def test_without_exclusions_no_level_is_named() -> None:
    assert SENTENCES.exclusions(Exclusions(1200, 0)) == "Excluded: 0 of 1\u202f200 runs."
    three = tuple(LevelExclusions(name, 1, 2) for name in "abc")
    assert SENTENCES.exclusions(Exclusions(6, 3, "f", three)).endswith("b 1 of 2; c 1 of 2.")
