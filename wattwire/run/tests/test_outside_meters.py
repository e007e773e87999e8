"""Test which meters a sampling could not read, in sentences without an address."""

from __future__ import annotations

import pytest

from wattwire.model.outside_meters import AccuracyClass, OutsideMeter
from wattwire.run.results.outside_meters import absent_meters, silent_meters

METERS = {"one": OutsideMeter("one", "/dev/ttyUSB7", 1.0, AccuracyClass())}


def test_a_meter_that_cannot_be_opened_is_gone_and_its_address_is_not_stated() -> None:
    absent = [
        {"name": "one", "reason": "/dev/ttyUSB7: no such device"},
        {"name": "powercap", "reason": "no counter"},
    ]
    assert list(absent_meters({"absent": absent}, METERS)) == [
        "the meter one is gone: its address: no such device"
    ]
    assert not list(absent_meters({"absent": absent}, {}))


@pytest.mark.parametrize(
    ("info", "text"),
    [
        ({"answers": 5, "faults": 2, "fault_texts": {"noise": 2}}, ""),
        ({"answers": 5, "open_fault": "unplugged?"}, "unplugged?"),
        ({"answers": 0, "faults": 3, "fault_texts": {"401": 3}}, "401"),
        ({"answers": 0, "faults": 0}, "nothing came"),
    ],
)
def test_a_meter_is_silent_if_its_last_reading_failed_or_none_came(
    info: dict[str, object], text: str
) -> None:
    series = [{"meter": "one", "info": info}, {"meter": "one", "info": info}]
    other = {"meter": "canary", "info": {}}
    sentences = [f"the meter one does not answer: {text}"] if text else []
    assert list(silent_meters({"series": [*series, other]}, METERS)) == sentences
    assert not list(silent_meters({"series": [other]}, METERS))
