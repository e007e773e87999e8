"""Tests of system calls per message, with planted counts and unchanged timed values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wattwire.analysis.charts import Chart
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.syscalls.numbers import (
    COLOURS,
    OTHER,
    Call,
    Comparison,
    Difference,
    Side,
    Syscalls,
    TreatmentCalls,
    Tree,
    syscalls,
)
from wattwire.report.figures.style import PALETTE
from wattwire.report.page import build_report
from wattwire.report.parts import Figure, Fold, Table, Text
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, add_attempt, write_campaign
from wattwire.report.tests.test_page import Words, table
from wattwire.report.topic_page import topic_page
from wattwire.store import Campaign

SHAPE = {"blocks": 3, "patterns": ("service",), "intervals_s": (0.05,), "clients": (1,)}
CALLS = {FAST: {"write": 1.0, "epoll_wait": 1.5}, SLOW: {"write": 1.0, "futex": 6.0, "poll": 2.0}}
PER_CALL_NS = 2_000.0


def traced_campaign(folder: Path, way: str = "ebpf", because: str = "") -> Path:
    """Return a simulated campaign with a run per treatment that counts system calls."""
    write_campaign(folder, Shape(**SHAPE))
    plan = json.loads((folder / "plan.json").read_text())
    for at, entry in enumerate([e for e in plan if e["block"] == 1], start=1):
        run = f"b04-p{at:03d}"
        plan.append({**entry, "run": run, "block": 4, "position": at, "control": "syscalls"})
        source = f"{entry['run']}-1"
        sent = json.loads((folder / "runs" / source / "summary.json").read_text())["sent"]
        row = {
            "block": 4, "position": at, "control": "syscalls", "cpu_us_per_message": 1e6,
            "kernel_us_per_message.client.0": 12.5,
        }  # fmt: skip
        calls = CALLS[entry["treatment"]["language"]]
        counted = {name: [n * sent, n * sent * PER_CALL_NS, 0.0] for name, n in calls.items()}
        told = {"calls": counted, "uncounted": 0, "kernel_ns": 3e9, "user_ns": 1e9}
        syscalls = {"way": way, "because": because, "processes": {"client-0": told}}
        add_attempt(folder, source, run, row, {"syscalls": syscalls})
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def page_of(folder: Path) -> tuple[Words, Path]:
    page = build_report(Campaign(folder))
    return Words(page.read_text("utf-8")), page


def rows_of(page: Path, language: str, name: str = "syscalls") -> list[dict[str, Any]]:
    return [row for row in table(page, name) if row["language"] == language]


def test_calls_per_message_and_the_kernels_share_stand_beside_each_treatment(tmp_path):
    words, page = page_of(traced_campaign(tmp_path / "campaign"))
    assert len(table(page, "syscalls")) == 2
    for row in rows_of(page, SLOW):
        assert float(row["client_calls"]) == 9.0
        assert float(row["client_share"]) == 75.0
        assert float(row["client_kernel"]) == 12.5
    each = {row["call"]: row for row in rows_of(page, SLOW, "syscalls_each")}
    assert float(each["futex"]["calls"]) == 6.0
    assert float(each["futex"]["us_each"]) == PER_CALL_NS / 1000
    assert "No other number on this page comes from such runs" in words.text


def test_the_dearest_and_the_cheapest_are_set_side_by_side_with_the_calls_that_differ(tmp_path):
    words, page = page_of(traced_campaign(tmp_path / "campaign"))
    row = table(page, "syscalls_sides")[0]
    assert "swift" in row["best"].lower() and "python" in row["worst"].lower()
    assert float(row["worst_cpu"]) < 1e6, "efficiency is that of the timed runs"
    assert row["calls"].startswith("futex 0 against 6")
    assert "made 9.00 system calls per message, compared with 2.50" in words.text


def test_no_timed_number_and_no_count_of_runs_knows_of_them(tmp_path):
    plain, page = page_of(write_campaign(tmp_path / "plain", Shape(**SHAPE)))
    words, other = page_of(traced_campaign(tmp_path / "traced"))
    assert words.heading == plain.heading
    for name in ("answers", "verdicts"):
        assert table(other, name) == table(page, name)
    assert "syscalls" not in {p.stem for p in (page.parent / "tables").iterdir()}


def test_where_strace_counted_the_page_says_so_and_why(tmp_path):
    folder = traced_campaign(tmp_path / "campaign", "strace", "bpf is refused here")
    words, page = page_of(folder)
    assert (
        "The calls were counted with strace instead of in the kernel: bpf is refused here."
        in words.text
    )
    assert "client_waiting" not in table(page, "syscalls")[0]


def test_the_chart_has_the_calls_of_each_treatment_and_a_colour_for_each_frequent_call(tmp_path):
    result = syscalls(gather(Campaign(traced_campaign(tmp_path / "campaign"))))
    chart = result.chart
    assert chart.colours == ["futex", "epoll_wait", "write", "poll", OTHER]
    assert len(PALETTE) > COLOURS
    drawn = {(point["treatment"], point["colour"]): point["value"] for point in chart.points}
    assert drawn["Python", "futex"] == 6.0 and ("Swift", "futex") not in drawn
    assert chart.rows == ["Swift", "Python"]


def test_without_a_factor_all_treatments_are_compared():
    best, worst = Side("a", 2.0, 1.0), Side("b", 5.0, 7.5)
    compared = Comparison("", "", best, worst, (Difference("read", 0.25, 4.0),))
    of_a = TreatmentCalls((), (Tree(1.0, None, 25.0, 3.0, None),))
    call = Call((), "a role", "read", 0.25, 2.0)
    result = Syscalls(
        2, False, (), 3, ("a_role",), (of_a,), (call,), "", (compared,), Chart((), ("read", OTHER))
    )
    section = topic_page("syscalls", result).section()
    assert section is not None
    what, uncounted, calls, figure, sides, difference, fold = section.parts
    assert isinstance(uncounted, Text) and (uncounted.tone, uncounted.value) == ("warning", "3")
    assert isinstance(calls, Table) and isinstance(figure, Figure) and isinstance(fold, Fold)
    assert [(column.key, column.group) for column in calls.columns[:2]] == [
        ("a_role_calls", "a role"), ("a_role_kernel", "a role"),
    ]  # fmt: skip
    assert [*calls.rows[0].values()] == [1.0, None, 25.0, 3.0, None]
    assert sides.rows == [
        {"level": "", "best": "a", "best_cpu": 2.0, "best_calls": 1.0, "worst": "b",
         "worst_cpu": 5.0, "worst_calls": 7.5, "calls": "read 0.25 against 4.0"}
    ]  # fmt: skip
    assert (difference.key, difference.value) == ("syscalls.ratio", "2.5")
    assert "read (4.0 against 0.25)." in difference.words
    assert [row["us_each"] for row in fold.parts[0].rows] == [8.0]
    assert "eBPF" in what.words


def test_without_a_valid_counting_run_there_is_no_table():
    section = topic_page("syscalls", Syscalls(2)).section()
    assert section is not None
    assert [part.key for part in section.parts] == ["syscalls.runs_planned", "syscalls.treatments"]
    assert topic_page("syscalls", Syscalls()).section() is None
