"""Test the specs, the lines and the counts of members, whose parts are nodes of their own."""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog
from wattwire.design import expand
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.study import Plan, parse_study
from wattwire.run.lines import BadLineError, parse_line
from wattwire.run.node_specs import (
    PART_KEYS,
    PlacedTreatment,
    check_spec,
    part_specs,
    process_spec,
    run_nodes,
)
from wattwire.run.resolve_cells import prepare
from wattwire.run.run_processes import ProcessState

TOKEN = "ww0123"
GRAPH = {
    "node": [{"name": name} for name in ("lidar", "slam", "base")],
    "flow": [
        {"topic": "scan", "from": "lidar", "to": ["slam", "base"], "bytes": 4000, "rate_hz": 10},
        {"topic": "speed", "from": "slam", "to": ["base"], "bytes": 48, "rate_hz": 20},
        {"topic": "odom", "from": "base", "to": ["slam"], "bytes": 700, "rate_hz": 50},
    ],
}


@pytest.fixture(scope="module")
def nodes():
    study = parse_study(
        "graph", {"topology": GRAPH, "factors": {"cell": ["loopback/python"]}}, "study.toml"
    )
    ((treatment, _),) = expand(study)
    cell = Catalog().cell("loopback/python")
    placed = PlacedTreatment(treatment, {"publisher": cell, "subscriber": cell})
    return placed, run_nodes(placed, Plan(duration_s=2.0), TOKEN)


def of_process(nodes, process):
    return [node for node in nodes[1] if node.process == process]


def spec_of(nodes, process):
    placed = nodes[0]
    return process_spec(of_process(nodes, process), TOKEN, placed.settings(placed.treatment))


def test_a_member_has_a_part_for_each_flow_that_it_sends_or_receives(nodes):
    slam = spec_of(nodes, "member-1")
    assert (slam["role"], slam["run"], slam["index"], slam["parts"]) == ("member", TOKEN, 1, 3)
    parts = part_specs(slam)
    assert [(part["role"], part["payload.bytes"]) for part in parts] == [
        ("subscriber", 4000), ("publisher", 48), ("subscriber", 700),
    ]  # fmt: skip
    assert [part["period_ns"] for part in parts] == [100_000_000, 50_000_000, 20_000_000]
    assert len({part["run"] for part in parts}) == 3
    assert len({part["node"] for part in parts}) == 3


def test_the_specs_of_parts_are_those_that_their_nodes_would_have_alone(nodes):
    for process in ("member-0", "member-1", "member-2"):
        own = of_process(nodes, process)
        for node, part in zip(own, part_specs(spec_of(nodes, process)), strict=True):
            for key in (*PART_KEYS, "duration_ns", "verify"):
                assert part[key] == node.spec[key], key


def test_the_specs_of_members_are_valid_and_a_wrong_part_is_named(nodes):
    for process in ("member-0", "member-1", "member-2"):
        check_spec(spec_of(nodes, process))
    spec = spec_of(nodes, "member-1")
    with pytest.raises(UsageError, match=r"part\.1\.node"):
        check_spec({**spec, "part.1.node": -1})
    with pytest.raises(UsageError, match=r"period_ns"):
        check_spec({**spec, "part.1.period_ns": 0})
    with pytest.raises(UsageError, match=r"parts"):
        check_spec({key: value for key, value in spec.items() if key != "parts"})
    with pytest.raises(UsageError, match=r"part\.0\.linger_ms"):
        check_spec({**spec, "part.0.linger_ms": 5})
    with pytest.raises(UsageError):
        check_spec({**of_process(nodes, "member-0")[0].spec, "parts": 1})


def test_a_timer_of_the_middleware_cannot_pace_members():
    document = {
        "topology": GRAPH, "factors": {"cell": ["loopback/python"]}, "fixed": {"pacing": "native"},
    }  # fmt: skip
    with pytest.raises(MissingError, match="pacing = native"):
        prepare(parse_study("graph", document, "study.toml"), Catalog(), None)


def test_members_neither_listen_nor_connect(nodes):
    assert not any(node.listens or node.connects_to for node in nodes[1])


def test_a_part_has_the_fields_of_its_entry_and_those_of_the_process():
    state = ProcessState(
        lines={
            "READY": {"matched": 3, "library": {}, "seen_ns": 5, "parts": [
                {"node": 4, "matched": 1, "effective": {}},
                {"node": 7, "matched": 2, "effective": {}}]},
            "SENT": {"sent": 9, "seen_ns": 6, "parts": [{"node": 7, "sent": 9}]},
            "DONE": {"sent": 9, "recorded": 19, "parts": [
                {"node": 4, "sent": 0, "recorded": 10}, {"node": 7, "sent": 9, "recorded": 9}]},
        }
    )  # fmt: skip
    receiver, sender = state.of_part(4), state.of_part(7)
    assert (receiver.lines["READY"]["matched"], sender.lines["READY"]["matched"]) == (1, 2)
    assert "SENT" not in receiver.lines
    assert sender.lines["SENT"] == {"sent": 9, "seen_ns": 6, "node": 7}
    assert (receiver.lines["DONE"]["recorded"], sender.lines["DONE"]["recorded"]) == (10, 9)
    # A member that forgets a part has no DONE of this part, which breaks C-16.
    assert state.of_part(8).lines == {}


def test_an_entry_of_a_line_with_a_wrong_field_breaks_the_clause_of_the_line():
    counts = '"sent":1,"received":0,"recorded":1,"overflow":0,"foreign":0,"corrupt":0,"probes":0'
    parse_line(f'DONE {{{counts},"parts":[{{"node":3,{counts}}}]}}', ("READY",))
    for entry in (f'{{"node":-1,{counts}}}', f"{{{counts}}}", '{"node":3}', "7"):
        with pytest.raises(BadLineError, match="C-16"):
            parse_line(f'DONE {{{counts},"parts":[{entry}]}}', ("READY",))
