"""Test latencies between hosts with different clocks: refused runs, bands and corrections."""

import json
from dataclasses import replace

import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.latency.clock_terms import ClockDifference, Clocks, HostClock
from wattwire.analysis.topics.latency.numbers import latency
from wattwire.model.hosts.clocks import ClockRelation, Knot
from wattwire.report.tests.synthetic import SLOW, Shape, write_campaign
from wattwire.store import Campaign

NEAR = ClockRelation("near")
QUESTION = {
    "id": "Q1", "text": "?", "factors": ["language"],
    "responses": ["latency_p50_us", "latency_p90_us", "delay_variation_p50_us"],
}  # fmt: skip


def evidence_with(folder, band_us, margin=0.05, relations=None):
    """Return a campaign of topics; `band_us` is language → band of its runs."""
    shape = Shape(blocks=4, patterns=("topic",), clients=(1,), intervals_s=(0.05,))
    answers = {"baseline": {"language": SLOW}, **({"margin": margin} if margin else {})}
    shape.study = {"question": [QUESTION], "answers": answers}
    path = write_campaign(folder / "campaign", shape)
    for run in sorted((path / "runs").iterdir()):
        row = json.loads((run / "summary.json").read_text())
        row["clock_band_us"] = band_us.get(row["factor.language"], 0.0)
        row["delay_variation_p50_us"] = row["latency_p50_us"] / 2
        (run / "summary.json").write_text(json.dumps(row))
        document = json.loads((run / "run.json").read_text())
        stored = {
            name: {"clock": relation.to_json()} for name, relation in (relations or {}).items()
        }
        (run / "run.json").write_text(
            json.dumps({**document, **({"hosts": stored} if stored else {})})
        )
    return gather(Campaign(path))


def results(evidence):
    return {item.response.column: item.result for item in answer_all(evidence).items}


def test_a_band_above_the_margin_leaves_latency_without_an_answer(tmp_path):
    evidence = evidence_with(tmp_path, {SLOW: 60.0})
    answers = results(evidence)
    for name in ("latency_p50_us", "latency_p90_us"):
        assert "± 60.0 µs" in str(answers[name]) and "more than 5.0 %" in str(answers[name])
    assert answers["delay_variation_p50_us"].interval.estimate == pytest.approx(0.45, rel=0.1)
    result = latency(evidence, all_series(evidence))
    assert (result.refused.runs, result.refused.treatments) == (4, ("Python",))
    assert (result.runs, result.runs_shown) == (8, 4)


@pytest.mark.parametrize(
    ("band_us", "margin", "is_refused"),
    [(5.0, 0.05, False), (300.0, None, False), (900.0, None, True)],
)
def test_the_margin_decides_and_without_one_the_median_does(tmp_path, band_us, margin, is_refused):
    result = results(evidence_with(tmp_path, {SLOW: band_us}, margin))["latency_p50_us"]
    assert ("clocks agree" in str(result)) == is_refused


def test_the_percentiles_of_hosts_with_two_clocks_have_the_band(tmp_path):
    evidence = evidence_with(tmp_path, {SLOW: 5.0})
    result = latency(evidence, all_series(evidence))
    assert sorted(row.band_us or 0 for row in result.percentiles) == [0, 5.0]
    assert result.has_band and result.refused.runs == 0


def test_hosts_with_one_clock_are_together_and_the_others_have_their_error(tmp_path):
    far = ClockRelation("far", (Knot(0, 9, 70_000), Knot(10**10, 9, 60_000)))
    relations = {"robot": NEAR, "edge": NEAR, "cloud": far}
    evidence = evidence_with(tmp_path, {}, relations=relations)
    result = latency(evidence, all_series_of_one_host(evidence))
    corrected = HostClock("cloud", 70.0)
    assert result.clocks == Clocks((("edge", "robot"),), (corrected,))


