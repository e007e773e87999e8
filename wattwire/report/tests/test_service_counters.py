"""Test the tables of programs and counters of services."""

import polars as pl
import pytest

from wattwire.report.tables import service_counters


class Brokers:
    """Evidence of two runs of one treatment and one run of another one."""

    varied = ("qos",)
    titles: dict[str, dict[str, str]] = {}
    word = staticmethod(lambda name, level: str(level))
    factors = {"qos": (0, 1)}

    def __init__(self, frame, facts):
        self.usable, self.groups = frame, {}
        service = {"process": "broker.try1", **({"facts": facts} if facts else {})}
        self.runs = {run: {"services": [service]} for run in frame["run"].to_list()}


FRAME = pl.DataFrame(
    {
        "run": ["a", "b", "c"],
        "factor.qos": [0, 0, 1],
        "sent": [100, 100, 50],
        "service_counter.broker.received": [110, 90, None],
        "service_counter.broker.dropped": [0, 0, 7],
    }
)


def test_counters_are_summed_over_the_runs_that_have_them_and_divided_by_their_messages():
    fold = service_counters.fold(Brokers(FRAME, {"program": "broker", "version": "2.0"}))
    assert fold is not None
    programs, counters = fold.parts
    assert [tuple(row.values()) for row in counters.rows] == [
        ("0", "broker", "dropped", 2, 0.0, 0.0),
        ("0", "broker", "received", 2, 200.0, pytest.approx(1.0)),
        ("1", "broker", "dropped", 1, 7.0, pytest.approx(0.14)),
    ]
    assert programs.rows == [
        {"service": "broker", "reported": "program broker, version 2.0", "runs": 3}
    ]


def test_a_campaign_whose_services_report_nothing_has_no_table():
    assert service_counters.fold(Brokers(FRAME.select("run", "factor.qos", "sent"), {})) is None
