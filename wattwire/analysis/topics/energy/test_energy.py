"""Tests of proportionality on campaigns with planted exponents, fronts and products."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.charts import Chart
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.energy.numbers import (
    Against,
    Coefficient,
    Energy,
    EnergyDelay,
    Product,
    WithoutPoints,
    energy,
    proportionality,
    subjects,
)
from wattwire.model.derived import column, with_derived
from wattwire.report.parts import Column, Figure, Fold
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval, NotComputable, TooFew
from wattwire.stats.association import Association
from wattwire.store import Campaign


def evidence_of(folder, **shape):
    made = Shape(**{"blocks": 3, "duration_s": 1.0, "patterns": ("topic",), **shape})
    return gather(Campaign(write_campaign(folder / "campaign", made)))


def test_modelled_energy_answers_nothing(tmp_path) -> None:
    result = energy(evidence_of(tmp_path))
    assert result == Energy(is_asked=True)
    section = topic_page("energy", result).section()
    assert section is not None and (section.id, section.has_no_data) == ("proportion", True)
    assert [part.key for part in section.parts] == ["energy.is_measured"]
    assert topic_page("energy", Energy()).section() is None


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
    result = energy(planted)
    assert result.is_measured and not result.is_of_process
    rows = {row.kind: row for row in result.against}
    assert set(rows) == {"time", "CPU time", "memory"}
    row = rows["CPU time"]
    assert row.points == 8
    assert isinstance(row.exponent, Interval)
    assert row.exponent.estimate == pytest.approx(0.5, abs=1e-6)
    assert row.reading == "grows"
    assert isinstance(row.spearman.result, Association)
    assert row.spearman.result.estimate == pytest.approx(1)
    assert row.spearman.value is None  # no interval for eight points
    assert isinstance(row.inside.value, NotComputable)  # no variation within a treatment


def test_products_and_the_front_follow_from_energy_and_delay(planted) -> None:
    (pair,) = energy(planted).products
    assert (pair.number, len(pair.products)) == (1, 8)
    on_front = [product for product in pair.products if product.is_on_front]
    least = min(pair.products, key=lambda product: product.energy)
    assert least.is_on_front and 0 < len(on_front) < 8
    for product in on_front:
        beaten = [
            other
            for other in pair.products
            if other.energy < product.energy and other.delay < product.delay
        ]
        assert not beaten
    products = [product.energy * product.delay for product in pair.products]
    assert products == sorted(products)
    first = pair.products[0].product
    assert isinstance(first, Interval) and first.low < first.estimate < first.high
    assert pair.chart is not None and len(pair.chart.points) == planted.usable.height
    assert {point["colour"] for point in pair.chart.points} == {"Swift", "Python"}


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
    (subject,) = subjects(evidence)
    assert subject.energy == "energy_j.server.0" and subject.delay == "elapsed_s.client.0"
    assert {what for _, what in subject.beside} == {
        "time",
        "CPU time",
        "memory",
        "page faults",
        "context switches",
    }
    assert all(name.endswith(".server.0") for name, _ in subject.beside)
    assert energy(evidence).is_of_process


def test_what_no_question_compares_parts_the_table(tmp_path) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True, patterns=("topic", "service"))
    result = energy(evidence)
    assert {row.where for row in result.against} == {"topic", "service"}
    assert (result.strata, result.has_strata) == (2, True)


def test_three_treatments_are_too_few(tmp_path) -> None:
    evidence = evidence_of(
        tmp_path, measured_energy=True, patterns=("topic",), intervals_s=(0.2,), clients=(1,)
    )
    against = energy(evidence).against
    assert against and all(isinstance(row.exponent, TooFew) for row in against)
    assert all(row.reading == "" for row in against)


@pytest.mark.parametrize(
    ("low", "high", "conclusion"),
    [
        (0.9, 1.1, "in proportion"),
        (0.3, 1.1, "cannot tell"),
        (-0.2, 1.4, "cannot tell"),
        (0.3, 0.7, "grows"),
        (1.2, 1.5, "grows"),
        (-0.2, 0.4, "not in proportion"),
        (-0.9, -0.4, "falls"),
    ],
)
def test_an_exponent_reads_as(low: float, high: float, conclusion: str) -> None:
    interval = Interval((low + high) / 2, low, high, 0.95, 10, "t")
    assert proportionality(interval) == conclusion


def test_the_tables_have_associations_and_products_with_their_units() -> None:
    interval = Interval(1.0, 0.9, 1.1, 0.95, 12, "t")
    few = TooFew(2, 10, "points")
    rho = Association("Spearman", 0.5, 0.25, "exact", few, 5)
    coefficients = (
        Coefficient(rho),
        Coefficient(Association("Pearson", 0.5, 0.25, "t", interval, 5)),
        Coefficient(few),
    )
    against = Against("", "time", "energy", "elapsed time", 5, few, "cannot tell", *coefficients)
    product = Product(("8",), 3, 2.0, 4.0, interval, True)
    other = Product(("1",), 3, 3.0, 5.0, few, False)
    chart = Chart((), ("x",), "letter")
    pair = EnergyDelay(2, "energy", "J", "elapsed time", "s", (product, other), chart)
    result = Energy(
        True, True, True, 1, (against,), (WithoutPoints("", ("memory", "faults")),), (pair,)
    )
    section = topic_page("energy", result, [Column("clients", "clients")]).section()
    assert section is not None
    _, table, note, fold = section.parts
    assert "where" not in [column.key for column in table.columns]
    (row,) = table.rows
    assert (row["spearman"], row["pearson"], row["inside"]) == (
        "0.500 (p = 0.250, exact)", interval, few,
    )  # fmt: skip
    assert (row["exponent"], row["reads"]) == (few, "cannot tell")
    assert table.note.endswith("No treatment has values of energy and memory and faults.")
    assert (note.tone, note.key) == ("note", "energy.is_of_process")
    assert isinstance(fold, Fold)
    figure, products = fold.parts
    assert isinstance(figure, Figure)
    assert (figure.id, products.id) == ("energy-delay-2-runs", "energy-delay-2")
    assert "(s)" in str(figure.spec["layer"][0]["encoding"]["x"]["title"])
    assert [column.unit for column in products.columns[2:5]] == ["J", "s", "J·s"]
    assert [(row["clients"], row["product"], row["front"]) for row in products.rows] == [
        ("8", interval, "yes"), ("1", few, ""),
    ]  # fmt: skip
