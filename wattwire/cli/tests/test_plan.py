"""Tests of a plan's forecast, and of the confirmation of a long plan."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.rigs import links_of_rig, load_rig
from wattwire.cli import quantities
from wattwire.cli.main import main
from wattwire.cli.own_agent import agent_here
from wattwire.cli.planning import confirmation, printed_plan
from wattwire.cli.planning.percentiles_ahead import percentile_words
from wattwire.cli.planning.rates_ahead import link_cautions, rate_lines
from wattwire.design import expand, make_plan
from wattwire.model.cores import Machine
from wattwire.model.cores.descriptions import core_lines
from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study
from wattwire.model.warm_up import SETTLING, SETTLING_RUNS
from wattwire.rig.observed import ObservedRun, note_build, note_run
from wattwire.run.forecast import (
    START_S,
    expectations,
    forecast,
    meter_window,
    node_memory_bytes,
    reassembly_bound_s,
    run_seconds,
    unreached_rates,
    window_words,
)
from wattwire.run.resolve_cells import prepare


def study(duration_s=10.0, blocks=5, warm_up=None, **fixed):
    document = {
        "title": "T",
        "factors": {"payload_bytes": [64, 128]},
        "fixed": {"cell": "loopback/python", "pattern": "pingpong", "rate_hz": 100.0, **fixed},
        "plan": {
            "blocks": blocks, "duration_s": duration_s, "controls": False, **(warm_up or {}),
        },
    }  # fmt: skip
    return parse_study("t", document, "test")


def runs_of(one):
    return make_plan([t for t, because in expand(one) if because is None], one.plan)


def test_a_plan_of_twice_the_blocks_takes_twice_the_time_and_nearly_twice_the_disk():
    five, ten = (forecast(study(blocks=n), runs_of(study(blocks=n))) for n in (5, 10))
    assert ten.seconds == pytest.approx(2 * five.seconds)
    assert 1.0 < ten.disk_bytes / five.disk_bytes < 2.0
    assert five.run_seconds == pytest.approx(five.seconds / 10)


def test_a_run_lasts_its_window_its_baselines_its_drain_and_a_guess():
    one = study(duration_s=7.0)
    seconds = run_seconds(one, runs_of(one)[0].treatment)
    assert seconds == pytest.approx(7.0 + 2 * 1.0 + 0.1 + 1.5)
    assert "a window of 7 s" in forecast(one, runs_of(one)).basis


def test_the_loads_of_an_alignment_are_in_a_plans_time_and_named(capsys):
    one = study()
    without, with_loads = (forecast(one, runs_of(one), align=align) for align in (False, True))
    assert with_loads.seconds == pytest.approx(without.seconds + 2 * (0.5 + 63 * 2.0 + 10.0))
    assert with_loads.run_seconds == without.run_seconds
    assert printed_plan.alignment_lines(without) == []
    assert main(["plan", "kit-pacing", "--align"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "before the first run and after the last one, 4 min 33 s of this time" in told
    assert "Next: wattwire run kit-pacing --align" in told


def test_a_closed_loop_lasts_its_calls_and_says_so_instead_of_seconds():
    one = study(duration_s=7.0, loop="closed", count=2000)
    seconds = run_seconds(one, runs_of(one)[0].treatment)
    assert seconds == pytest.approx(1.0 + 2.0 + 2 * 1.0 + 0.1 + 1.5)
    basis = forecast(one, runs_of(one)).basis
    assert "a window of 2\u202f000 calls in sequence (2 s at 1 ms per call, a guess)," in basis
    assert "7 s" not in basis
    assert "a warm-up of 1\u202f000 calls (a guess, until settling runs determine it)" in basis


@pytest.mark.parametrize(("rate_hz", "is_too_much"), [(4.0, False), (5.0, True)])
def test_the_sum_of_flows_above_the_rate_of_a_link_is_a_caution(rate_hz, is_too_much):
    """Wi-Fi carries a third of 72.2 Mbit/s with its overhead; each of three flows fits alone."""
    rig = load_rig(Path(__file__).parents[3] / "rigs" / "three.toml", Catalog())
    document = {
        "title": "T", "factors": {"network": ["native", "wifi-home"]},
        "flow": [{"name": f"c{n}", "payload_bytes": 300_000, "rate_hz": rate_hz} for n in range(3)],
        "fixed": {"cell": "loopback/python", "placement": "apart"}, "plan": {"blocks": 1},
    }  # fmt: skip
    one = replace(parse_study("t", document, "test"), rig=rig)
    treatments = [run.treatment for run in runs_of(one)]
    cautions = link_cautions(rig, links_of_rig(rig, Catalog()), treatments)
    assert [text.startswith("network wifi-home: the flows c0 + c1 + c2") for text in cautions] == (
        [True] if is_too_much else []
    )


def test_settling_runs_and_the_warm_up_are_in_a_plans_time():
    kept = [study(loop="closed", warm_up={"warmup_calls": calls}) for calls in (0, 500, "auto")]
    none, some, found = (forecast(one, runs_of(one)) for one in kept)
    assert some.run_seconds == pytest.approx(none.run_seconds + 0.5)
    settling = [run for run in runs_of(kept[2]) if run.control == SETTLING]
    assert len(settling) == SETTLING_RUNS
    each = run_seconds(kept[2], settling[0].treatment, control=SETTLING)
    assert each == pytest.approx(8.0 + 2 * 1.0 + 0.1 + 1.5)
    runs = len(runs_of(kept[0]))
    assert found.seconds == pytest.approx(none.seconds + runs * 1.0 + SETTLING_RUNS * each)


def test_a_plan_says_what_comes_before_the_calls_that_count():
    def warm_up_text(loop="closed", **warm_up):
        one = study(loop=loop, warm_up=warm_up)
        return " ".join(printed_plan._warm_up_lines(one, [run.treatment for run in runs_of(one)]))

    assert "3 settling runs per cell (1 cell; 8\u202f000 calls or 10 s per run)" in warm_up_text()
    assert "500 calls of each client" in warm_up_text(warmup_calls=500)
    assert warm_up_text(warmup_calls=0).endswith("none")
    assert "first 0.5 s" in warm_up_text(warmup_s=0.5)
    assert warm_up_text(loop="open") == ""


def test_a_plan_of_both_loops_names_both_windows():
    document = {
        "factors": {"loop": ["open", "closed"]},
        "fixed": {"cell": "loopback/python", "pattern": "pingpong", "count": 50},
        "plan": {"duration_s": 7.0},
    }
    one = parse_study("t", document, "test")
    told = window_words(one, [run.treatment for run in runs_of(one)])
    assert told == "7 s or 50 calls in sequence (0.05 s at 1 ms per call, a guess)"


def test_more_messages_take_more_disk():
    slow, fast = study(rate_hz=1.0), study(rate_hz=10_000.0)
    more = forecast(fast, runs_of(fast)).disk_bytes - forecast(slow, runs_of(slow)).disk_bytes
    assert more > 10 * 100_000 * 2 * 10  # lower bound: runs × messages × sides × bytes


def test_the_nodes_memory_is_told_where_it_is_much_of_the_machines():
    many = study(loop="closed", count=10_000_000, warm_up={"warmup_calls": 0})
    needed = node_memory_bytes(many, runs_of(many))
    # Client and server, 40 bytes per record, plus 50 % for duplicates.
    assert needed == 2 * 40 * (15_000_000 + 1000)
    assert printed_plan.memory_lines(needed, 100 * needed) == []
    (told,) = printed_plan.memory_lines(needed, 4 * needed)
    assert told.startswith("memory: the nodes of a run reserve 1.2 GB") and "too much" not in told
    assert "too much" in printed_plan.memory_lines(needed, needed)[0]
    with_clients = study(
        loop="closed", count=10_000_000, clients=4, pattern="service", warm_up={"warmup_calls": 0}
    )
    assert node_memory_bytes(with_clients, runs_of(with_clients)) > 3.9 * needed


def quantity(**more):
    return {"name": "q", "counter": True, **more}


def test_a_counter_needs_a_hundred_of_its_steps_whatever_its_tier():
    manifest = {"tier": "second", "quantity": [quantity(step_ns=1_000_000)]}
    assert meter_window("m", manifest, 10.0).window_s == pytest.approx(0.1)


def test_a_gauge_needs_two_readings_at_its_tier():
    manifest = {"tier": "tick", "quantity": [quantity(counter=False)]}
    assert meter_window("m", manifest, 20.0).window_s == pytest.approx(0.1)
    manifest = {"tier": "second", "quantity": [quantity(counter=False)]}
    assert meter_window("m", manifest, 20.0).window_s == pytest.approx(2.0)


def test_the_slowest_quantity_decides_and_a_counter_without_a_known_step_says_nothing():
    slow, fast = quantity(step_ns=10_000_000), quantity(step_ns=1_000)
    assert meter_window("m", {"quantity": [fast, slow]}, 10.0).window_s == pytest.approx(1.0)
    assert meter_window("m", {"tier": "tick", "quantity": [quantity()]}, 10.0) is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def ask(monkeypatch, capsys, typed, terminal=True):
    """Request confirmation of a plan of several hours and answer it with `typed`."""
    one = study(duration_s=600.0, blocks=50)
    monkeypatch.setattr("sys.stdin", Terminal(typed) if terminal else io.StringIO(typed))
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    confirmation.confirm_long(
        one, runs_of(one), {"quick": 60.0, "endless": 1e9}, forecast(one, runs_of(one))
    )


def test_a_long_plan_is_asked_about_and_names_the_presets_that_are_shorter(monkeypatch, capsys):
    ask(monkeypatch, capsys, "y\n")
    told = capsys.readouterr().out
    assert "100 runs take about 16 h" in told
    assert "quick 1 min" in told and "endless" not in told
    assert "[y/N]" in told


@pytest.mark.parametrize("typed", ["\n", "n\n", "what\n"])
def test_anything_but_yes_runs_nothing(monkeypatch, capsys, typed):
    with pytest.raises(UsageError, match="nothing was run"):
        ask(monkeypatch, capsys, typed)


def test_without_a_terminal_a_long_plan_is_refused_and_yes_is_named(monkeypatch, capsys):
    with pytest.raises(UsageError, match=r"--preset: quick .* --yes"):
        ask(monkeypatch, capsys, "y\n", terminal=False)


def test_a_short_plan_is_not_asked_about(monkeypatch):
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("asked"))
    confirmation.confirm_long(study(), runs_of(study()), {}, forecast(study(), runs_of(study())))


def test_a_run_of_many_processes_is_asked_about_however_short(monkeypatch, capsys):
    one = study(pattern="service", clients=1000)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(UsageError, match=r"1\u202f001 processes\..* --yes"):
        confirmation.confirm_long(one, runs_of(one), {}, forecast(one, runs_of(one)))


def test_a_rate_that_earlier_runs_here_did_not_reach_is_named(empty_cache):
    one = of_cells("udp/python", pattern="topic", loop="open", rate_hz=100_000.0)
    prepared = prepare(one, Catalog(), None)
    assert unreached_rates(prepared.treatments, prepared.cells) == []
    note_run("udp/python", ObservedRun(2, 1.0, None, 41_000.0), {})
    (sentence,) = unreached_rates(prepared.treatments, prepared.cells)
    assert sentence.startswith("udp/python: rate_hz = 100\u202f000")
    assert "41\u202f000 Hz" in sentence


def test_a_thousand_clients_are_forecast_to_start_longer_than_two(empty_cache):
    note_run("loopback/python", ObservedRun(2, 0.4), {})
    one, many = (of_cells("loopback/python", pattern="service", clients=n) for n in (1, 1000))
    few_s, many_s = (max(e.start_s for e in expected_of(s).values()) for s in (one, many))
    assert few_s == 0.4 and many_s > 20


def test_the_wait_for_lost_fragments_is_in_the_plan_of_hosts_in_namespaces():
    document = {
        "factors": {"payload_bytes": [64, 100_000]},
        "fixed": {"cell": "loopback/python", "pattern": "topic"},
        "plan": {"blocks": 3, "controls": False},
        "rig": {
            "hosts": {"robot": {"kind": "netns"}, "edge": {"kind": "netns"}},
            "networks": {"native": {}},
            "placements": {"apart": {"sender": "robot", "receiver": "edge"}},
        },
    }
    apart = parse_study("t", document, "test")
    assert reassembly_bound_s(apart, runs_of(apart)) == 3 * 35.0
    together = parse_study("t", {k: v for k, v in document.items() if k != "rig"}, "test")
    assert reassembly_bound_s(together, runs_of(together)) == 0.0


def test_rates_are_stated_per_client_and_in_total():
    one = study(pattern="service", rate_hz=400.0, clients=8)
    assert rate_lines([run.treatment for run in runs_of(one)]) == [
        "rate: 400 Hz per client × 8 = 3\u202f200 Hz in total"
    ]
    topic = study(pattern="topic", rate_hz=400.0, clients=8)
    (line,) = rate_lines([run.treatment for run in runs_of(topic)])
    assert line == "rate: 400 Hz per publisher × 1 = 400 Hz in total"
    closed = study(pattern="service", loop="closed", clients=8)
    assert rate_lines([run.treatment for run in runs_of(closed)]) == []


def meter_lines(capsys, tmp_path, monkeypatch, here):
    meters = here and [{"name": name, "quantities": []} for name in sorted(here)]
    monkeypatch.setattr(printed_plan, "meters_here", lambda _agent: meters)
    (tmp_path / "s.toml").write_text(
        'title = "T"\n[fixed]\ncell = "loopback/python"\npattern = "topic"\n'
        '[meters]\nuse = ["fake", "proc_cpu", "proc_memory"]\n'
    )
    assert main(["plan", str(tmp_path / "s.toml")]) == 0
    told = capsys.readouterr().out.splitlines()
    return [line for line in told if any(m in line for m in ("proc_cpu", "proc_memory", "meters"))]


@pytest.mark.parametrize(("fixed", "words"), [("", "free"), ('cores = "same"\n', "same")])
def test_the_placement_of_the_nodes_on_this_machine_is_told(tmp_path, capsys, fixed, words):
    (tmp_path / "s.toml").write_text(
        f'title = "T"\n[fixed]\ncell = "loopback/python"\npattern = "topic"\n{fixed}'
    )
    assert main(["plan", str(tmp_path / "s.toml")]) == 0
    with agent_here() as agent:
        if agent is None:
            pytest.skip("no agent: the machine's cores are unknown")
        (line,) = core_lines([words], Machine.of(agent.cpus))
    assert line in " ".join(capsys.readouterr().out.split())


def test_windows_are_told_of_meters_that_can_read_here_and_the_others_named_in_one_line(
    tmp_path, capsys, monkeypatch
):
    window, absent = meter_lines(capsys, tmp_path, monkeypatch, {"fake", "proc_cpu"})
    assert window.split()[0] == "proc_cpu"
    assert absent == "  absent here (see wattwire doctor): proc_memory"


def test_without_an_agent_all_windows_are_told_and_that_nobody_knows_who_can_read(
    tmp_path, capsys, monkeypatch
):
    one, other, unknown = meter_lines(capsys, tmp_path, monkeypatch, None)
    assert (one.split()[0], other.split()[0]) == ("proc_cpu", "proc_memory")
    assert "the agent is missing" in unknown
    monkeypatch.undo()
    monkeypatch.setenv("WATTWIRE_AGENT", "/bin/false")  # exits before it sends its hello
    with agent_here() as agent:
        assert agent is None and printed_plan.meters_here(agent) is None


def test_the_plan_of_a_study_is_told_within_80_columns(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(
        'title = "A title that is somewhat long, as titles of studies tend to be in practice"\n'
        '[factors]\npayload_bytes = [64]\nlanguage = ["python"]\n'
        '[fixed]\nmiddleware = "loopback"\npattern = "topic"\n[plan]\nduration_s = 0.5\n'
    )
    assert main(["plan", str(tmp_path / "s.toml")]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert out.startswith("A title that is")
    assert "disk: about" in out and "are free here" in out
    assert "time: a run is a window of 0.5 s" in out
    assert "proc_cpu" in out and "(longer)" in out


def test_a_baseline_shorter_than_a_meter_outside_needs_is_told(tmp_path, capsys):
    study = (
        'title = "s"\n[factors]\nlanguage = ["python"]\n'
        '[fixed]\nmiddleware = "loopback"\npattern = "topic"\n[plan]\nduration_s = 30.0\n'
    )
    (tmp_path / "short.toml").write_text(study)
    (tmp_path / "long.toml").write_text(study + "baseline_s = 20.0\n")
    for name, is_short in (("short", True), ("long", False)):
        command = ["plan", str(tmp_path / f"{name}.toml"), "--meter", "watts_up=/dev/ttyUSB0"]
        assert main(command) == 0
        out = capsys.readouterr().out
        assert ("20 s (baseline: 1 s)" in out) == is_short


@pytest.mark.parametrize("word", ["5%", "0.05"])
def test_a_width_is_a_share_or_per_cent(word):
    assert quantities.share(word, "--width") == pytest.approx(0.05)


@pytest.mark.parametrize("word", ["5", "0", "-1%", "wide", "nan"])
def test_a_width_that_is_no_share_is_refused(word):
    with pytest.raises(UsageError, match="above 0 and below 1"):
        quantities.share(word, "--width")


def test_a_width_without_a_pilot_is_refused(capsys):
    assert main(["plan", "first-look", "--width", "5%"]) == 2
    assert "--pilot DIR" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_a_response_that_nothing_gives_is_refused_before_the_runs(verb, tmp_path, capsys):
    path = tmp_path / "study.toml"
    path.write_text(
        "[[question]]\nid = 'Q1'\nfactors = ['cell']\nresponses = ['cpu_us_per_massage']\n"
        "[factors]\ncell = ['loopback/python', 'loopback/cpp']\n[fixed]\npattern = 'pingpong'\n"
    )
    assert main([verb, str(path)]) == 2
    assert (
        'question Q1: responses: unknown response "cpu_us_per_massage". '
        'Did you mean "cpu_us_per_message"?'
    ) in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "campaigns").exists()


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))


def expected_of(one, cores=2):
    prepared = prepare(one, Catalog(), None)
    return expectations(prepared.treatments, prepared.cells, cores)


def of_cells(*cells, **fixed):
    document = {
        "factors": {"cell": list(cells)},
        "fixed": {"pattern": "service", "loop": "closed", "count": 200, **fixed},
    }
    return parse_study("t", document, "test")


def test_eight_clients_on_a_runtime_that_starts_slowly_are_not_forecast_as_a_native_program(
    empty_cache,
):
    one = of_cells("rest/java", "rest/go", clients=8)
    expected = expected_of(one)
    by_cell = {run.treatment["cell"]: expected[run.treatment.key] for run in runs_of(one)}
    slow, quick = (by_cell[cell].start_s for cell in ("rest/java", "rest/go"))
    assert slow > START_S + 5.0 > quick


def test_earlier_runs_of_a_cell_replace_the_guess(empty_cache):
    one = of_cells("loopback/python", "loopback/cpp")
    note_run("loopback/python", ObservedRun(2, 9.5, 0.05), {})
    prepared = prepare(one, Catalog(), None)
    expected = expectations(prepared.treatments, prepared.cells, 2)
    seen, guessed = (expected[t.key] for t in prepared.treatments)
    assert (seen.start_s, seen.call_s, seen.observed) == (9.5, 0.05, (True, True))
    assert guessed.observed == (False, False)
    assert run_seconds(one, prepared.treatments[0], seen) == pytest.approx(2.1 + 10.0 + 50.0 + 9.5)
    basis = forecast(one, runs_of(one), expected).basis
    assert "(0.2 to 10 s at 1 to 50 ms per call, partly as in earlier runs here" in basis
    assert "to 9.5 s for starting and ending (partly as in earlier runs here" in basis


def test_what_is_not_built_yet_is_counted_before_the_runs(empty_cache, tmp_path, capsys):
    note_build("loopback/cpp", 125.0)
    (tmp_path / "s.toml").write_text(
        'title = "T"\n[factors]\ncell = ["loopback/cpp", "udp/cpp"]\n[fixed]\npattern = "topic"\n'
    )
    assert main(["plan", str(tmp_path / "s.toml")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "after 2 builds in about 2 min 17 s." in told
    assert (
        "2 builds before the first run, about 2 min 17 s (estimate): loopback/cpp 2 min 05 s, "
        "udp/cpp 12 s" in told
    )


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"loop": "closed", "count": 200, "clients": 2},
         "percentiles: a run has 400 latencies, enough for p50, p90; p99 needs 1\u202f000, "
         "p99.9 needs 10\u202f000 independent latencies (p99: --set count=500)"),
        ({"rate_hz": 100.0, "clients": 1},
         "percentiles: a run has 1\u202f000 latencies, enough for p50, p90, p99; "
         "p99.9 needs 10\u202f000 independent latencies (p99.9: --set plan.duration_s=100)"),
        ({"rate_hz": 1000.0, "clients": 1},
         "percentiles: a run has 10\u202f000 latencies, enough for p50, p90, p99, p99.9"),
        ({"rate_hz": 0.5, "clients": 1}, "percentiles: a run has 5 latencies, too few for "
         "any percentile; p50 needs 6, p90 needs 100, p99 needs 1\u202f000, "
         "p99.9 needs 10\u202f000 independent latencies (p50: --set plan.duration_s=12)"),
    ],
)  # fmt: skip
def test_a_plan_tells_which_percentiles_its_windows_carry(fixed, words):
    one = study(pattern="service", **fixed)
    if fixed.get("loop") == "closed":  # calls of the warm-up yield no latencies
        one = replace(one, plan=replace(one.plan, warmup_calls=5000))
    assert percentile_words(one, [run.treatment for run in runs_of(one)]) == words
