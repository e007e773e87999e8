"""Tests of service processes. The metrics of every start attempt belong to the service."""

import polars as pl

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.costs.by_role import by_cell_and_role
from wattwire.model.derived import members
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.run.results.resources import column
from wattwire.store import Campaign


def test_a_broker_counts_as_no_node_and_has_its_own_costs(tmp_path):
    shape = Shape(blocks=3, patterns=("topic",), intervals_s=(0.5,), clients=(1,))
    write_campaign(tmp_path / "c", shape)
    plain = gather(Campaign(tmp_path / "c")).usable["memory_kib_per_node"].to_list()
    for path in (tmp_path / "c").glob("runs/*/summary.json"):
        figures = {"memory_kib.broker": 9000.0, "cpu_share.broker": 0.5}
        row_of(path).with_columns(**{k: pl.lit(v) for k, v in figures.items()}).pipe(put_row, path)
    evidence = gather(Campaign(tmp_path / "c"))
    assert evidence.usable["memory_kib_per_node"].to_list() == plain
    assert {name.split(".")[1] for name in members(evidence.usable, "memory_kib")} == {
        "publisher", "subscriber",
    }  # fmt: skip
    brokers = {
        g: f for g, f in by_cell_and_role(evidence, "memory_kib").items() if "broker" in g.role
    }
    assert {group.role for group in brokers} == {"broker"}
    assert sum(frame.height for frame in brokers.values()) == evidence.usable.height


def test_the_column_of_a_service_is_its_own_whichever_attempt_to_start_it_served():
    assert (
        column("memory_kib", "broker.try1") == column("memory_kib", "broker") == "memory_kib.broker"
    )
    assert column("memory_kib", "publisher-0") == "memory_kib.publisher.0"