def test_a_clock_that_changed_its_rate_or_was_slewed_is_named(tmp_path):
    knots = (Knot(0, 9, 70_000), Knot(5 * 10**9, 9, 60_000), Knot(10**10, 100_009, 60_000))
    far = ClockRelation("far", knots, "pipe", 160, 40_000, 9.5, 2_000)
    evidence = evidence_with(tmp_path, {}, relations={"edge": far})
    first, second, third, *_ = (document["hosts"]["edge"] for document in evidence.runs.values())
    first["clock_adjustments"] = {"begin": {"rate_ppm": 1.5}, "end": {"rate_ppm": 4.0}}
    second["clock_adjustments"] = {"begin": {"rate_ppm": None}, "end": {"rate_ppm": 4.0}}
    third["clock_adjustments"] = {"begin": {"tick_us": 10_000}, "end": {"tick_us": 9_999}}
    (clock,) = latency(evidence, all_series_of_one_host(evidence)).clocks.corrected
    # The exchanges of runs with a change do not say what stays unseen in one without.
    assert clock == HostClock("edge", 70.0, 40.0, None, 8, pytest.approx(20.0), 2)
    third["clock"] = replace(far, knots=knots[:2], unseen_ppm=3.5).to_json()
    del third["clock_adjustments"]
    *_, last = evidence.runs.values()
    ends = {name: {"offset_ns": ns} for name, ns in (("begin", 0), ("end", 700))}
    last["hosts"]["controller"] = {"clock": NEAR.to_json(), "clock_adjustments": ends}
    (clock,) = latency(evidence, all_series_of_one_host(evidence)).clocks.corrected
    assert clock == HostClock("edge", 70.0, 40.0, 3.5, 7, pytest.approx(20.0), 2)


def test_the_difference_of_treatments_has_a_term_of_drift_and_one_of_load(tmp_path):
    evidence = evidence_with(tmp_path, {SLOW: 5.0, "cpp": 5.0})
    series = all_series(evidence)
    hosts = ("robot", "edge")
    for document in evidence.runs.values():
        is_slow = document["treatment"]["language"] == SLOW
        # The sum over clocks of round trips during the run is the same for both treatments.
        round_trips_ns = (50_000, 30_000) if is_slow else (40_000, 40_000)
        document["hosts"] = {
            host: {"clock": far(host, 3_000 if is_slow else 2_000, round_trip_ns)}
            for host, round_trip_ns in zip(hosts, round_trips_ns, strict=True)
        }
        document["hosts"]["unused"] = {"clock": far("unused", 10**9, 10**9 * is_slow)}
        document["deployment"] = placed(document["deployment"], hosts)
    result = latency(evidence, series)
    medians = {row.treatment: row.percentiles[0].estimate for row in result.percentiles}
    first, second = medians
    assert result.differences == (
        ClockDifference(second, medians[second] - medians[first], 10.0, 10.0),
    )
    next(iter(evidence.runs.values()))["hosts"]["edge"]["clock"]["departure_ns"] = None
    assert len(latency(evidence, series).differences) == 1, "other runs have it"


def far(clock, departure_ns, run_round_trip_ns):
    """Return the relation, as in run.json, of a clock whose shortest round trip saw no load."""
    knots = (Knot(0, 9, 70_000), Knot(10**10, 9, 70_000))
    relation = ClockRelation(clock, knots, "pipe", 160, 30_000, 9.5, departure_ns)
    return replace(relation, run_round_trip_ns=run_round_trip_ns).to_json()


def placed(deployment, hosts):
    """Return a deployment whose processes are on these hosts in turn."""
    processes = [
        {**process, "host": hosts[min(number, 1)]}
        for number, process in enumerate(deployment["processes"])
    ]
    return {**deployment, "processes": processes, "hosts": list(hosts)}


def all_series_of_one_host(evidence):
    """Return the series as if the nodes, which the simulated runs place nowhere, had one clock."""
    stored = {run: document.pop("hosts") for run, document in evidence.runs.items()}
    series = all_series(evidence)
    for run, hosts in stored.items():
        evidence.runs[run]["hosts"] = hosts
    return series


def test_a_campaign_on_one_host_says_nothing_of_clocks(tmp_path):
    evidence = evidence_with(tmp_path, {})
    assert latency(evidence, all_series(evidence)).clocks == Clocks()
