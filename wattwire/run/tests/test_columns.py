"""Test the columns that the table of runs adds: energy above pooled baselines and above idle."""

from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.run.results import cores, evidence
from wattwire.run.results.costs import sum_of_hosts
from wattwire.run.results.evidence import machine_figures
from wattwire.run.results.resources import (
    OF_LIFE,
    Readings,
    attributed_energy,
    busy_share_energy,
    life_costs,
)
from wattwire.run.results.schema import COLUMNS, of_one_source, pool_baselines

S = 10**9


def test_shares_of_all_cores_have_no_unit_and_amounts_of_cores_are_cores():
    """The host stole one of four cores, and the agent used another core completely."""
    rows = [
        {"meter": "m", "quantity": quantity, "subject": subject, "scope": scope, "kind": "measured",
         "t_ns": t_ns, "value": float(value)}
        for quantity, scope, subject in (
            ("steal_time", "machine", "machine"), ("busy_time", "machine", "machine"),
            ("cpu_time", "harness", "agent"),
        )
        for t_ns, value in ((0, 0), (S, S))
    ]  # fmt: skip
    record = SimpleNamespace(
        window={"start_ns": 0, "end_ns": S}, cpus=4, stop_ns=S, clocks={},
        processes=SimpleNamespace(states={}),
    )  # fmt: skip
    figures = machine_figures(Readings(pl.DataFrame(rows)), record)
    assert (figures["steal_share"], figures["harness_cpu_share"]) == (0.25, 1.0)
    units = {name: metric.unit for name, metric in COLUMNS.items()}
    assert units["steal_share"] == units["other_load_share"] == ""
    assert units["harness_cpu_share"] == units["cpu_share"] == units["cpu_silent_share"] == "cores"
    words = {name: metric.summary for name, metric in COLUMNS.items()}
    assert all(
        words[n].startswith("share of all cores") for n in ("steal_share", "other_load_share")
    )
    assert all(words[n].startswith("cores ") for n in ("harness_cpu_share", "cpu_silent_share"))


def row(block, machine_w, silent_w, window_w, run_w, source="fake/energy"):
    return {
        "block": block, "energy_source": source, "cost_window_s": 10.0, "run_s": 20.0,
        "power_machine_w": machine_w, "power_silent_w": silent_w, "power_window_w": window_w,
        "power_run_w": run_w, "verdict": "valid",
    }  # fmt: skip


def test_one_idle_power_is_subtracted_from_the_whole_run_and_ours_stand_beside():
    rows = [row(1, 2.0, 3.0, 5.0, 4.0), row(2, 4.0, 4.5, 6.0, 5.0)]
    first, second = pool_baselines(rows, {})
    # The campaign has one idle power, 3 W, independent of each block's idle power.
    assert first["power_idle_w"] == second["power_idle_w"] == 3.0
    assert first["energy_idle_subtracted_j"] == pytest.approx((4.0 - 3.0) * 20)
    assert second["energy_idle_subtracted_j"] == pytest.approx((5.0 - 3.0) * 20)
    # The default energies use the block's baseline, and distinguish silence from messages.
    assert first["energy_standing_j"] == pytest.approx((3.0 - 2.0) * 10)
    assert second["energy_message_j"] == pytest.approx((6.0 - 4.5) * 10)
    assert second["energy_total_j"] == pytest.approx((6.0 - 4.0) * 10)


def test_idle_power_of_another_source_or_none_gives_no_energy():
    other = row(1, 30.0, 31.0, 33.0, 32.0, source="wall/power")
    blind = row(1, None, None, None, None, source=None)
    whole = row(1, 2.0, 3.0, 5.0, None)
    pooled = pool_baselines([row(1, 2.0, 3.0, 5.0, 4.0), other, blind, whole], {})
    assert [one.get("power_idle_w") for one in pooled] == [2.0, 30.0, None, None]
    assert "energy_idle_subtracted_j" not in pooled[2]
    assert "energy_idle_subtracted_j" not in pooled[3]


