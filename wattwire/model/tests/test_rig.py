"""Tests of rigs: what they contain, and the message for each invalid value."""

from __future__ import annotations

from typing import Any

import pytest

from wattwire.model.deployment import HOST, PATTERNS, PLACED
from wattwire.model.errors import UsageError
from wattwire.model.rig import LOCAL, NATIVE, NETNS, ONE_HOST, SSH, Rig, read_rig

LINKS = ("mobile", "lossy")
SERVICES = ("broker",)
TWO = {"a": {"kind": NETNS}, "b": {"kind": NETNS}}
THREE = {**TWO, "c": {"kind": NETNS}}
FAR = {
    "pi": {"kind": SSH, "to": "user@pi", "interface": "wlan0"},
    "desk": {"kind": LOCAL, "interface": "eth0"},
}


def read(**document: Any) -> Rig:
    return read_rig(document, "rig.toml", LINKS, PLACED | {*SERVICES})


def test_a_rig_joins_namespaces_by_networks_with_subnets_in_order() -> None:
    networks = {
        "plain": {},
        "fixed": {"subnet": "10.77.1.0/24", "hosts": ["c", "a"]},
        "mobile": {"link": "mobile", "near": ["c"], "engine": "emulator"},
    }
    rig = read(hosts=THREE, networks=networks)
    assert [spec.subnet for spec in rig.networks.values()] == [
        "10.77.0.0/24", "10.77.1.0/24", "10.77.2.0/24",
    ]  # fmt: skip
    assert [rig.address("plain", host) for host in "abc"] == [f"10.77.0.{n}" for n in (1, 2, 3)]
    assert [rig.address("fixed", host) for host in "ca"] == ["10.77.1.1", "10.77.1.2"]
    assert rig.device("mobile", "b") == "mobile"
    assert (rig.networks["plain"].link, rig.networks["plain"].is_emulated) == (NATIVE, False)
    assert rig.networks["mobile"].near == ("c",) and rig.networks["mobile"].is_emulated


def test_the_first_host_is_near_by_default() -> None:
    assert read(hosts=TWO, networks={"n": {"link": "mobile"}}).networks["n"].near == ("a",)
    assert read(hosts=TWO, networks={"n": {}}).networks["n"].near == ()


def test_machines_are_joined_by_their_own_interfaces() -> None:
    networks = {"wifi": {}, "wire": {"interfaces": {"pi": "eth1", "desk": "eth2"}}}
    rig = read(hosts=FAR, networks=networks)
    assert [rig.device("wifi", host) for host in FAR] == ["wlan0", "eth0"]
    assert [rig.device("wire", host) for host in FAR] == ["eth1", "eth2"]
    assert rig.address("wifi", "pi") == ""


def test_a_rig_names_the_configuration_of_ssh() -> None:
    assert read(hosts=FAR, ssh_config="config").ssh_config == "config"
    assert read(hosts=FAR).ssh_config == ""
    for found in ("", 7):
        with pytest.raises(UsageError, match="rig.toml: ssh_config: found .*; allowed: the path"):
            read(hosts=FAR, ssh_config=found)
    with pytest.raises(UsageError, match="in a rig without a host of kind ssh"):
        read(hosts=TWO, ssh_config="config")


def test_a_placement_finds_exact_names_before_general_words() -> None:
    hosts = {"sender": "a", "publisher": "b", "receiver": "c", "relay": "c", "service": "a"}
    rig = read(hosts=THREE, placements={"p": hosts, "q": {"broker": "b", "sink": "a"}})
    p, q = rig.placements["p"], rig.placements["q"]
    topic, pipeline, service = (PATTERNS[name] for name in ("topic", "pipeline", "service"))
    assert p.host_of_role("publisher", topic.position("publisher")) == "b"
    assert p.host_of_role("source", pipeline.position("source")) == "a"
    assert p.host_of_role("relay", pipeline.position("relay")) == "c"
    assert p.host_of_role("sink", pipeline.position("sink")) == "c"
    assert p.host_of_role("client", service.position("client")) == "a"
    assert p.host_of_service("broker") == "a" and q.host_of_service("broker") == "b"
    assert q.host_of_service("router") is None
    assert q.host_of_role("source", pipeline.position("source")) is None


