"""Test the programs and counters of services, and their tables."""

import polars as pl
import pytest

from wattwire.analysis.topics.services.numbers import Growth, Program, Services, services
from wattwire.report.parts import Fold
from wattwire.report.topic_page import topic_page


class Brokers:
    """Evidence of two runs of one treatment and one run of another one."""

    varied = ("qos",)
    titles: dict[str, dict[str, str]] = {}
    word = staticmethod(lambda name, level: str(level))
    factors = {"qos": (0, 1)}
    has_messages = True

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
FACTS = (("program", "broker"), ("version", "2.0"))


def test_counters_are_summed_over_the_runs_that_have_them_and_divided_by_their_messages():
    result = services(Brokers(FRAME, dict(FACTS)))
    assert result.counters == (
        Growth(("0",), "broker", "dropped", 2, 0.0, 0.0),
        Growth(("0",), "broker", "received", 2, 200.0, pytest.approx(1.0)),
        Growth(("1",), "broker", "dropped", 1, 7.0, pytest.approx(0.14)),
    )
    assert result.programs == (Program("broker", FACTS, 3),)


def test_a_campaign_whose_services_report_nothing_has_no_table():
    result = services(Brokers(FRAME.select("run", "factor.qos", "sent"), {}))
    assert result == Services()
    assert topic_page("services", result).parts == ()


def test_the_fold_has_a_table_of_programs_and_one_of_counters():
    growth = Growth((), "broker", "received", 2, 200.0, None)
    both = Services((Program("broker", FACTS, 3),), (growth,))
    ((_, fold),) = topic_page("services", both).parts
    assert isinstance(fold, Fold)
    programs, counters = fold.parts
    assert programs.rows == [
        {"service": "broker", "reported": "program broker, version 2.0", "runs": 3}
    ]
    assert counters.rows == [
        {"service": "broker", "counter": "received", "runs": 2, "grown": 200.0,
         "per_message": None},
    ]  # fmt: skip
    ((_, fold),) = topic_page("services", Services((), (growth,))).parts
    assert [table.id for table in fold.parts] == ["service_counter"]