def test_a_campaign_has_powers_of_one_source_and_none_is_averaged_with_another():
    socket = row(1, 40.0, 41.0, 44.0, 43.0, source="wall/power") | {"energy_source_second": "p/w"}
    package = row(1, 12.0, 13.0, 15.0, 14.0, source="p/w") | {"energy_j.client.1": 2.0, "cpu": 3}
    invalid = package | {"verdict": "invalid"}
    rows = of_one_source([socket, package, socket, invalid, invalid])
    assert [one["power_window_w"] for one in rows] == [44.0, None, 44.0, None, None]
    assert (rows[1]["energy_source"], rows[1]["energy_j.client.1"], rows[1]["cpu"]) == (
        "p/w", None, 3,
    )  # fmt: skip
    # Of two equally frequent sources, the preferred one remains.
    assert [one["power_window_w"] for one in of_one_source([package, socket])] == [None, 44.0]
    blind = row(1, None, None, None, None, source=None)
    assert of_one_source([package, blind]) == [package, blind]


@pytest.mark.parametrize("factor", ["cpu_latency_us", "placement", "network"])
def test_baselines_of_other_conditions_are_not_pooled(factor):
    # Each condition has a standing energy of 1 J: 0.1 W above 5 W or above 25 W, for 10 s.
    levels = {"deep": {factor: "a"}, "shallow": {factor: "b"}}
    rows = [
        row(1, idle_w, idle_w + 0.1, idle_w + 1.0, idle_w + 0.5) | {"treatment": key}
        for key, idle_w in (("deep", 5.0), ("shallow", 25.0), ("deep", 5.0), ("shallow", 25.0))
    ]
    pooled = pool_baselines(rows, levels)
    assert [one["energy_standing_j"] for one in pooled] == [pytest.approx(1.0)] * 4
    assert [one["power_idle_w"] for one in pooled] == [5.0, 25.0, 5.0, 25.0]
    assert [one["energy_idle_subtracted_j"] for one in pooled] == [pytest.approx(10.0)] * 4


def test_the_baseline_of_an_invalid_attempt_is_in_no_pool():
    good, disturbed = row(1, 2.0, 3.0, 5.0, 4.0), row(1, 9.0, 9.5, 11.0, 10.0)
    rows = [good, disturbed | {"verdict": "invalid"}, row(1, 4.0, 5.0, 7.0, 6.0)]
    pooled = pool_baselines(rows, {})
    assert pooled[0]["energy_standing_j"] == pytest.approx((3.0 - 3.0) * 10)
    assert pooled[0]["power_idle_w"] == 3.0
    alone = pool_baselines([disturbed | {"verdict": "invalid"}, row(2, 2.0, 3.0, 5.0, 4.0)], {})
    assert alone[0]["energy_standing_j"] == pytest.approx((9.5 - 9.0) * 10)
    assert alone[1]["power_idle_w"] == 2.0


def test_what_a_process_leaves_behind_becomes_columns_of_its_role():
    quantities = {"max_rss": 3_072_000.0, "minor_faults": 77.0, "voluntary_switches": 12.0}
    readings = Readings(
        pl.DataFrame(
            [
                {"meter": "fake", "quantity": name, "subject": "client-0", "scope": "process",
                 "kind": "measured", "t_ns": S, "value": value}
                for name, value in quantities.items()
            ]
        )
    )  # fmt: skip
    found = life_costs(readings, ["server-0", "client-0"])
    assert found["memory_max_kib.client.0"] == 3000.0
    assert found["faults_minor.client.0"] == 77.0
    assert found["switches_voluntary.client.0"] == 12.0
    assert found["switches_voluntary.server.0"] is None  # an unread value is not zero
    assert readings.end_ns == S


@pytest.mark.parametrize(("name", "quantity", "_factor"), [*OF_LIFE, *cores.COUNTS])
def test_the_registry_names_the_quantity_that_a_cost_is_computed_from(name, quantity, _factor):
    assert COLUMNS[name].needs == quantity


