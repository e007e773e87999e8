"""Tests of the factors network and placement: levels, skip reasons, deployments and specs."""

from __future__ import annotations

from typing import Any

import pytest

from wattwire.catalog import Catalog, home
from wattwire.catalog.rigs import load_rig
from wattwire.design import expand
from wattwire.model.deployment import HOST, Link, deployment_of
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.rig import ONE_HOST, read_rig
from wattwire.model.study import Plan, Study, parse_study
from wattwire.run.node_specs import PlacedTreatment, check_spec, run_nodes, scheduled_per_sender
from wattwire.run.resolve_cells import prepare, without_core_gaps

CATALOG = Catalog([home()])
RIG = load_rig(home() / "rigs" / "three.toml", CATALOG)
FIXED = {"cell": "udp/python", "pattern": "pingpong", "rate_hz": 10}
ADDRESSES = {host: RIG.address("native", host) for host in RIG.hosts}
INTERFACES = {host: RIG.device("native", host) for host in RIG.hosts}
TWO_NETWORKS = {
    "hosts": {name: {"kind": "netns"} for name in "abcd"},
    "networks": {"left": {"hosts": ["a", "b"]}, "right": {"hosts": ["c", "d"]}},
    "placements": {
        "one": {"sender": "a", "receiver": "b"},
        "two": {"sender": "c", "receiver": "d"},
        "across": {"sender": "a", "receiver": "d"},
        "part": {"sender": "a"},
    },
}


def study(document: Any = RIG.document, fixed: Any = None, **factors: Any) -> Study:
    text = {"factors": factors, "fixed": {**FIXED, **(fixed or {})}}
    if document is not None:
        text["rig"] = document
    return parse_study("s", text, "s.toml")


def reasons(of: Study) -> dict[str, str]:
    prepared = prepare(of, CATALOG, None)
    skipped = {treatment.label(): reason for treatment, reason in prepared.skipped}
    return {**{treatment.label(): "" for treatment in prepared.treatments}, **skipped}


def test_without_a_rig_treatments_have_no_network_and_no_placement() -> None:
    treatment = expand(study(None))[0][0]
    assert not {"network", "placement"} & {key for key, _ in treatment.levels}
    assert study(None).rig is ONE_HOST and "rig" not in study(None).document
    assert treatment.key == "364677ff0a4b"
    deployment = deployment_of(treatment, {"ping": "x/y", "pong": "x/y"}, ["broker"])
    assert deployment.hosts == (HOST,) and deployment.links == ()


def test_each_is_all_names_of_the_rig_in_either_table() -> None:
    names = tuple(RIG.networks)
    assert study(network="each").factors == {"network": names}
    changed = study(fixed={"placement": "each"}, network="each")
    assert changed.factors == {"network": names, "placement": tuple(RIG.placements)}
    assert study(None, network="each").factors == {"network": ("each",)}
    without = {"hosts": RIG.document["hosts"], "placements": RIG.document["placements"]}
    with pytest.raises(UsageError, match='network: found "each", but the rig has no network'):
        study(without, network="each")


def test_a_study_that_names_none_has_the_first_placement_and_a_network_that_joins_it() -> None:
    treatment = expand(study())[0][0]
    assert (treatment["network"], treatment["placement"]) == ("native", "apart")
    by_placement = [t for t, _ in expand(study(TWO_NETWORKS, placement=["one", "two"]))]
    assert [treatment["network"] for treatment in by_placement] == ["left", "right"]
    empty = study(TWO_NETWORKS, {"network": "", "placement": "two"})
    assert expand(empty)[0][0]["network"] == "right"


def test_levels_that_the_rig_cannot_measure_are_skipped_with_the_reason() -> None:
    networks = ", ".join(RIG.networks)
    assert reasons(study(network=["native", "moon"], placement=["apart", "together"])) == {
        "network=native placement=apart": "",
        "network=native placement=together": "",
        "network=moon placement=apart":
            f"the rig has no network moon (it has: {networks})",
        "network=moon placement=together":
            f"the rig has no network moon (it has: {networks})",
    }  # fmt: skip
    assert reasons(study(network=["lte", "native"], placement=["together"])) == {
        "network=lte placement=together": "",
        "network=native placement=together":
            "all nodes are on robot; the network carries nothing",
    }  # fmt: skip
    assert reasons(study(TWO_NETWORKS, {"network": "left"}, placement="each")) == {
        "placement=one": "",
        "placement=two": "network left does not join d, c",
        "placement=across": "network left does not join d",
        "placement=part": "placement part names no host for pong",
    }


def test_placements_that_differ_only_for_absent_processes_are_measured_once() -> None:
    same = "has the same hosts as placement"
    assert reasons(study(placement="each")) == {
        "placement=apart": "",
        "placement=together": "",
        "placement=round-trip": f"placement round-trip {same} together",
        "placement=round-trip-broker-on-robot":
            f"placement round-trip-broker-on-robot {same} together",
        "placement=remote-control": "",
        "placement=remote-control-broker-on-edge":
            f"placement remote-control-broker-on-edge {same} remote-control",
    }  # fmt: skip
    chain = {"pattern": "pipeline", "nodes": 3, "placement": "each"}
    assert [reason for reason in reasons(study(fixed=chain)).values() if reason] == [
        f"placement round-trip-broker-on-robot {same} round-trip",
        f"placement remote-control-broker-on-edge {same} remote-control",
    ]
    assert list(reasons(study(fixed={**chain, "cell": "mqtt/python"})).values()) == [""] * 6


