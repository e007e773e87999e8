"""The names of the figures of streams, which campaigns compare."""

from __future__ import annotations

import math
from dataclasses import replace

from wattwire.analysis.streams.figures import figures_of
from wattwire.analysis.streams.numbers import (
    NO_MESSAGE,
    Delays,
    Stamps,
    Stream,
    Watched,
)
from wattwire.analysis.streams.recorded import Graph
from wattwire.model.metrics import find
from wattwire.model.metrics.metric import HIGHER, LOWER
from wattwire.stats.series.streams import SequenceFaults

STREAM = Stream(
    topic="/camera/image-raw", node="/a", type="p/T", gid="00", qos={}, same_host=True, messages=9,
    before=0, rate_hz=30.0, interval_sd_ms=1.0, bytes_mean=8.0, bytes_per_s=240.0,
    latency=Delays(1.0, 2.0, 3.0, 4.0, 9), no_latency="", age=Delays(5.0, 6.0, 7.0, 8.0, 9),
    no_age="", stamps=Stamps(9, 0, 0, 0), faults=SequenceFaults(2, 0, 0), silent_s=None,
    gone=False,
)  # fmt: skip


def figures(*streams: Stream) -> dict[str, float]:
    return figures_of(Watched(1.0, list(streams), Graph(), None))[0]


def notes(*streams: Stream) -> str:
    return "\n".join(figures_of(Watched(1.0, list(streams), Graph(), None))[1])


def test_a_figure_is_named_after_its_topic_and_its_end_is_the_unit() -> None:
    assert figures(STREAM) == {
        "camera_image_raw_rate_hz": 30.0,
        "camera_image_raw_latency_p50_us": 1.0,
        "camera_image_raw_latency_p95_us": 2.0,
        "camera_image_raw_latency_p99_us": 3.0,
        "camera_image_raw_age_p50_us": 5.0,
        "camera_image_raw_lost": 2.0,
    }
    directions = {}
    for name in figures(STREAM):
        metric = find(f"value.{name}")
        assert metric is not None
        directions[name.removeprefix("camera_image_raw_")] = (metric.unit, metric.direction)
    assert directions["rate_hz"] == ("Hz", HIGHER)
    assert directions["latency_p50_us"] == directions["age_p50_us"] == ("µs", LOWER)
    assert directions["lost"] == ("", LOWER)


def losses(*streams: Stream) -> set[str]:
    return {name for name in figures(*streams) if name.endswith("lost")}


def test_the_figures_of_several_nodes_of_a_topic_contain_the_node() -> None:
    """A node that sorts before the talker must not take the name of its figures."""
    other = replace(STREAM, node="/_tool", faults=SequenceFaults(5, 0, 0))
    assert losses(STREAM, other) == {
        "camera_image_raw_of_a_lost", "camera_image_raw_of_tool_lost",
    }  # fmt: skip
    assert "several publishing nodes" in notes(STREAM, other)
    idle = replace(other, messages=0)
    assert losses(STREAM, idle) == {"camera_image_raw_lost"} and not notes(STREAM, idle)


def test_publishers_that_only_their_gid_tells_apart_have_no_figures_and_are_named() -> None:
    twin = replace(STREAM, gid="01")
    assert losses(STREAM, twin, replace(STREAM, node="/b")) == {"camera_image_raw_of_b_lost"}
    assert "/camera/image-raw: 2 publishers share the name camera_image_raw_of_a" in notes(
        STREAM, twin, replace(STREAM, node="/b")
    )
    same_letters = replace(STREAM, topic="/camera_image/raw")
    assert losses(STREAM, same_letters) == set()
    assert "/camera/image-raw and /camera_image/raw" in notes(STREAM, same_letters)


def test_a_percentile_of_lost_messages_is_no_figure_and_is_named() -> None:
    lossy = replace(STREAM, latency=Delays(1.0, 2.0, math.inf, math.inf, 9))
    assert "camera_image_raw_latency_p95_us" in figures(lossy)
    assert "camera_image_raw_latency_p99_us" not in figures(lossy)
    assert "camera_image_raw_latency_p99_us: not stored" in notes(lossy)


def test_what_was_not_measured_has_no_figure() -> None:
    silent = replace(
        STREAM, topic="/1", rate_hz=None, latency=None, no_latency=NO_MESSAGE, age=None,
        faults=None,
    )  # fmt: skip
    assert figures(silent) == {}
    assert set(figures(replace(silent, rate_hz=1.0))) == {"_1_rate_hz"}


def test_a_figure_that_the_command_printed_is_kept() -> None:
    printed = frozenset({"camera_image_raw_rate_hz"})
    known, texts = figures_of(Watched(1.0, [STREAM], Graph(), None, printed=printed))
    assert {*figures(STREAM)} - {*known} == printed
    assert "camera_image_raw_rate_hz: the value that the command printed is kept" in texts[0]
