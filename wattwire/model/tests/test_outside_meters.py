"""Test the addresses and classes of meters outside the machine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.outside_meters import (
    AccuracyClass,
    accuracy_class,
    by_machine,
    meters_of_options,
    meters_of_rig,
    restored,
    stored,
)

MANIFESTS = {
    "socket": {"tier": "stream", "address": "/dev/tty", "window_s": 2.0, "class": "1 % + 0.1 W"},
    "wall": {"tier": "stream", "address": "a:b", "window_s": 1.0, "class": "2 %"},
    "inside": {"tier": "tick"},
}


@pytest.mark.parametrize(
    ("text", "share", "watts"),
    [
        ("1.5 % + 0.3 W", 0.015, 0.3),
        ("1%+2W", 0.01, 2.0),
        ("0.5 %", 0.005, 0.0),
        ("0.3 W", 0.0, 0.3),
    ],
)
def test_a_class_is_a_share_and_a_power(text: str, share: float, watts: float) -> None:
    assert accuracy_class(text, "here") == AccuracyClass(pytest.approx(share), watts)
    assert accuracy_class(text, "here").bound_w(-100.0) == pytest.approx(100 * share + watts)


@pytest.mark.parametrize(
    "text", ["", "good", "1.5", "1 % 2 W", "+ 2 W", "-1 %", "1 % + 2 kW", "1e9 %"]
)
def test_a_class_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="allowed: a share in % and a power in W"):
        accuracy_class(text, "here")


def test_an_option_has_the_facts_of_the_manifest() -> None:
    (meter,) = meters_of_options(["socket=/dev/tty7"], MANIFESTS)
    assert (meter.name, meter.at, meter.host) == ("socket", "/dev/tty7", "")
    assert meter.shortest_window_s == 40.0
    assert "/dev" not in json.dumps(meter.without_address)
    assert restored(json.loads(json.dumps(stored([meter])))) == (meter,)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("socket", "allowed: NAME=ADDRESS, such as socket=/dev/tty or wall=a:b"),
        ("socket=", "allowed: NAME=ADDRESS"),
        ("=x", "allowed: NAME=ADDRESS"),
        ("sockt=x", 'Did you mean "socket"'),
        ("inside=x", "a meter of this machine, which has no address"),
    ],
)
def test_an_option_that_names_no_meter_is_refused(word: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        meters_of_options([word], MANIFESTS)


def test_two_meters_of_one_rank_are_refused() -> None:
    with pytest.raises(UsageError, match="the same rank among the sources of energy"):
        meters_of_options(["socket=/dev/a", "socket=/dev/b"], MANIFESTS)


def test_a_rig_names_the_measured_host_and_may_replace_the_facts() -> None:
    tables = {
        "robot": [{"name": "socket", "at": "/dev/a", "class": "3 W", "window_s": 0.5}],
        "edge": {"name": "wall", "at": "a:b", "read_by": "edge"},
    }
    robot, edge = meters_of_rig(tables, ["robot", "edge"], MANIFESTS, "rig.toml")
    assert (robot.host, robot.window_s, robot.accuracy) == ("robot", 0.5, AccuracyClass(0.0, 3.0))
    assert (edge.host, edge.window_s) == ("edge", 1.0)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ({"robt": {"name": "wall", "at": "x"}}, 'Did you mean "robot"'),
        ({"robot": "wall"}, "allowed: a table such as"),
        ({"robot": {"name": "wall"}}, "meters.robot.at"),
        ({"robot": {"name": "wall", "at": "x", "rank": 1}}, 'unknown key "rank"'),
        (
            {"robot": {"name": "wall", "at": "x", "class": "fine"}},
            "meters.robot.class: found 'fine'",
        ),
        ({"robot": {"name": "wall", "at": "x", "window_s": 0.0}}, "window_s"),
        ({"robot": {"name": "wall", "at": "x", "read_by": "edge"}}, "allowed: robot, the measured"),
    ],
)
def test_a_table_of_a_rig_that_is_no_meter_is_refused(tables: object, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        meters_of_rig(tables, ["robot", "edge"], MANIFESTS, "rig.toml")


def test_a_bundle_must_not_contain_the_parts_of_an_address() -> None:
    words = {
        at: meters_of_options([f"wall={at}"], MANIFESTS)[0].private_words
        for at in ("/dev/ttyUSB0", "kind:192.168.1.20:81/1", "kind:plug.lan", "kind:127.0.0.1:5")
    }
    assert words["/dev/ttyUSB0"] == ("/dev/ttyUSB0",)
    assert words["kind:192.168.1.20:81/1"][1:] == ("192.168.1.20:81", "192.168.1.20")
    assert words["kind:plug.lan"] == ("kind:plug.lan", "plug.lan")
    assert "127.0.0.1" not in words["kind:127.0.0.1:5"]


def test_two_addresses_of_one_meter_of_one_machine_are_refused() -> None:
    (here,) = meters_of_options(["wall=a:b"], MANIFESTS)
    robot, edge = replace(here, host="robot"), replace(here, host="edge", at="a:c")
    boots = {"robot": "r", "edge": "e"}
    assert by_machine((robot, edge, here), boots, "h") == {
        "r": {"wall": robot}, "e": {"wall": edge}, "h": {"wall": here},
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"two addresses for one machine \(robot and edge\)"):
        by_machine((robot, edge), {"robot": "same", "edge": "same"}, "h")
