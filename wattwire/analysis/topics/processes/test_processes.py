"""Test the costs of a command: its repeats, its failures, and the rows of its processes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from wattwire.analysis.topics.processes.ends import Cause, Failures, early_ends, failures
from wattwire.analysis.topics.processes.executed import Executed, Row, _fold, executed
from wattwire.analysis.topics.processes.numbers import Processes, costs, repeats_drawn, with_charts
from wattwire.model.deployment import Request, Target
from wattwire.report.parts import Figure, Table
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval

WORDS = Sentences("processes")


def executed_of(rows: list[dict[str, Any]], request: Request | None = None) -> Executed:
    return executed(request or Request(command=("x",)), pl.DataFrame(rows), pl.DataFrame())


def test_the_first_sentence_names_every_system_and_states_a_mean_of_two_repeats() -> None:
    attached = (Target("pid:1234", pid=1234),)
    request = Request(command=("python3", "-c", "x" * 200), attached=attached)
    rows = [{"verdict": "valid", "block": b, "window_s": 2.0, "cpu_s": 0.1 * b} for b in (1, 3)]
    result = costs(executed_of(rows, request))
    assert result.subject.endswith("… and pid:1234")
    assert (result.windows, result.window_s) == (2, 2.0)
    assert "used 0.200 s of CPU time in 2 × 2.00 s." in WORDS.costs(result)


def test_the_costs_of_watched_systems_are_not_named_after_the_probe() -> None:
    attached = (Target("pid:1234", pid=1234),)
    rows = [{"verdict": "valid", "block": 1, "window_s": 2.0, "cpu_s": 0.1}]
    watched = Request(attached=attached, probe="mw/probe")
    result = costs(executed_of(rows, watched))
    assert (result.subject, result.probe) == ("pid:1234, watched by mw/probe", "mw/probe")
    page = topic_page("processes", Processes((result,))).section()
    assert page is not None
    whole = str(next(part for part in page.parts if isinstance(part, Table)))
    assert "Values of the measured system" in whole
    assert "of all processes together without mw/probe, which watched them." in whole
    assert costs(executed_of(rows, Request(probe="mw/probe"))).subject == "mw/probe"


def test_a_cost_has_an_interval_from_three_repeats_on() -> None:
    rows = [{"verdict": "valid", "block": b, "window_s": 2.0, "cpu_s": 1.0 + b} for b in range(3)]
    assert costs(executed_of(rows[:2])).cpu_s == 1.5
    interval = costs(executed_of(rows)).cpu_s
    assert isinstance(interval, Interval) and (interval.estimate, interval.count) == (2.0, 3)
    assert costs(executed_of([])).window_s is None


def test_failures_come_first_and_two_repeats_have_their_mean() -> None:
    rows = [
        {"verdict": verdict, "block": block, "window_s": 1.0, "cpu_s": cpu_s,
         "ended_by": "itself", "exit_code": code}
        for verdict, block, cpu_s, code in (
            ("valid", 1, 1.0, 0), ("valid", 2, 3.0, 7), ("failed", 3, 0.0, 0)
        )
    ]  # fmt: skip
    result = executed_of(rows)
    causes = (Cause("unmeasured", None, (3,), False), Cause("exit code", 7, (2,), False))
    assert failures(result) == Failures("", 2, 3, causes)
    assert costs(result).cpu_s == 2.0
    assert WORDS.failed(failures(result)).startswith("The command failed in 2 of 3 repeats (not ")
    assert failures(executed_of(rows[:1])) is None
    of_all = failures(executed_of(rows[1:2]))
    assert of_all is not None and [cause.is_of_all for cause in of_all.causes] == [True]


def test_a_target_that_ended_within_the_window_is_named_with_its_earliest_end() -> None:
    request = Request(attached=(Target("pid:1"), Target("pid:2")), for_s=9.0)
    rows = [{"verdict": "valid", "block": b, "ended_s.attached1": 3.0 + b} for b in (1, 2)]
    (early,) = early_ends(executed_of(rows, request))
    assert (early.target, early.ended_s, early.for_s) == ("pid:2", 4.0, 9.0)
    assert "(--for 9.00 s), so" in WORDS.early(early)


def test_a_row_of_several_processes_has_sums_of_costs_and_the_memory_of_one() -> None:
    """Memory is not summed over processes, which may not have run at the same time.

    The sum of their means could exceed the peak of any process.
    """
    rows = pl.DataFrame(
        {"cpu_s": [1.0, 2.0, 3.0], "memory_mean_kib": [10.0, 20.0, 30.0],
         "memory_peak_kib": [11.0, 25.0, 31.0], "threads_max": [1.0, 4.0, 2.0]}
    )  # fmt: skip
    assert [_fold(rows, name) for name in rows.columns] == [6.0, 20.0, 31.0, 4.0]


PRINTED = [
    {"verdict": "valid", "run": f"r{block}", "block": block, "window_s": 1.0, "cpu_s": cpu_s,
     "value.p50_ms": 4.0, "memory_peak_kib": 9.0, "ended_by": "itself"}
    for block, cpu_s in ((1, 1.0), (2, 3.0))
]  # fmt: skip


def test_the_page_draws_the_repeats_of_printed_figures_and_of_times() -> None:
    request = Request(command=("x",), values_from=("p50_ms",))

    def drawn(repeats: int) -> list[str]:
        return [item.title for item in repeats_drawn([executed_of(PRINTED[:repeats], request)])]

    assert drawn(2) == ["wall time", "CPU time", "p50_ms"]
    assert drawn(1) == []


def test_the_page_marks_lower_bounds_and_omits_columns_without_values() -> None:
    request = Request(command=("x",), values_from=("p50_ms",))
    table = executed_of(PRINTED, request)
    row = Row("sh", 2.0, {"cpu_s": [1.0], "cpu_is_bound": [1.0], "cpu_user_s": [0.5]})
    table = Executed(request, "", table.repeats, table.columns, (), (row,))
    result = Processes((costs(table),), tuple(repeats_drawn([table])))
    section = topic_page("processes", result).section()
    assert section is not None
    whole, *figures, processes = section.parts
    assert [figure.id for figure in figures if isinstance(figure, Figure)] == [
        "repeats-window-s", "repeats-cpu-s", "repeats-value-p50-ms",
    ]  # fmt: skip
    assert isinstance(whole, Table) and isinstance(processes, Table)
    by_key = {line["figure"]: line for line in whole.rows}
    assert (by_key["CPU time"]["mean"], by_key["CPU time"]["highest"]) == (2.0, 3.0)
    assert by_key["p50_ms"]["repeats"] == 2
    assert [column.key for column in processes.columns] == [
        "process", "count", "cpu_s", "cpu_user_s",
    ]  # fmt: skip
    assert processes.rows[0]["cpu_s"] == "≥ 1.00" and processes.rows[0]["cpu_user_s"] == 0.5
    assert topic_page("processes", Processes()).section() is None


def test_with_variants_the_title_has_only_their_failures() -> None:
    sound, broken = ({**PRINTED[0], "exit_code": code} for code in (0, 3))
    one, other = costs(executed_of([sound])), costs(executed_of([broken]))
    assert len(topic_page("processes", Processes((one,))).sentences) == 1
    both = topic_page("processes", Processes((one, other))).sentences
    assert [sentence.text for sentence in both] == [WORDS.failed(other.failures)]


def test_a_printed_figure_whose_name_ends_like_one_of_a_probe_is_printed() -> None:
    names = ("loop_latency_p50_us", "scan_rate_hz", "loss_rate_hz", "scan_latency_p50_us")
    expressions = (names[0], r"scan_rate_hz=at (\d+)", r"loss (?P<loss_rate_hz>\d+)")
    request = Request(command=("x",), probe="mw/probe", values_from=expressions)
    row = {**PRINTED[0], **{f"value.{name}": 5.0 for name in names}}
    by_name = {f.title: f.is_of_probe for f in costs(executed_of([row], request)).figures}
    assert [by_name[name] for name in names] == [False, False, False, True]
    assert names[0] in {figure.title for figure in costs(executed_of([row], request)).printed}


def test_the_costs_of_the_whole_stand_before_the_figures_of_a_probe() -> None:
    request = Request(command=("x",), probe="mw/probe", values_from=("p50_ms",))
    row = {**PRINTED[0], "value.scan_rate_hz": 5.0}
    titles = [figure.title for figure in costs(executed_of([row], request)).figures]
    assert titles == ["p50_ms", "wall time", "CPU time", "peak memory", "scan_rate_hz"]


def test_the_figures_of_layers_are_in_the_table_of_topics_and_paths() -> None:
    names = ("a_to_b_path_p50_us", "a_hop_p50_us", "score")
    row = {**PRINTED[0], **{f"value.{name}": 5.0 for name in names}}
    for layers in (True, False):
        figures = costs(executed_of([row], Request(command=("x",), layers=layers))).figures
        of_probe = {figure.title: figure.is_of_probe for figure in figures}
        assert [of_probe[name] for name in names] == [layers, layers, False]


def test_the_times_are_drawn_before_the_cut_and_the_number_left_out_is_stated() -> None:
    topics = [f"value.t{at}_latency_p50_us" for at in range(15)]
    rows = [{**row, **dict.fromkeys(topics, 5.0)} for row in PRINTED]
    request = Request(command=("x",), probe="mw/probe")
    result = with_charts([executed_of(rows, request)])
    assert [chart.title for chart in result.charts[:2]] == ["wall time", "CPU time"]
    assert (len(result.charts), result.charts_left_out) == (12, 6)
    result = replace(result, tables=(costs(executed_of(rows, request)),))
    assert "6 further figures have no chart" in " ".join(topic_page("processes", result).texts)
