"""Tests of proportionality on campaigns with planted exponents, fronts and products."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.model.derived import column, with_derived
from wattwire.report.parts import tables_of
from wattwire.report.sections import proportion
from wattwire.report.tests.phrase_search import only
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.words.correlation import proportionality
from wattwire.stats import Interval, TooFew
from wattwire.store import Campaign


def evidence_of(folder, **shape):
    made = Shape(**{"blocks": 3, "duration_s": 1.0, "patterns": ("topic",), **shape})
    return gather(Campaign(write_campaign(folder / "campaign", made)))


def tables(part) -> dict:
    return {table.id: table for table in tables_of(part.parts)}


def test_modelled_energy_answers_nothing(tmp_path) -> None:
    part = proportion.section(evidence_of(tmp_path))
    assert part.parts[0].words.key == "proportion.no_energy"
    assert part.has_no_data
    assert tables(part) == {}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return the evidence of treatments with planted energy.

    The energy per message is proportional to the root of the CPU time.
    """
    evidence = evidence_of(tmp_path_factory.mktemp("planted"), measured_energy=True)
    frame = evidence.usable
    treatments = [f"factor.{name}" for name in evidence.varied]
    rank = frame.select(pl.struct(treatments).rank("dense")).to_series().to_numpy().astype(float)
    cpu = 100.0 * 1.1**rank
    joules = 1e-6 * 50.0 * np.sqrt(cpu) * column(frame, "sent")
    evidence.usable = with_derived(
        frame.drop("energy_uj_per_message").with_columns(
            cpu_us_per_message=cpu, energy_message_j=joules
        )
    )
    return evidence


def test_a_planted_exponent_is_found_and_not_called_proportion(planted) -> None:
    part = proportion.section(planted)
    assert not part.has_no_data
    table = tables(part)["proportion"]
    rows = {row["what"]: row for row in table.rows}
    assert set(rows) == {"time", "CPU time", "memory"}
    row = rows["CPU time"]
    assert row["points"] == 8
    assert isinstance(row["exponent"], Interval)
    assert row["exponent"].estimate == pytest.approx(0.5, abs=1e-6)
    assert row["reads"].key == "correlation.grows"
    assert row["spearman"].values["rho"] == pytest.approx(1)  # no interval for eight points
    assert not isinstance(row["inside"], Interval)  # no variation within a treatment


def test_products_and_the_front_follow_from_energy_and_delay(planted) -> None:
    table = tables(proportion.section(planted))["energy-delay-1"]
    assert len(table.rows) == 8
    on_front = [row for row in table.rows if row["front"]]
    least = min(table.rows, key=lambda row: row["energy"])
    assert least["front"] == "yes" and 0 < len(on_front) < 8
    for row in on_front:
        beaten = [
            other
            for other in table.rows
            if other["energy"] < row["energy"] and other["delay"] < row["delay"]
        ]
        assert not beaten
    products = [row["energy"] * row["delay"] for row in table.rows]
    assert products == sorted(products)
    first = table.rows[0]["product"]
    assert isinstance(first, Interval) and first.low < first.estimate < first.high


def test_a_role_s_energy_goes_with_its_own_columns_and_the_client_s_time(tmp_path) -> None:
    evidence = evidence_of(tmp_path, patterns=("service",))
    frame = evidence.usable.drop("energy_uj_per_message", strict=False)
    rng = np.random.default_rng(1)
    count = frame.height
    evidence.usable = frame.with_columns(
        **{
            "energy_j.server.0": pl.Series(rng.uniform(5, 9, count)),
            "elapsed_s.server.0": pl.Series(rng.uniform(1, 2, count)),
            "elapsed_s.client.0": pl.Series(rng.uniform(3, 4, count)),
            "faults_minor.server.0": pl.Series(rng.integers(100, 900, count)),
            "switches_voluntary.server.0": pl.Series(rng.integers(100, 900, count)),
            "faults_minor.client.0": pl.Series(rng.integers(100, 900, count)),
        }
    )
    (subject,) = proportion.subjects(evidence)
    assert subject.energy == "energy_j.server.0" and subject.delay == "elapsed_s.client.0"
    assert {what for _, what in subject.beside} == {
        "time",
        "CPU time",
        "memory",
        "page faults",
        "context switches",
    }
    assert all(name.endswith(".server.0") for name, _ in subject.beside)
    part = proportion.section(evidence)
    assert only(part, "proportion.shared_by_cpu")


def test_what_no_question_compares_parts_the_table(tmp_path) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True, patterns=("topic", "service"))
    table = tables(proportion.section(evidence))["proportion"]
    assert {row["where"] for row in table.rows} == {"topic", "service"}


def test_three_treatments_are_too_few(tmp_path) -> None:
    evidence = evidence_of(
        tmp_path, measured_energy=True, patterns=("topic",), intervals_s=(0.2,), clients=(1,)
    )
    table = tables(proportion.section(evidence))["proportion"]
    assert all(isinstance(row["exponent"], TooFew) for row in table.rows)
    assert all(row["reads"] == "" for row in table.rows)


@pytest.mark.parametrize(
    ("low", "high", "key"),
    [
        (0.9, 1.1, "correlation.in_proportion"),
        (0.3, 1.1, "correlation.cannot_tell"),
        (-0.2, 1.4, "correlation.cannot_tell"),
        (0.3, 0.7, "correlation.grows"),
        (1.2, 1.5, "correlation.grows"),
        (-0.2, 0.4, "correlation.not_in_proportion"),
        (-0.9, -0.4, "correlation.falls"),
    ],
)
def test_an_exponent_reads_as(low: float, high: float, key: str) -> None:
    interval = Interval((low + high) / 2, low, high, 0.95, 10, "t")
    assert proportionality(interval).key == key
