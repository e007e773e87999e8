"""The range of discovery of a ROS 2 cell, and its profile for the interface of a host."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT.parents[1] / "languages" / "python" / "kit"
NAMES = "{http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles}"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(KIT))
    monkeypatch.setenv("WATTWIRE_ROS2_PROFILES", str(ROOT / "environment" / "profiles"))
    spec = importlib.util.spec_from_file_location("ros2_network", ROOT / "python" / "network.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kit(address: str, discovery: str = "", transports: str = "default") -> SimpleNamespace:
    settings = {"discovery": discovery, "transports": transports, "rmw_profile": ""}
    spec = {"host.address": address, "host.interface": "lan"}
    return SimpleNamespace(spec=spec, setting=settings.__getitem__)


@pytest.mark.parametrize(
    ("address", "discovery", "expected"),
    [
        ("127.0.0.1", "", "localhost"),
        ("10.77.0.2", "", "interface"),
        ("10.77.0.2", "subnet", "subnet"),
        ("10.77.0.2", "localhost", "localhost"),
    ],
)
def test_nodes_on_several_hosts_discover_each_other_on_the_interface_of_the_run(
    network: ModuleType, address: str, discovery: str, expected: str
) -> None:
    assert network.discovery_range(kit(address, discovery)) == expected


@pytest.mark.parametrize(("transports", "also"), [("default", ["127.0.0.1"]), ("udp", [])])
@pytest.mark.parametrize(
    ("address", "allowed"), [("10.77.0.2", "10.77.0.2"), ("127.0.0.2", "127.0.0.1")]
)
def test_the_profile_allows_only_the_address_of_the_host(
    network: ModuleType,
    tmp_path: Path,
    transports: str,
    also: list[str],
    address: str,
    allowed: str,
) -> None:
    profile = network.fast_dds_profile(kit(address, transports=transports), tmp_path)
    assert profile.parent == tmp_path
    root = ET.parse(profile).getroot()
    assert [node.text for node in root.iter(f"{NAMES}address")] == [allowed, *also]
    assert len([*root.iter(f"{NAMES}transport_descriptor")]) == 1 + len(also)


@pytest.mark.parametrize(
    ("rmw", "expected"),
    [
        ("rmw_fastrtps_cpp", "interface"),
        ("rmw_cyclonedds_cpp", "interface"),
        ("rmw_zenoh_cpp", "subnet"),
    ],
)
def test_an_rmw_without_a_limit_to_the_interface_uses_all_and_says_so(
    network: ModuleType, monkeypatch: pytest.MonkeyPatch, rmw: str, expected: str
) -> None:
    monkeypatch.setattr(network.os, "listdir", lambda _: [])  # bind no socket of the tests
    assert network.limit_to_interface(kit("10.77.0.2"), rmw) == expected
    assert network.limit_to_interface(kit("127.0.0.1"), rmw) == "localhost"


def test_the_configuration_of_cyclone_dds_names_the_interface_alone(network: ModuleType) -> None:
    root = ET.fromstring(network.cyclone_dds_configuration(kit("10.77.0.2")))
    assert [node.get("name") for node in root.iter("NetworkInterface")] == ["lan"]
