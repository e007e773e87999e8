"""Test the table of hops of a pipeline."""

import polars as pl
import pytest

from wattwire.analysis.hops import hops_of
from wattwire.report.tables import hops


class Pipelines:
    """Evidence of two runs of three nodes and two of four nodes."""

    varied = ("nodes",)
    titles: dict[str, dict[str, str]] = {}
    word = staticmethod(lambda name, level: str(level))
    factors = {"nodes": (3, 4)}

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
    rows = list(hops_of(Pipelines(FRAME)))  # type: ignore[arg-type]
    assert [(hop.treatment, hop.hop) for hop in rows] == [
        (("3",), 1), (("3",), 2), (("4",), 1), (("4",), 2), (("4",), 3),
    ]  # fmt: skip
    assert [hop.lost for hop in rows] == [3, 0, None, 4, 0]
    assert [hop.latency_us for hop in rows] == pytest.approx([20.0, 7.0, 5.0, 9.0, 4.0])
    assert [hop.relay_us for hop in rows][:1] == pytest.approx([2.0])


def test_the_table_leaves_unknown_values_empty_and_is_absent_without_pipelines():
    fold = hops.fold(Pipelines(FRAME))  # type: ignore[arg-type]
    assert fold is not None
    (table,) = fold.parts
    assert [row["relay_us"] for row in table.rows][1] is None
    assert [row["lost"] for row in table.rows] == [3, 0, None, 4, 0]
    without = FRAME.select("run", "factor.nodes")
    assert hops.fold(Pipelines(without)) is None  # type: ignore[arg-type]
