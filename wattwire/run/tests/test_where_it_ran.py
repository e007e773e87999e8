"""Test where processes ran: nearness of two nodes from planted readings of their threads."""

from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.hosts.cores import MachineCores
from wattwire.model.cores import Cpu, Machine, assign
from wattwire.model.deployment import Deployment, Flow, Node, Process
from wattwire.run.results.cores import where_it_ran
from wattwire.run.results.resources import Readings

TICK_NS = 100_000_000
# CPU 0 and 2 are hardware threads of one core, 1 shares their cache, and 3 shares nothing.
CPUS = (Cpu(0, 0, 0, 0), Cpu(1, 1, 0, 0), Cpu(2, 0, 0, 0), Cpu(3, 0, 1, 3))
MACHINE = Machine(CPUS, frozenset(range(4)))
PROCESSES = (Process("ping-0", "node", "local"), Process("pong-0", "node", "local"))
NODES = (Node(0, "ping-0", "ping", 0, 0, "c"), Node(1, "pong-0", "pong", 0, 1, "c"))
DEPLOYMENT = Deployment(PROCESSES, NODES, (Flow("ping-0", 0, (1,), (), "round_trip"),), ("local",))


def readings(ran):
    """Return readings from process → list of CPU → run time (ns), one per tick after 0 ns."""
    rows = []
    for process, ticks in ran.items():
        sums = dict.fromkeys((cpu for tick in ticks for cpu in tick), 0)
        for number, tick in enumerate(ticks, 1):
            for cpu, ns in tick.items():
                sums[cpu] += ns
            rows += [(f"{process}@cpu{cpu}", number * TICK_NS, ns) for cpu, ns in sums.items()]
    frame = pl.DataFrame(rows, schema=("subject", "t_ns", "value"), orient="row")
    constants = {"quantity": "run_time_on", "scope": "process", "kind": "measured", "meter": "m"}
    columns = [pl.lit(value).alias(name) for name, value in constants.items()]
    return Readings(frame.with_columns(*columns, pl.col("value").cast(pl.Float64)))


def results(ran, level="free", ticks=4, sampled=True):
    roles = {"ping-0": "ping", "pong-0": "pong"}
    host = SimpleNamespace(
        name="local", offset_ns=0, window={"cost_begin_ns": 0, "end_ns": ticks * TICK_NS}
    )
    record = SimpleNamespace(
        **vars(host), nodes=NODES, node_processes=[*roles], services={}, deployment=DEPLOYMENT,
        sampling={"ticks": ticks if sampled else 0}, cores_level=level,
        host_of=lambda process: host,
        cores=[MachineCores(MACHINE, assign(level, roles, {}, MACHINE), ("local",))],
    )  # fmt: skip
    return where_it_ran(record, {"local": readings(ran)}, 10)


def test_nearness_is_the_share_of_intervals_in_which_both_ran():
    ping = [{0: 100}, {0: 100}, {0: 100}, {0: 100}]
    pong = [{0: 50}, {1: 50}, {2: 50}, {3: 50}]
    row, document, reasons = results({"ping-0": ping, "pong-0": pong})
    shares = [row[f"ran_on_{name}"] for name in ("same_cpu", "siblings", "shared_cache", "further")]
    assert shares == pytest.approx([0.25] * 4)
    assert document["processes"]["pong-0"] == {"0": 50, "1": 50, "2": 50, "3": 50}
    assert reasons == []


def test_threads_on_several_cpus_count_by_their_run_time_and_idle_ones_not():
    ping = [{0: 300, 1: 100}] * 4
    pong = [{0: 10}, {}, {}, {0: 10}]  # it is idle in two intervals
    row, document, _ = results({"ping-0": ping, "pong-0": pong})
    assert row["ran_on_same_cpu"] == pytest.approx(0.75)
    assert row["ran_on_shared_cache"] == pytest.approx(0.25)
    assert document["pairs"][0]["intervals"] == 2


def test_a_process_on_another_cpu_than_asked_is_a_reason_against_the_run():
    ping, pong = [{0: 100}] * 4, [{1: 99}, {1: 99}, {1: 99}, {2: 3}]
    _, _, reasons = results({"ping-0": ping, "pong-0": pong}, "ping=0 pong=1")
    assert reasons == []  # 1 % may be a reading's error
    pong = [{1: 50}, {2: 50}, {2: 50}, {2: 50}]
    _, _, reasons = results({"ping-0": ping, "pong-0": pong}, "ping=0 pong=1")
    (reason,) = reasons
    assert reason.code == "cores" and "pong-0 ran 75% of its time on CPU 2" in reason.detail


def test_readings_at_marks_alone_show_no_nearness():
    ran = {"ping-0": [{0: 100}] * 4, "pong-0": [{0: 100}] * 4}
    row, document, _ = results(ran, sampled=False)
    assert row["ran_on_same_cpu"] is None
    assert document["pairs"] == []
