"""Test the levels of `cores` and the CPUs that each gives to the processes of a run."""

import pytest

from wattwire.model.cores import CoresGapError, Cpu, Machine, assign, checked, listed_cpus, nearness
from wattwire.model.cores.descriptions import core_lines, machine_words
from wattwire.model.errors import UsageError

TWO = Machine(tuple(Cpu(n, n, 0, 0) for n in range(2)), frozenset({0, 1}))
# Two packages with two cores of two hardware threads each; the siblings are 0 and 4, 1 and 5, ….
EIGHT = Machine(
    tuple(Cpu(n, n % 4, n % 4 // 2, n % 4 // 2 * 2) for n in range(8)), frozenset(range(8))
)
NODES = {"ping-0": "ping", "pong-0": "pong"}


@pytest.mark.parametrize(
    ("level", "normal"),
    [
        ("same", "same"),
        ("server=0 *=1-3", "server=0 *=1,2,3"),
        ({"server": [0], "*": [3, 1, 1]}, "server=0 *=1,3"),
    ],
)
def test_a_level_has_one_normal_form(level, normal):
    assert checked(level, "here") == normal
    assert checked(normal, "here") == normal


@pytest.mark.parametrize(
    "level",
    ["", "sam", "server", "server=", "server=a", "server=3-1", "server=0 server=1", "server=5000",
     {}, {"server": []}, {"server": [-1]}, {"server": [True]}, {"server": "0"}, {"a b": [0]}, 3,
     ["same"]],
)  # fmt: skip
def test_another_level_is_refused_with_the_place_and_the_value(level):
    with pytest.raises(UsageError, match="^here: .*allowed: "):
        checked(level, "here")


def test_free_leaves_all_to_the_scheduler():
    assert assign("free", NODES, {}, EIGHT).cpus == {}


def test_same_is_one_cpu_for_all_and_leaves_its_sibling_idle():
    assigned = assign("same", NODES, {"broker": "broker"}, EIGHT)
    assert set(assigned.cpus) == {"ping-0", "pong-0", "broker"}
    (cpu,) = {cpus for cpus in assigned.cpus.values()}
    assert len(cpu) == 1
    assert cpu[0] in assigned.kept_free and len(assigned.kept_free) == 2


def test_apart_is_a_core_for_each_node_and_service_where_there_are_enough():
    assigned = assign("apart", NODES, {"broker": "broker"}, EIGHT)
    cores = [cpu % 4 for cpus in assigned.cpus.values() for cpu in cpus]
    assert len(cores) == len(set(cores)) == 3
    assert assigned.remarks == ()
    # The nodes are neighbours under one cache, and the last core is used first.
    near = nearness(EIGHT.cpus)
    assert near[assigned.cpus["ping-0"][0], assigned.cpus["pong-0"][0]] == "shared_cache"


def test_apart_names_what_has_no_core_of_its_own():
    assigned = assign("apart", NODES, {"broker": "broker"}, TWO)
    assert {*assigned.cpus} == {*NODES}
    assert assigned.kept_free == ()
    assert "broker" in assigned.remarks[0] and "agent" in assigned.remarks[1]


def test_apart_uses_siblings_when_the_cores_are_too_few_and_says_so():
    nodes = {f"subscriber-{n}": "subscriber" for n in range(6)}
    assigned = assign("apart", nodes, {}, EIGHT)
    assert len({cpus for cpus in assigned.cpus.values()}) == 6
    assert "hardware threads" in assigned.remarks[0]


def test_more_nodes_than_cpus_are_refused_with_both_numbers():
    nodes = {f"subscriber-{n}": "subscriber" for n in range(3)}
    with pytest.raises(CoresGapError, match="3 nodes, and 2 CPUs"):
        assign("apart", nodes, {}, TWO)


def test_one_core_can_be_shared_but_not_be_apart():
    one = Machine((Cpu(0, 0, 0, 0),), frozenset({0}))
    assigned = assign("same", NODES, {}, one)
    assert assigned.kept_free == () and assigned.remarks
    with pytest.raises(CoresGapError, match="1 CPU "):
        assign("apart", NODES, {}, one)


def test_lists_name_processes_roles_and_all_others():
    assigned = assign("pong=0 ping-0=1", NODES, {}, TWO)
    assert assigned.cpus == {"ping-0": (1,), "pong-0": (0,)}
    assert assign("pong=0 *=1", NODES, {"broker": "broker"}, TWO).cpus["broker"] == (1,)
    assert assign("pong=0", NODES, {}, TWO).cpus == {"pong-0": (0,)}
    assert listed_cpus("pong=0 *=1,2") == {"pong": (0,), "*": (1, 2)}


@pytest.mark.parametrize(
    ("level", "words"),
    [("server=0", "server.*ping"), ("*=7", "CPU 7; online are 0 and 1"), ("*=0", "taskset")],
)
def test_a_list_that_does_not_fit_is_refused_with_what_does(level, words):
    restricted = Machine(TWO.cpus, frozenset({1}))
    with pytest.raises(CoresGapError, match=words):
        assign(level, NODES, {}, restricted)


def test_an_unknown_topology_makes_each_cpu_a_core():
    machine = Machine(tuple(Cpu(n) for n in range(3)), frozenset({0, 1, 2}))
    assert machine.cores == [(0,), (1,), (2,)]
    assert nearness(machine.cpus)[0, 1] == "further"


def test_each_level_is_described_for_a_machine():
    free, same, apart = core_lines(["free", "same", "apart"], EIGHT)
    assert "among CPU 0-7" in free
    assert "all nodes on CPU 3" in same
    assert "such as 3 and 2" in apart
    one = Machine((Cpu(0, 0, 0, 0), Cpu(1, 1, 0, 0)), frozenset({0}))
    _, same, apart = core_lines(["free", "same", "apart"], one)
    assert "the machine has one core" in same
    assert "not possible here" in apart and "1 CPU can be used" in apart
    assert "taskset or a cpuset excludes CPU 1" in machine_words(one)
    assert "hardware threads of a core: 0,4; 1,5; 2,6; 3,7" in machine_words(EIGHT)