def test_the_first_network_that_joins_all_hosts_is_found() -> None:
    networks = {"some": {"hosts": ["a", "b"]}, "all": {}}
    rig = read(hosts=THREE, networks=networks)
    assert rig.network_of(["b", "a"]) == "some" and rig.network_of("abc") == "all"
    assert read(hosts=THREE).network_of("ab") == ""


def test_one_host_has_the_name_of_the_hosts_of_deployments() -> None:
    assert list(ONE_HOST.hosts) == [HOST] and ONE_HOST.hosts[HOST].kind == LOCAL
    assert not ONE_HOST.is_from_file and read(hosts=TWO).is_from_file


def test_a_stored_rig_is_read_without_the_profiles_and_services_of_this_machine() -> None:
    document = {
        "hosts": TWO, "networks": {"n": {"link": "gone"}}, "placements": {"p": {"gone": "a"}},
    }  # fmt: skip
    rig = read_rig(document, "campaign/study.json: rig")
    assert rig.document == document and rig.networks["n"].link == "gone"
    with pytest.raises(UsageError, match="gone"):
        read(**document)


def host(**table: Any) -> dict[str, Any]:
    return {"hosts": {"x": table}}


def network(*, name: str = "net", hosts: dict[str, Any] = TWO, **table: Any) -> dict[str, Any]:
    return {"hosts": hosts, "networks": {name: table}}


