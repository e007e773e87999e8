"""Test that the CPU time of the roles adds up to that of a message, for any number of clients."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.costs import by_role
from wattwire.analysis.topics.costs.by_role import estimates, role_costs
from wattwire.analysis.topics.costs.numbers import costs
from wattwire.model.verdict import Outcome
from wattwire.report.tests.synthetic import FAST, MEMORY_KIB, Shape, write_campaign
from wattwire.store import Campaign

SERVICE, TOPIC = ("server", "client"), ("publisher", "subscriber")
CELL = f"loopback/{FAST}"


def rows_of(folder, **shape):
    """Return the evidence of a campaign, and its rows by cell and role (None for all roles)."""
    shape = Shape(blocks=2, **{"intervals_s": (0.5,), **shape})
    evidence = gather(Campaign(write_campaign(folder, shape)))
    return evidence, {(row.cell, row.role): row for row in role_costs(evidence)}


@pytest.mark.parametrize("clients", [(1,), (2,), (8,), (1, 2, 8)])
@pytest.mark.parametrize(("pattern", "roles"), [("service", SERVICE), ("topic", TOPIC)])
def test_the_roles_add_up_to_the_cpu_time_of_a_message(
    monkeypatch, tmp_path, pattern, roles, clients
):
    monkeypatch.setattr(by_role, "APART_MAX", 0)  # rows pool the numbers of clients
    evidence, rows = rows_of(tmp_path / "c", patterns=(pattern,), clients=clients)
    runs = evidence.usable.filter(evidence.usable["factor.language"] == FAST)
    total_us = float(np.mean(runs["cpu_us_per_message"].to_numpy()))
    assert rows[CELL, None].cpu_us == pytest.approx(total_us)
    assert sum(rows[CELL, role].cpu_us for role in roles) == pytest.approx(total_us)
    many = rows[CELL, "client" if pattern == "service" else "subscriber"]
    assert many.processes == (clients[0], clients[-1])


def test_a_campaign_of_few_treatments_has_a_row_for_each_without_saturated_runs(tmp_path):
    shape = Shape(blocks=2, patterns=("service",), clients=(1, 8), intervals_s=(0.5,))
    campaign = write_campaign(tmp_path / "c", shape)
    evidence = gather(Campaign(campaign))
    usable = evidence.usable
    of_cell = pl.col("factor.language") == FAST
    for clients in (1, 8):
        (row,) = [
            row
            for row in role_costs(evidence)
            if (row.cell, row.role) == (CELL, None)
            and row.others == evidence.title("clients", clients)
        ]
        runs = usable.filter(of_cell & (pl.col("factor.clients") == clients))
        assert row.runs == runs.height == 2
        assert row.cpu_us == pytest.approx(runs["cpu_us_per_message"].mean())
    is_saturated = of_cell & (pl.col("factor.clients") == 8)
    outcome = pl.when(is_saturated).then(pl.lit(Outcome.SATURATED.value)).otherwise("outcome")
    evidence.usable = usable.with_columns(outcome=outcome)
    titles = {row.others for row in costs(evidence).roles if row.cell == CELL}
    assert titles == {evidence.title("clients", 1)}


@pytest.mark.parametrize("clients", [1, 2, 8])
def test_a_process_costs_its_cpu_time_per_message_of_its_own(tmp_path, clients):
    # Every node of a simulated run uses the same CPU time.
    _, service = rows_of(tmp_path / "s", patterns=("service",), clients=(clients,))
    _, topic = rows_of(tmp_path / "t", patterns=("topic",), clients=(clients,))
    client, server = service[CELL, "client"], service[CELL, "server"]
    assert client.cpu_us == pytest.approx(clients * server.cpu_us)
    assert client.cpu_us_each == pytest.approx(client.cpu_us), "each client makes own calls"
    assert server.cpu_us_each == pytest.approx(server.cpu_us)
    subscriber, publisher = topic[CELL, "subscriber"], topic[CELL, "publisher"]
    assert subscriber.cpu_us == pytest.approx(clients * publisher.cpu_us)
    assert subscriber.cpu_us_each == pytest.approx(publisher.cpu_us_each)
    assert client.memory_kib == pytest.approx(MEMORY_KIB[FAST])


def test_the_estimated_energy_of_a_message_is_that_of_all_nodes_of_the_role(tmp_path):
    evidence, _ = rows_of(tmp_path / "c", patterns=("service",), clients=(8,))
    rows = {(row.cell, row.role): row for row in estimates(evidence)}
    client, server = (rows[CELL, role].per_message_uj for role in ("client", "server"))
    assert client.low == pytest.approx(8 * server.low)
    assert client.high == pytest.approx(8 * server.high)
