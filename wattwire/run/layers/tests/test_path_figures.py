"""The names of the latencies of topics and paths, which campaigns compare."""

from __future__ import annotations

from typing import Any

from wattwire.model.metrics import find
from wattwire.model.metrics.metric import LOWER
from wattwire.run.layers.figures import PATHS_MAX, figures_of_layers

NODES = ("/talker", "/relay", "/listener")


def hop(
    topic: str, sender: str = "/a", receiver: str = "/b", deliveries: int = 9
) -> dict[str, Any]:
    row = {"topic": topic, "sender": sender, "receiver": receiver, "deliveries": deliveries}
    return row | ({"p50_ns": 2000.0, "p95_ns": 3000.0} if deliveries else {})


def path(*topics: str, nodes: tuple[str, ...] = NODES, start: str = "timer") -> dict[str, Any]:
    return {"topics": [*topics], "nodes": [*nodes], "started_by": start,
            "p50_ns": 5000.0, "p95_ns": 7000.0}  # fmt: skip


def figures_of(*rows: dict[str, Any], printed: tuple[str, ...] = (), reasons: Any = ()) -> Any:
    topics = [row for row in rows if "topic" in row]
    paths = [row for row in rows if "topics" in row]
    document = {"topics": topics, "paths": paths, "reasons": [*reasons]}
    return figures_of_layers(document, printed)


def test_a_topic_and_a_path_have_figures_in_microseconds_of_which_less_is_better() -> None:
    figures, notes = figures_of(
        hop("/chatter"), hop("/relayed"), path("/chatter", "/relayed"), path("/chatter")
    )
    assert figures == {
        "chatter_hop_p50_us": 2.0,
        "relayed_hop_p50_us": 2.0,
        "chatter_to_relayed_path_p50_us": 5.0,
        "chatter_to_relayed_path_p95_us": 7.0,
    }
    assert notes == []
    for name in figures:
        metric = find(f"value.{name}")
        assert metric is not None and (metric.unit, metric.direction) == ("µs", LOWER)


def test_topics_and_paths_of_several_nodes_are_named_after_these() -> None:
    other = (*NODES[:2], "/logger")
    figures, _ = figures_of(
        hop("/x"), hop("/x", receiver="/c"), path("/p", "/q"), path("/p", "/q", nodes=other)
    )
    assert {*figures} == {
        "x_of_a_to_b_hop_p50_us",
        "x_of_a_to_c_hop_p50_us",
        *(f"p_to_q_of_talker_to_relay_to_{node}_path_{quantile}_us"
          for node in ("listener", "logger") for quantile in ("p50", "p95")),
    }  # fmt: skip


def test_paths_that_only_their_start_distinguishes_are_named_after_it() -> None:
    figures, _ = figures_of(path("/p", "/q"), path("/p", "/q", start="service"))
    assert {"p_to_q_by_timer_path_p50_us", "p_to_q_by_service_path_p50_us"} <= {*figures}


def test_nodes_that_the_next_run_could_exchange_give_no_figures_and_are_named() -> None:
    figures, notes = figures_of(
        hop("/x", "/a (process 1)"), path("/p", "/q", nodes=("/a (process 2)", "/b", "/c"))
    )
    assert figures == {}
    assert len(notes) == 2 and all("/a (process" in note for note in notes)


def test_names_that_become_equal_give_no_figures_and_are_named() -> None:
    figures, notes = figures_of(hop("/a/b"), hop("/a_b"))
    assert figures == {} and "2 paths share the name a_b" in notes[0]


def test_the_number_of_paths_is_limited_from_the_longest_on_and_the_others_are_counted() -> None:
    rows = [path(f"/t{at}", "/end") for at in range(PATHS_MAX)]
    figures, (note,) = figures_of(*rows, path("/a", "/b", "/c"))
    assert "a_to_b_to_c_path_p50_us" in figures and len(figures) == 2 * PATHS_MAX
    assert note.startswith("1 shorter path without figures")


def test_the_name_of_a_very_long_path_has_the_number_of_the_topics_in_its_middle() -> None:
    loop = [f"/t{at}" for at in range(60)]
    figures, _ = figures_of(path(*loop))
    assert "t0_to_t1_to_t2_to_t3_to_52_more_to_t56_to_t57_to_t58_to_t59_path_p50_us" in figures


def test_a_figure_that_the_command_printed_is_kept_and_unused_layers_give_none() -> None:
    figures, (note,) = figures_of(hop("/x"), hop("/y", deliveries=0), printed=("x_hop_p50_us",))
    assert figures == {} and "x_hop_p50_us" in note
    figures, (note,) = figures_of(hop("/x"), reasons=[{"code": "unmarked", "detail": "d"}])
    assert figures == {} and "are not used" in note