def placement(**table: Any) -> dict[str, Any]:
    return {"hosts": TWO, "placements": {"p": table}}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "empty file": ({}, "hosts: found none; allowed: a table [hosts] with at least one host"),
    "key": ({"host": {}}, 'key "host"; known: hosts, meters, networks, placements, ssh_config. '),
    "meters no table": ({"hosts": {"a": {}}, "meters": "b"}, "meters: found 'b'; allowed: a table"),
    "no table": ({"hosts": "a"}, "hosts: found 'a'; allowed: a table [hosts]"),
    "host no table": ({"hosts": {"a": "b"}}, "hosts.a: found 'b'; allowed: a table"),
    "host's name": ({"hosts": {"a b": {}}}, "hosts: found the name 'a b'; allowed: 1 to 31"),
    "kind": (host(kind="docker"), "hosts.x.kind: found 'docker'; allowed: local, netns, ssh"),
    "host's key": (host(adress="x"), 'hosts.x: unknown key "adress"'),
    "ssh without to": (host(kind=SSH), "hosts.x.to: found nothing; allowed with kind ssh: a"),
    "to of a namespace": (
        host(kind=NETNS, to="u@h"),
        "hosts.x.to: found 'u@h' on a host of kind netns; allowed only for the kind ssh",
    ),
    "options in to": (host(kind=SSH, to="-oProxyCommand=x"), "a destination of ssh without spaces"),
    "interface of a namespace": (host(kind=NETNS, interface="eth0"), "for the kind local or ssh"),
    "long interface": (
        host(interface="a" * 16), "x.interface: found 'aaaaaaaaaaaaaaaa'; allowed: the name of a",
    ),
    "clock offset of a machine": (
        host(kind=SSH, to="h", clock_offset_s=5),
        "hosts.x.clock_offset_s: found 5 on a host of kind ssh; allowed only for the kind netns",
    ),
    "clock offset": (host(kind=NETNS, clock_offset_s="5"), "found '5'; allowed: ±1e+09 s"),
    "management": (host(kind=SSH, to="h", management="own"), "found 'own'; allowed: shared"),
    "management of a namespace": (host(kind=NETNS, management="shared"), "for the kind ssh"),
    "two local hosts": (
        {"hosts": {"a": {}, "b": {"kind": LOCAL}}}, "a and b have the kind local, which is this",
    ),
    "network's key": (network(near_hosts=[]), 'networks.net: unknown key "near_hosts"'),
    "link": (network(link="lossi"), 'unknown link "lossi"; known: lossy, mobile, native. Did'),
    "network's host": (network(hosts_of=0, hosts=TWO), "unknown key"),
    "one host": (
        {"hosts": {"a": {"kind": NETNS}}, "networks": {"n": {}}},
        "networks.n.hosts: found a; allowed: two or more hosts",
    ),
    "long network name": (
        network(name="sixteen-letters-"), "found the name 'sixteen-letters-' (16 characters)",
    ),
    "network called lo": (network(name="lo"), "characters and not lo"),
    "near without link": (network(near=["a"]), "net.near: found ['a']; allowed only with an emul"),
    "engine without link": (network(engine="kernel"), "net.engine: found 'kernel'; allowed only"),
    "engine": (network(link="lossy", engine="ns3"), "found 'ns3'; allowed: kernel, emulator"),
    "near": (network(link="lossy", near=["z"]), 'networks.net.near: unknown host "z"; known: a, b'),
    "interfaces of namespaces": (
        network(interfaces={"a": "eth0", "b": "eth0"}), "allowed for hosts of kind netns: nothing",
    ),
    "subnet": (network(subnet="10.77"), "net.subnet: found '10.77' (Expected 4 octets"),
    "subnet with host bits": (network(subnet="10.77.0.1/24"), "has host bits set"),
    "reserved subnet": (network(subnet="127.1.0.0/24"), "which is reserved; allowed: a private"),
    "small subnet": (
        network(hosts=THREE, subnet="10.0.0.0/30"), "which has addresses for 2 hosts; allowed: a",
    ),
    "no interface": (
        network(hosts={**FAR, "desk": {}}),
        "networks.net: found no interface of host desk; allowed: the name of a network interface",
    ),
    "link between machines": (network(hosts=FAR, link="lossy"), "only for a network of hosts of"),
    "subnet of machines": (network(hosts=FAR, subnet="10.0.0.0/24"), "subnet: found '10.0.0.0/24'"),
    "long device": (
        network(hosts=FAR, interfaces={"pi": "w" * 16, "desk": "eth0"}), "interfaces.pi: found",
    ),
    "namespaces and machines": (
        network(hosts={**FAR, **TWO}), "hosts of the kinds local, netns, ssh; allowed: either only",
    ),
    "empty placement": (placement(), "placements.p: found nothing; allowed: role = "),
    "placement's key": (placement(publischer="a"), 'unknown role or service "publischer"; known'),
    "placement's host": (placement(sender="z"), 'placements.p.sender: unknown host "z"; known: a,'),
    "placement's value": (placement(sender=["a"]), "p.sender: found ['a']; allowed: the name of a"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_invalid_rig_is_refused_with_the_position_and_what_is_allowed(case: str) -> None:
    document, message = CASES[case]
    with pytest.raises(UsageError) as error:
        read(**document)
    assert str(error.value).startswith("rig.toml: ") and message in str(error.value)


def test_an_unknown_host_of_a_network_is_named() -> None:
    for key, value in (("hosts", ["a", "z"]), ("interfaces", {"a": "eth0", "z": "eth0"})):
        with pytest.raises(UsageError, match=f'networks.n.{key}: unknown host "z"; known: a, b'):
            read(hosts=TWO, networks={"n": {key: value}})
    outside = {"n": {"hosts": ["a", "b"], "near": ["c"], "link": "lossy"}}
    with pytest.raises(UsageError, match='unknown host of this network "c"; known: a, b'):
        read(hosts=THREE, networks=outside)


def test_overlapping_subnets_are_refused_with_both_networks() -> None:
    networks = {"one": {"subnet": "10.1.0.0/16"}, "two": {"subnet": "10.1.2.0/24"}}
    with pytest.raises(UsageError, match=r"two.subnet: found 10.1.2.0/24, which overlaps 10.1.0.0"):
        read(hosts=TWO, networks=networks)


def test_chosen_subnets_avoid_those_of_the_file_until_none_is_free() -> None:
    rig = read(hosts=TWO, networks={"auto": {}, "fixed": {"subnet": "10.77.0.0/18"}})
    assert rig.networks["auto"].subnet == "10.77.64.0/24"
    with pytest.raises(UsageError, match=r"networks.auto: no part of 10.77.0.0/16 is free"):
        read(hosts=TWO, networks={"auto": {}, "fixed": {"subnet": "10.77.0.0/16"}})
