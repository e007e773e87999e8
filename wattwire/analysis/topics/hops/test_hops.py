"""Test the losses and times of each hop of a pipeline, and their table."""

import polars as pl
import pytest

from wattwire.analysis.topics.hops.numbers import Hop, Hops, hops
from wattwire.report.parts import Column, Fold
from wattwire.report.topic_page import topic_page


class Pipelines:
    """Evidence of two runs of three nodes and two of four nodes."""

    varied = ("nodes",)
    titles: dict[str, dict[str, str]] = {}
    word = staticmethod(lambda name, level: str(level))
    factors = {"nodes": (3, 4)}
    has_messages = True

    def __init__(self, frame):
        self.usable, self.groups = frame, {}


FRAME = pl.DataFrame(
    {
        "run": ["a", "b", "c", "d"],
        "factor.nodes": [3, 3, 4, 4],
        "lost.hop.1": [1, 2, None, 0],
        "lost.hop.2": [0, 0, 3, 1],
        "lost.hop.3": [None, None, 0, 0],
        "latency_p50_us.hop.1": [10.0, 40.0, None, 5.0],
        "latency_p50_us.hop.2": [7.0, 7.0, 9.0, 9.0],
        "latency_p50_us.hop.3": [None, None, 2.0, 8.0],
        "relay_time_p50_us.hop.1": [1.0, 4.0, None, 3.0],
        "relay_time_p50_us.hop.2": [None, None, 6.0, 6.0],
    }
)


def test_each_hop_of_each_treatment_has_its_losses_and_times():
    rows = hops(Pipelines(FRAME)).hops  # type: ignore[arg-type]
    assert [(hop.treatment, hop.hop) for hop in rows] == [
        (("3",), 1), (("3",), 2), (("4",), 1), (("4",), 2), (("4",), 3),
    ]  # fmt: skip
    assert [hop.lost for hop in rows] == [3, 0, None, 4, 0]
    assert [hop.latency_us for hop in rows] == pytest.approx([20.0, 7.0, 5.0, 9.0, 4.0])
    assert [hop.relay_us for hop in rows if hop.relay_us] == pytest.approx([2.0, 3.0, 6.0])
    assert [hop.relay_us is None for hop in rows] == [False, True, False, False, True]
    without = FRAME.select("run", "factor.nodes")
    assert hops(Pipelines(without)) == Hops()  # type: ignore[arg-type]


def test_the_table_has_a_row_per_hop_and_is_absent_without_pipelines():
    assert topic_page("hops", Hops()).parts == ()
    hop = Hop(("3",), 2, 4, 7.0, None, None, 1)
    ((_, fold),) = topic_page("hops", Hops((hop,)), [Column("nodes", "nodes")]).parts
    assert isinstance(fold, Fold) and fold.title
    (table,) = fold.parts
    assert table.rows == [
        {"nodes": "3", "hop": 2, "runs": 4, "latency_us": 7.0, "relay_us": None, "lost": None,
         "undelivered": 1},
    ]  # fmt: skip
