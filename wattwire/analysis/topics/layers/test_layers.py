"""The rows of topics and paths over the repeats, and what the page prints."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from wattwire.analysis.topics.layers.numbers import Absence, Hop, Layers, layers
from wattwire.analysis.topics.layers.profiled import (
    Gap,
    Profiled,
    RecordingCost,
    TreatmentLayer,
    invalid_texts,
    profiled,
)
from wattwire.cli.exec import layers_table
from wattwire.model.layers import LAYERS, UNMARKED, WRAPPED
from wattwire.report.parts import Table
from wattwire.report.topic_page import topic_page


class Study:
    request = object()


class Campaign:
    """The part of `Evidence` that the topic reads."""

    imported = False
    study = Study()

    def __init__(self, *documents: dict[str, Any]) -> None:
        names = [f"r{at}" for at in range(len(documents))]
        self.usable = pl.DataFrame({"run": names})
        self.excluded = pl.DataFrame()
        self.runs = dict(zip(names, ({"layers": d} if d else {} for d in documents), strict=True))


def document(p50_ns: float) -> dict[str, Any]:
    times = {layer.name: 1000.0 * (at + 1) for at, layer in enumerate(LAYERS)}
    row = {
        "topic": "/a", "sender": "/s", "receiver": "/r", "published": 10, "rate_hz": 50.0,
        "deliveries": 9, "not_taken": 1, "p50_ns": p50_ns, "p95_ns": 5000.0, "mean_ns": 2000.0,
        "layers_ns": times | {"client_publish": None},
    }  # fmt: skip
    path = {
        "started_by": "timer", "nodes": ["/s", "/r", "/h"], "topics": ["/a", "/b"],
        "messages": 9, "p50_ns": 9000.0, "p95_ns": 9500.0, "mean_ns": 9000.0,
        "hops_ns": [2000.0, 3000.0], "work_ns": [4000.0],
    }  # fmt: skip
    alone = {"sender": "/s", "published": 4, "rate_hz": 5.0, "deliveries": 0}
    silent = [
        alone | {"topic": "/quiet", "receiver": None},
        alone | {"topic": "/a", "sender": "/t", "receiver": None},
        alone | {"topic": "/a", "receiver": "/deaf", "not_taken": 4},
    ]
    return {
        "processes": 3, "events": 99, "lost_events": 0, "deliveries": 9, "unmarked": 0,
        "outside": 1, "early": 2, "unstamped": 0, "absent": {"dds_take": "libx has no f (t.toml)"},
        "topics": [row, *silent], "paths": [path], "paths_left_out": 7,
        "reasons": [],
    }  # fmt: skip


def test_rows_are_means_over_the_repeats_and_the_parts_of_a_path_are_in_order() -> None:
    result = layers(Campaign(document(1000.0), document(3000.0)))  # type: ignore[arg-type]
    (hop,) = result.hops
    assert hop.p50_us == pytest.approx(2.0)
    assert hop.times_us[:3] == (None, 2.0, 3.0)
    assert result.shown == tuple(range(1, len(LAYERS)))
    (path,) = result.paths
    assert [(part.name, part.mean_us) for part in path.parts] == [("/a", 2), ("/r", 4), ("/b", 3)]
    assert (result.deliveries, result.outside, result.unheard) == (18, 2, ("/quiet",))
    assert (result.runs, result.processes, result.early) == (2, 3, 4)
    assert (result.not_taken, result.untaken) == (10, ("/a (/s → /deaf)",))
    assert (hop.published, hop.deliveries, hop.not_taken) == (10, 9, 1)
    assert result.absent == (Absence("dds_take", "libx has no f (t.toml)"),)
    assert len(result.chart.points) == len(LAYERS) - 1


def test_a_command_without_layers_has_none() -> None:
    assert layers(Campaign({})) == Layers()  # type: ignore[arg-type]


def test_means_of_layers_add_up_over_repeats_of_which_one_lacks_a_layer() -> None:
    first, second = document(1000.0), document(1000.0)
    second["topics"][0]["layers_ns"]["dds_take"] = None
    (hop,) = layers(Campaign(first, second)).hops  # type: ignore[arg-type]
    sums_us = [sum(d["topics"][0]["layers_ns"][layer.name] or 0 for layer in LAYERS) / 1000
               for d in (first, second)]  # fmt: skip
    assert sum(time_us or 0 for time_us in hop.times_us) == pytest.approx(sum(sums_us) / 2)


def test_messages_that_were_not_taken_are_stated_on_page_and_terminal() -> None:
    result = layers(Campaign(document(1000.0)))  # type: ignore[arg-type]
    page = topic_page("layers", result)
    stated = "5 messages were not taken by a subscription"
    lines = "\n".join(layers_table.lines(result, 200))
    assert any(stated in text for text in page.texts) and stated in lines
    assert "Without any message taken: /a (/s → /deaf)" in lines
    (table,) = (part for _, part in page.parts if getattr(part, "id", "") == "layers-topics")
    cells = [table.text(column, table.rows[0]) for column in table.columns]
    titles = [column.title for column in table.columns]
    assert [cells[titles.index(t)] for t in ("published", "taken", "not taken")] == ["10", "9", "1"]
    row = next(line.split() for line in lines.splitlines() if "/s → /r" in line)
    assert row[5:7] == ["9", "1"]
    assert "not taken" in str(table) and "p50 of those taken" in str(table)
    assert "include the recording of the layers" in lines


def test_the_terminal_says_how_many_topics_and_paths_it_leaves_out() -> None:
    result = layers(Campaign(document(1000.0)))  # type: ignore[arg-type]
    many = replace(result, hops=result.hops * 9, paths=result.paths * 6)
    lines = "\n".join(layers_table.lines(many, 200))
    assert "… and 3 topics more" in lines and "… and 1 path more" in lines
    assert "more, which" not in "\n".join(layers_table.lines(result, 200))


def test_the_page_says_which_rows_the_chart_and_the_paths_lack() -> None:
    paths = "7 shorter paths of a run are not listed"
    row = document(1000.0)["topics"][0]
    many = document(1000.0) | {"topics": [{**row, "topic": f"/t{at}"} for at in range(13)]}
    result = layers(Campaign(many))  # type: ignore[arg-type]
    assert len(result.chart.rows) == 12
    parts = " ".join(str(part) for _, part in topic_page("layers", result).parts)
    assert "The chart has the first 12 of 13 topics" in parts and paths in parts
    assert paths in "\n".join(layers_table.lines(result, 200))
    few = layers(Campaign(document(1000.0)))  # type: ignore[arg-type]
    assert "The chart has" not in str(topic_page("layers", few).parts)


@pytest.mark.parametrize("point", WRAPPED)
def test_an_absent_point_says_what_happens_to_its_own_time(point: str) -> None:
    absent = Layers(is_recorded=True, absent=(Absence(point, "libx has no f (t.toml)"),))
    (sentence,) = (s for s in layers_table.sentences(absent) if "The point" in s)
    assert "what it marks is not known" not in sentence and "libx has no f" in sentence


def test_the_layers_of_an_invalid_run_are_not_used_and_its_reason_is_printed() -> None:
    campaign = Campaign(document(1000.0), document(3000.0))
    reason = {"code": UNMARKED, "detail": "5 of 9 deliveries lack a mark"}
    campaign.runs["r1"]["layers"]["reasons"] = [reason]
    result = layers(campaign)  # type: ignore[arg-type]
    assert result.invalid == ("r1: 5 of 9 deliveries lack a mark",)
    assert result.hops[0].p50_us == pytest.approx(1.0)
    assert any("5 of 9" in text for text in topic_page("layers", result).texts)


def test_the_page_has_a_row_per_topic_and_names_an_absent_point() -> None:
    result = layers(Campaign(document(1000.0)))  # type: ignore[arg-type]
    page = topic_page("layers", result)
    assert page.title == "Layers of messages"
    tables = {part.id: part for _, part in page.parts if isinstance(part, Table)}
    assert set(tables) == {"layers-topics", "layers-paths"}
    assert any("libx has no f" in text for text in page.texts)


def test_no_message_is_stated_with_its_cause() -> None:
    result = Layers(is_recorded=True, processes=0)
    texts = " ".join(str(part) for part in topic_page("layers", result).parts)
    assert "No process of the command called" in texts
    unstamped = Layers(is_recorded=True, processes=2, unstamped=5)
    texts = " ".join(str(part) for part in topic_page("layers", unstamped).parts)
    assert "Jazzy" in texts


def test_hops_name_both_nodes() -> None:
    assert Hop("", "/a", "/s", "/r", 1.0, 1, 1, 0, 1.0, 1.0, 1.0).way == "/s → /r"
    assert Hop("", "/a", "/s", "/r", 1.0, 150, 146, 3, 1.0, 1.0, 1.0).published_before == 1


def test_the_page_of_a_study_has_the_layers_their_cost_and_the_treatments_without() -> None:
    layer = TreatmentLayer("one cell", LAYERS[0].title, LAYERS[0].category, 12.5, 100.0, 1)
    study = Profiled(
        3, (layer,), (RecordingCost("one cell", 1.07, 1),),
        (Gap("no table of functions", ("b, 1 Hz", "b, 2 Hz"), "b"),),
        ("b01-p001: 5 events had no room",),
    )  # fmt: skip
    page = topic_page("layers", Layers(study=study))
    assert page.title == "Layers of messages"
    tables = {part.id: str(part) for _, part in page.parts if isinstance(part, Table)}
    assert set(tables) == {"layers-medians", "layers-cost"}
    assert "12.5" in tables["layers-medians"]
    assert LAYERS[0].category in tables["layers-medians"]
    assert "1.07" in tables["layers-cost"]
    assert any("2 treatments (b): no table of functions" in text for text in page.texts)
    assert any("had no room" in text for text in page.texts)


def test_runs_that_are_invalid_for_one_reason_have_one_text() -> None:
    details = ["no message", "no message", "2 events had no room"]
    runs = {f"r{at}-1": {"reasons": [{"detail": text}]} for at, text in enumerate(details)}
    evidence: Any = SimpleNamespace(reader=SimpleNamespace(run=runs.__getitem__))
    frame = pl.DataFrame({"run": ["r0", "r1", "r2"], "attempt": 1})
    texts = [*invalid_texts(evidence, frame)]
    assert texts == ["r0 and r1: no message", "r2: 2 events had no room"]


def test_a_gap_names_the_levels_that_all_its_treatments_share() -> None:
    levels = [{"cell": "b", "rate_hz": 1}, {"cell": "b", "rate_hz": 2}, {"cell": "c", "rate_hz": 1}]
    plan: list[dict[str, Any]] = [{"treatment": level, "layer_gap": "no rcl"} for level in levels]
    plan[2]["layer_gap"] = None

    def title(treatment: dict[str, Any]) -> str:
        return ", ".join(str(level) for level in treatment.values())

    evidence: Any = SimpleNamespace(imported=False, plan=plan, treatment_title=title)
    assert profiled(evidence).gaps == (Gap("no rcl", ("b, 1", "b, 2"), "b"),)
