"""Tests of treatments with a bridge: specs, services, and treatments that cannot be run."""

from __future__ import annotations

from typing import Any

import pytest

from wattwire.catalog import Catalog, home
from wattwire.catalog.rigs import load_rig
from wattwire.design import expand
from wattwire.model.deployment import BRIDGE
from wattwire.model.errors import UsageError
from wattwire.model.study import Plan, Study, parse_study
from wattwire.run.node_specs import PlacedTreatment, check_spec, run_nodes
from wattwire.run.placing import bridge_gap
from wattwire.run.resolve_cells import prepare

CATALOG = Catalog([home()])
RIG = load_rig(home() / "rigs" / "three.toml", CATALOG)
ADDRESSES = {host: RIG.address("native", host) for host in RIG.hosts}
INTERFACES = {host: RIG.device("native", host) for host in RIG.hosts}
FIXED = {"cell": "ros2/python", "pattern": "pipeline", "rate_hz": 10}


def study(fixed: Any = None, **factors: Any) -> Study:
    held = {k: v for k, v in {**FIXED, **(fixed or {})}.items() if k not in factors}
    text = {"factors": factors, "fixed": held, "rig": RIG.document}
    return parse_study("s", text, "s.toml")


def plans(name: str, **fixed: Any) -> Any:
    treatment = expand(study({"placement": "apart", **fixed}, bridge=[name]))[0][0]
    bridge, cell = CATALOG.bridge(name, treatment.outer_settings), CATALOG.cell("ros2/python")
    cells = {**dict.fromkeys(("source", "relay", "sink"), cell), "bridge": bridge}
    placed = PlacedTreatment(treatment, cells, RIG)
    return placed, run_nodes(placed, Plan(), "abcd1234", "", ADDRESSES, INTERFACES)


@pytest.mark.parametrize("name", sorted(CATALOG.bridges))
def test_bridge_processes_have_specs_of_relays_with_their_end(name: str) -> None:
    placed, nodes = plans(name)
    assert [n.process for n in nodes if placed.deployment.kind_of(n) == BRIDGE] == [
        f"bridge-{i}" for i in range(4)
    ]
    for node in nodes:
        check_spec(node.spec)
        assert node.spec["hop"] == node.hop
        assert node.spec["settings.discovery"] == "localhost"
        assert node.spec["settings.transports"] == "udp"
        kinds = ("string", "integer", "boolean")
        names = [name for kind in kinds for name in node.spec[f"declared.{kind}_settings"]]
        settings = {key for key in node.spec if key.startswith("settings.")}
        assert {f"settings.{name}" for name in names} == settings
        assert node.role in node.spec["declared.roles"]
    ends = [node.spec.get("settings.bridge_end") for node in nodes]
    assert ends == [None] * 3 + ["entry", "exit"] * 2
    assert {node.cell for node in nodes[3:]} == {placed.cells["bridge"].name}
    assert all(node.program is placed.bridge for node in nodes[3:])
    assert [node.program.name for node in nodes[:3]] == ["ros2/python"] * 3


def test_an_entry_connects_to_its_exit_only_if_the_exit_listens() -> None:
    for name in CATALOG.bridges:
        listens = CATALOG.bridge(name).exit_listens
        _, nodes = plans(name)
        entry, leaving = nodes[3], nodes[4]
        assert entry.connects_to == (frozenset({leaving.node}) if listens else frozenset())
        assert leaving.listens is listens and not entry.listens


def test_the_services_of_the_outer_middleware_run_for_a_bridge() -> None:
    for name in CATALOG.bridges:
        placed, _ = plans(name)
        outer = CATALOG.bridge(name).outer
        expected = list(outer.services_for({}))
        assert list(placed.services) == expected


def test_ends_that_meet_at_a_service_do_not_listen_and_know_their_settings() -> None:
    fixed = {"outer_settings.via": "router"}
    placed, nodes = plans("ros2-zenoh", **fixed)
    assert list(placed.services) == ["router"]
    for node in nodes[3:]:
        check_spec(node.spec)
        assert node.spec["settings.outer_via"] == "router"
        assert not node.listens and node.connects_to == frozenset()
    assert not any("settings.outer_via" in node.spec for node in nodes[:3])


def test_outer_settings_without_a_bridge_are_refused() -> None:
    fixed = {"placement": "apart", "outer_settings.via": "router"}
    with pytest.raises(UsageError, match=r"outer_settings\.via = router: found bridge = none"):
        prepare(study(fixed, bridge=["none"]), CATALOG, None)


def reasons(of: Study) -> dict[str, str]:
    return {t.label(): reason for t, reason in prepare(of, CATALOG, None).skipped}


def test_treatments_that_no_message_bridges_are_skipped_with_the_reason() -> None:
    name = sorted(CATALOG.bridges)[0]
    gaps = reasons(study({"placement": "together"}, bridge=["none", name]))
    assert "both ends of bridge" in gaps[f"bridge={name}"] and "bridge=none" not in gaps
    assert reasons(study({"placement": "apart"}, bridge=["none", name])) == {}
    mixed = study({"placement": "apart"}, cell=["udp/python", "ros2/python"], bridge=[name])
    assert "joins hosts with ros2, not udp" in reasons(mixed)[f"cell=udp/python bridge={name}"]
    topic = study({"placement": "apart"}, pattern=["topic", "pipeline"], bridge=[name])
    assert "no positions" in reasons(topic)[f"pattern=topic bridge={name}"]


def test_a_message_above_the_limit_of_a_bridge_is_skipped_with_both_sizes() -> None:
    bridge = CATALOG.bridge(sorted(CATALOG.bridges)[0])
    bridge.document["payload_bytes_max"] = 100
    factors = {"payload_bytes": [100, 101], "bridge": [bridge.folder.name]}
    fits, exceeds = (t for t, _ in expand(study({"placement": "apart"}, **factors)))
    assert bridge_gap(fits, bridge, bridge.middleware, RIG) is None
    gap = bridge_gap(exceeds, bridge, bridge.middleware, RIG)
    assert gap is not None and "at most 100 bytes, not 101" in gap


def test_an_unknown_bridge_is_refused() -> None:
    with pytest.raises(UsageError, match="bridge"):
        prepare(study({"placement": "apart"}, bridge=["no-such-bridge"]), CATALOG, None)
