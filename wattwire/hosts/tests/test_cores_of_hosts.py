"""Test the CPUs of a run's processes on the hosts of a rig, which may have other topologies."""

from types import SimpleNamespace

import pytest

from wattwire.hosts.cores import RunCores, core_gap
from wattwire.model.cores import CoresGapError
from wattwire.model.deployment import Deployment, Flow, Node, Process
from wattwire.model.treatment import Treatment


def host(boot, cpus, allowed=None):
    """Return a host with this number of CPUs, of which the agent may use `allowed`."""
    reply = {
        "cpus": [{"cpu": n, "core": n, "package": 0, "cache": 0} for n in range(cpus)],
        "allowed": allowed if allowed is not None else [*range(cpus)],
    }
    return SimpleNamespace(agent=SimpleNamespace(hello={"boot_id": boot}, cpus=reply), here=False)


def deployment(*hosts):
    """Return a publisher on the first of these hosts, and a subscriber on each other one."""
    names = ["publisher-0", *(f"subscriber-{n}" for n in range(len(hosts) - 1))]
    nodes = tuple(
        Node(n, name, name.partition("-")[0], max(0, n - 1), n, "c") for n, name in enumerate(names)
    )
    flow = Flow("publisher-0", 0, tuple(range(1, len(hosts))))
    processes = tuple(Process(name, "node", at) for name, at in zip(names, hosts, strict=True))
    return Deployment(processes, nodes, (flow,), tuple(dict.fromkeys(hosts)))


def treatment(cores):
    return Treatment.of({"cores": cores}, {})


def test_each_machine_has_its_own_assignment():
    rig = {"robot": host("r", 2), "edge": host("e", 8, [4, 5])}
    found = RunCores(rig, deployment("robot", "edge", "edge"), treatment("apart"))
    assert found.cpus_of("publisher-0") == [1]
    assert {*found.cpus_of("subscriber-0"), *found.cpus_of("subscriber-1")} == {4, 5}


def test_a_machine_with_too_few_cores_is_named_with_the_reason():
    rig = {"robot": host("r", 1), "edge": host("e", 8)}
    two_on_one = deployment("edge", "robot", "robot")
    with pytest.raises(CoresGapError, match="^host robot: .*2 nodes, and 1 CPU can be used"):
        RunCores(rig, two_on_one, treatment("apart"))
    assert "host robot" in (core_gap(rig, two_on_one, treatment("apart")) or "")
    assert core_gap(rig, two_on_one, treatment("same")) is None
    assert core_gap(rig, deployment("edge", "robot"), treatment("apart")) is None


def test_a_list_that_only_one_of_the_machines_has_names_the_other():
    rig = {"robot": host("r", 2), "edge": host("e", 8)}
    reason = core_gap(rig, deployment("robot", "edge"), treatment("*=6"))
    assert reason is not None and "host robot" in reason and "online are 0 and 1" in reason


def test_hosts_of_one_machine_share_its_cores():
    one = host("x", 2)
    rig = {"robot": one, "edge": one}
    found = RunCores(rig, deployment("robot", "edge"), treatment("apart"))
    assert len(found.machines) == 1
    assert found.cpus_of("publisher-0") != found.cpus_of("subscriber-0")
