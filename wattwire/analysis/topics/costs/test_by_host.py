"""Test the costs of each host."""

import polars as pl
import pytest

from wattwire.analysis.topics.costs.by_host import ByHost, HostCosts, by_host

ON_TWO_HOSTS = {
    "hosts": {"robot": {}, "edge": {}},
    "nodes": [
        {"process": "client-0", "role": "client"},
        {"process": "client-1", "role": "client"},
        {"process": "server-0", "role": "server"},
    ],
    "deployment": {
        "processes": [
            {"name": "client-0", "host": "robot"},
            {"name": "client-1", "host": "robot"},
            {"name": "server-0", "host": "edge"},
            {"name": "broker", "host": "edge"},
        ]
    },
}


class Runs:
    """Evidence of two runs with 64 B and one with 128 B, each on two hosts."""

    varied = ("payload_bytes",)
    titles: dict[str, dict[str, str]] = {}
    word = staticmethod(lambda name, level: str(level))
    factors = {"payload_bytes": (64, 128)}
    runs = dict.fromkeys("abc", ON_TWO_HOSTS)

    def __init__(self, frame: pl.DataFrame) -> None:
        self.usable, self.groups = frame, {}


FRAME = pl.DataFrame(
    {
        "run": ["a", "b", "c"],
        "factor.payload_bytes": [64, 64, 128],
        "cpu_us_per_message": [15.0, 60.0, 7.0],
        "cpu_us_per_message.on.robot": [10.0, 40.0, 5.0],
        "cpu_us_per_message.on.edge": [5.0, 20.0, None],
        "power_window_w.on.robot": [None, None, None],
    }
)


def test_each_host_of_each_treatment_has_its_processes_and_costs() -> None:
    result = by_host(Runs(FRAME))  # type: ignore[arg-type]
    assert result.measured == ("cpu_us_per_message",)
    assert result.rows == (
        HostCosts(("64",), "robot", ("client",), 2, pytest.approx(20.0)),
        HostCosts(("64",), "edge", ("server", "broker"), 2, pytest.approx(10.0)),
        HostCosts(("128",), "robot", ("client",), 1, pytest.approx(5.0)),
        HostCosts(("128",), "edge", ("server", "broker"), 1, None),
    )


def test_nothing_is_computed_without_costs_of_several_hosts() -> None:
    single = FRAME.select("run", "factor.payload_bytes", "cpu_us_per_message")
    assert by_host(Runs(single)) == ByHost()  # type: ignore[arg-type]
