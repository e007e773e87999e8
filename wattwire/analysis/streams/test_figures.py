"""The names of the figures of streams, which campaigns compare."""

from __future__ import annotations

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
    return figures_of(Watched(1.0, list(streams), Graph(), None))


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


def test_publishers_of_one_topic_have_different_names() -> None:
    twin = replace(STREAM, gid="01")
    names = {name for name in figures(STREAM, twin, replace(STREAM, node="/b")) if "lost" in name}
    assert names == {
        "camera_image_raw_of_a_lost", "camera_image_raw_of_a_2_lost", "camera_image_raw_of_b_lost",
    }  # fmt: skip


def test_what_was_not_measured_has_no_figure() -> None:
    silent = replace(
        STREAM, topic="/1", rate_hz=None, latency=None, no_latency=NO_MESSAGE, age=None,
        faults=None,
    )  # fmt: skip
    assert figures(silent) == {}
    assert set(figures(replace(silent, rate_hz=1.0))) == {"_1_rate_hz"}