def test_one_clock_times_a_round_trip_over_a_relay() -> None:
    chain = {"pattern": "pipeline", "nodes": 3, "placement": "round-trip", "cell": "mqtt/python"}
    of = study(fixed=chain)
    cells = dict.fromkeys(("source", "relay", "sink"), CATALOG.cell("mqtt/python"))
    (treatment,) = (treatment for treatment, _ in expand(of))
    placed = PlacedTreatment(treatment, cells, of.rig)
    hosts = {process.name: process.host for process in placed.deployment.processes}
    broker = next(iter(placed.middleware.services))
    assert hosts == {"source-0": "robot", "relay-0": "edge", "sink-0": "robot", broker: "cloud"}


def test_cells_of_one_host_and_cells_without_the_capability_are_skipped() -> None:
    cells = reasons(study(None, {"cell": "loopback/python"}))
    assert cells == {"the only treatment": ""}
    with pytest.raises(MissingError, match="loopback works only within one host"):
        reasons(study(fixed={"cell": "loopback/python"}))
    lacking = next(
        (c.name for c in map(CATALOG.cell, CATALOG.cells)
         if "network" not in c.document["capabilities"] and c.middleware.reach == "network"
         and "pingpong" in c.document["patterns"] and not c.middleware.services),
        None,
    )  # fmt: skip
    if lacking is not None:
        with pytest.raises(MissingError, match="lacks the capability network"):
            reasons(study(fixed={"cell": lacking}))


def test_a_link_without_a_near_process_is_skipped() -> None:
    document = {
        "hosts": TWO_NETWORKS["hosts"],
        "networks": {"n": {"link": "lte", "near": ["d"]}},
        "placements": {"one": {"sender": "a", "receiver": "b"}},
    }
    with pytest.raises(MissingError, match="no frame passes the link of network n"):
        reasons(study(document))


def test_a_study_of_networks_without_a_rig_is_refused() -> None:
    with pytest.raises(UsageError, match="network: the levels are names of a rig.*--rig FILE"):
        prepare(study(None, network="each"), CATALOG, None)
    with pytest.raises(UsageError, match="the rig has no placement"):
        prepare(study({"hosts": {"a": {}}}), CATALOG, None)


def test_cores_are_checked_before_the_hosts_of_a_rig_have_addresses() -> None:
    of = study(fixed={"cores": "same"})
    assert without_core_gaps(prepare(of, CATALOG, None), of, {}).treatments


def test_all_runs_of_a_treatment_have_one_deployment() -> None:
    of = study(fixed={"cores": "same"}, placement=["apart", "together"])
    prepared = prepare(of, CATALOG, None)
    before = [prepared.placed[treatment.key].deployment for treatment in prepared.treatments]
    kept = without_core_gaps(prepared, of, {})
    after = [kept.placed[treatment.key].deployment for treatment in kept.treatments]
    assert [id(deployment) for deployment in after] == [id(deployment) for deployment in before]
    assert [deployment.hosts for deployment in after] == [("robot", "edge"), ("robot",)]


@pytest.mark.parametrize(("rate_hz", "duration_s"), [(3, 2), (30, 2), (30, 0.5), (7, 10), (100, 1)])
def test_a_window_has_as_many_messages_as_its_rate_says(rate_hz: int, duration_s: float) -> None:
    treatment = expand(study(None, {"rate_hz": rate_hz}))[0][0]
    assert scheduled_per_sender(treatment, Plan(duration_s=duration_s)) == rate_hz * duration_s


def planned(placement: str, cell: str = "udp/python") -> Any:
    of = study(fixed={"placement": placement, "cell": cell})
    treatment = expand(of)[0][0]
    roles = dict.fromkeys(("ping", "pong"), CATALOG.cell(cell))
    placed = PlacedTreatment(treatment, roles, of.rig)
    nodes = run_nodes(placed, Plan(), "abcd", "", ADDRESSES, INTERFACES)
    return placed.deployment, nodes


def test_a_deployment_has_the_hosts_and_the_network_of_its_placement() -> None:
    deployment, nodes = planned("apart")
    assert {p.name: p.host for p in deployment.processes} == {"pong-0": "edge", "ping-0": "robot"}
    assert deployment.hosts == ("robot", "edge")
    assert deployment.links == (Link("native", ("robot", "edge")),)
    specs = {node.role: node.spec for node in nodes}
    assert specs["ping"]["host.address"] == "10.77.0.1" != specs["pong"]["host.address"]
    assert specs["ping"]["host.interface"] == "native"
    assert specs["ping"]["peers.addresses"] == ["10.77.0.2"]
    assert specs["pong"]["peers.addresses"] == ["10.77.0.1"]
    for spec in specs.values():
        check_spec(spec)


def test_a_service_process_is_on_its_own_host() -> None:
    deployment, _ = planned("apart", "mqtt/python")
    assert deployment.by_process[next(iter(CATALOG.middleware["mqtt"].services))].host == "cloud"
    assert deployment.hosts == ("robot", "edge", "cloud")


def test_all_nodes_on_one_host_use_the_loopback_device() -> None:
    deployment, nodes = planned("together")
    assert deployment.hosts == ("robot",) and deployment.links == ()
    for node in nodes:
        assert node.spec["host.address"] == "127.0.0.1" and node.spec["host.interface"] == "lo"
        assert node.spec["peers.addresses"] == ["127.0.0.1"]


def test_a_placement_without_a_process_has_no_deployment() -> None:
    treatment = expand(study(TWO_NETWORKS, {"placement": "part"}))[0][0]
    with pytest.raises(UsageError, match="placement part of .* lacks pong"):
        deployment_of(treatment, {}, (), read_rig(TWO_NETWORKS, "r.toml"))