def test_a_second_source_is_summed_only_over_all_machines_of_the_first():
    power = {"energy_source": "a/w", "power_window_w": 5.0}
    second = {"energy_source_second": "b/w", "power_window_second_w": 6.0}
    both = sum_of_hosts({"edge": power | second, "robot": power | second, "same": {"cpu_s": 1.0}})
    assert (both["power_window_second_w"], both["energy_source_second"]) == (12.0, "b/w")
    one = sum_of_hosts({"edge": power | second, "robot": power})
    assert one["power_window_w"] == 10.0 and not any("second" in name for name in one)


def test_costs_of_hosts_add_up_and_a_run_is_as_long_as_on_its_last_host():
    by_host = {
        "here": {"run_s": 2.0, "power_run_w": 1.0, "cpu_share.server.0": 0.5},
        "edge": {"run_s": 3.0, "power_run_w": 4.0},
    }
    assert sum_of_hosts(by_host) == {
        "run_s": 3.0, "power_run_w": 5.0, "cpu_share.server.0": 0.5,
        "run_s.on.here": 2.0, "power_run_w.on.here": 1.0,
        "run_s.on.edge": 3.0, "power_run_w.on.edge": 4.0,
    }  # fmt: skip


def test_drops_of_hosts_add_up_and_of_steps_the_largest_counts(monkeypatch):
    monkeypatch.setattr(evidence, "machine_figures", lambda figures, _: figures)
    here = {"datagrams_dropped": 2.0, "clock_step_ms": -8.0, "temperature_celsius": None}
    edge = {"datagrams_dropped": 3.0, "clock_step_ms": 5.0, "temperature_celsius": None}
    record = SimpleNamespace(name="here", hosts={"here": None, "edge": None}, others=["edge"])
    figures = evidence.figures_of_hosts({"here": here, "edge": edge}, record)
    assert {name: figures[name] for name in here} == {
        "datagrams_dropped": 5.0, "clock_step_ms": -8.0, "temperature_celsius": None,
    }  # fmt: skip
    assert figures["clock_step_ms.on.edge"] == 5.0


def reading(quantity, scope, subject, ends):
    """Return the rows of a counter at 0, 1 and 2 s."""
    return [
        {"meter": "m", "quantity": quantity, "subject": subject, "scope": scope,
         "kind": "measured", "t_ns": t_ns, "value": float(value)}
        for t_ns, value in zip((0, S, 2 * S), ends, strict=True)
    ]  # fmt: skip


def test_a_share_of_busy_time_charges_the_idle_machine_to_what_runs():
    """A node that used a tenth of a core is charged with half of the 30 J of an idle machine."""
    rows = [
        *reading("busy_time", "machine", "machine", (0, 0.1 * S, 0.3 * S)),
        *reading("cpu_time", "process", "client-0", (0, 0, 0.1 * S)),
    ]
    readings, window = Readings(pl.DataFrame(rows)), (S, 2 * S)
    energies = busy_share_energy(readings, ["client-0", "absent-0"], window, readings, window, 30.0)
    assert energies == {
        "energy_busy_share_j.client.0": pytest.approx(15.0), "energy_busy_share_j.absent.0": None,
    }  # fmt: skip
    assert busy_share_energy(readings, ["client-0"], window, readings, window, None) == {}


def test_processes_have_no_more_than_the_dynamic_energy_of_their_machine():
    # Both processes used 0.6 s each, but the machine's counter of busy time grew by 1.0 s only.
    rows = [
        *reading("busy_time", "machine", "machine", (0, 0, S)),
        *reading("cpu_time", "process", "client-0", (0, 0, 0.6 * S)),
        *reading("cpu_time", "process", "server-0", (0, 0, 0.6 * S)),
    ]
    readings, spans = Readings(pl.DataFrame(rows)), ((S, 2 * S), (0, S))
    names = ["client-0", "server-0"]
    energies = attributed_energy(readings, names, spans, readings, spans, 12.0)
    assert energies == {f"energy_j.{name.replace('-', '.')}": pytest.approx(6.0) for name in names}
