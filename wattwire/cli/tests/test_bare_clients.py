"""A bare client is found in its node's folder and measured in pairs with the node."""

from __future__ import annotations

import os
from pathlib import Path

from wattwire.cli.bare_clients import bare_argv, measured_cost


def test_a_bare_client_is_the_file_beside_the_node(tmp_path: Path) -> None:
    node = tmp_path / "node.py"
    node.touch()
    argv = ["/usr/bin/python3", str(node)]
    assert bare_argv(argv) is None
    (tmp_path / "bare.py").touch()
    assert bare_argv(argv) == ["/usr/bin/python3", str(tmp_path / "bare.py")]


def test_the_cost_is_the_mean_difference_of_interleaved_pairs() -> None:
    order: list[str] = []
    allowed = os.sched_getaffinity(0)

    def ours() -> float:
        order.append("ours")
        assert len(os.sched_getaffinity(0)) == 1
        return 12_000.0 + len(order)

    def bare() -> float:
        order.append("bare")
        return 10_000.0 + len(order)

    cost = measured_cost(ours, bare, 4)
    assert order == ["ours", "bare", "bare", "ours"] * 2
    assert abs(cost.added_us - 2.0) < 0.001
    assert cost.added_us_low < cost.added_us < cost.added_us_high
    assert os.sched_getaffinity(0) == allowed
