"""Test what the section on methods states: only what the campaign recorded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wattwire import imports
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.methods.design import Design, Factor, Level, Variant
from wattwire.analysis.topics.methods.meters import Library, Meter, Meters, SeriesOfKind
from wattwire.analysis.topics.methods.numbers import Conduct, Methods, Reason
from wattwire.analysis.topics.methods.statistics import Bound, Model, Statistics, VariantMethod
from wattwire.imports.tests.test_writing import ABOUT, tiny
from wattwire.report.tests.answered import methods_of
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.store import Campaign

SMALL = {"patterns": ("topic",), "clients": (1,), "duration_s": 2.0}


def of_campaign(folder: Path, **shape: Any) -> Methods:
    evidence = gather(Campaign(write_campaign(folder, Shape(**{**SMALL, **shape}))))
    return methods_of(evidence)


def texts(result: Methods, key: str) -> list[str]:
    """Return the texts with a key."""
    parts = [part for _, part in topic_page("methods", result).parts]
    return [part.words for part in parts if part.key == key]


def test_design_runs_verdicts_and_statistics_are_those_of_the_campaign(tmp_path: Path) -> None:
    result = of_campaign(tmp_path / "c", blocks=4, unknown_runs=(1, 2), b_over_a=1.0)
    design, verdicts = result.design, result.verdicts
    assert (design.blocks, design.treatments, design.runs, design.seed) == (4, 4, 16, 7)
    assert design.is_complete and design.has_controls and design.grouped_title == ""
    assert Factor("language", ("Swift", "Python")) in design.factors
    assert Level("middleware", "loopback") in design.fixed
    assert (verdicts.used, verdicts.runs, verdicts.repeats) == (14, 16, 0)
    assert verdicts.reasons == (Reason("other load", 2),)
    assert Level("other_load_max", "0.25") in verdicts.limits
    assert result.statistics.model is not None and result.statistics.model.error == "treatments"
    assert result.statistics.margin == 0.05 and not result.is_study_edited
    assert {library.name for library in result.meters.libraries} == {"made-up"}
    assert {library.version for library in result.meters.libraries} == {"1.2.3"}
    assert result.variants is None and result.deliveries is None


def test_skipped_treatments_have_their_reasons(tmp_path: Path) -> None:
    design = of_campaign(tmp_path / "c", skip={"language": "swift", "interval_s": 0.2}).design
    assert design.skipped and design.reasons == ("the cell has no such capability",)


def test_imported_data_have_no_design_and_no_machine(tmp_path: Path) -> None:
    evidence = gather(imports.write(tiny(), tmp_path / "i", ABOUT, {}))
    result = methods_of(evidence)
    assert result.is_imported and result.design == Design()
    assert (result.verdicts.used, result.verdicts.runs) == (2, 3)
    keys = [part.key for _, part in topic_page("methods", result).parts]
    assert keys[:2] == ["methods.imported", "methods.used"] and "methods.runs" not in keys


def test_a_sentence_is_printed_once_for_each_fact() -> None:
    keys = Counter(part.key for _, part in topic_page("methods", Methods()).parts)
    assert set(keys.values()) == {1}
    assert keys.keys() == {"methods.runs", "methods.window_s", "methods.validity", "methods.used",
                           "methods.family"}  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        (Variant("v"), "Variant v was run unchanged."),
        (Variant("v", (), True), "Variant v was run with its own cells."),
        (Variant("v", (), True, "0a1b"), "Variant v was run with the cells of commit 0a1b."),
        (Variant("v", (Level("a", "1"), Level("b", "x"))), "Variant v was run with a = 1, b = x."),
        (Variant("v", (Level("a", "1"),), True), "run with a = 1 and with its own cells."),
    ],
)
def test_a_variant_states_its_levels_and_its_cells(variant: Variant, text: str) -> None:
    (words,) = texts(Methods(design=Design(variants=(variant,))), "methods.variant")
    assert words.endswith(text)


def test_factors_and_series_are_listed_and_further_levels_are_counted() -> None:
    factors = (Factor("language", ("C++", "Python")), Factor("payload", ("1 B", "2 B"), 7))
    (words,) = texts(Methods(design=Design(factors)), "methods.factors")
    assert words == "The factors were language (C++, Python) and payload (1 B, 2 B and 7 more)."
    series = SeriesOfKind("bound", (Meter("m", ("a", "b")), Meter("n", ("c",))))
    result = Methods(meters=Meters(10.0, (series,), (), (Library("x/y", "lib", ""),)))
    assert texts(result, "methods.series")[0].endswith("at up to 10 Hz: m (a, b); n (c).")
    assert texts(result, "methods.libraries")[0].endswith(": x/y: lib of unknown version.")
    assert texts(result, "methods.energy")[0].startswith("Energy was not measured")


@pytest.mark.parametrize(
    ("conduct", "fragment"),
    [
        (Conduct(1.0, 2.0, 500), "the first 500 calls of each client"),
        (Conduct(1.0, 2.0, 0, 3.0), "its first 3.00 s are discarded"),
        (Conduct(1.0, 2.0), "no warm-up was discarded"),
    ],
)
def test_a_warm_up_is_a_number_of_calls_or_a_time(conduct: Conduct, fragment: str) -> None:
    (words,) = texts(Methods(conduct=conduct), "methods.window_s")
    assert fragment in words and "for a window of 2.00 s; " in words


@pytest.mark.parametrize(
    ("error", "fragment"),
    [
        ("treatments", "degrees of freedom by Welch and Satterthwaite."),
        ("blocks", "because levels of one factor were next to each other."),
        ("pooled", "with an error pooled over all runs."),
    ],
)
def test_the_model_names_its_error(error: str, fragment: str) -> None:
    statistics = Statistics(Model(("CPU time",), True, error), family=2)
    (words,) = texts(Methods(statistics=statistics), "methods.error")
    assert words.endswith(fragment)


def test_a_limit_has_its_bounds_its_unit_and_its_levels() -> None:
    bound = Bound("latency", "µs", 5.0, 1.0, (Level("clients", "2"),))
    statistics = Statistics(difference_titles=("latency",), limits=(bound,))
    before, edited = (
        texts(Methods(statistics=statistics, is_study_edited=is_edited), "methods.limit")
        for is_edited in (False, True)
    )
    limit = "latency max 5, min 1 µs for clients = 2."
    assert before == [f"Limit stated before the runs: {limit}"]
    assert edited == [f"Limit of the edited study: {limit}"]


@pytest.mark.parametrize(
    ("family", "looks", "fragment"),
    [
        (1, 1, "5 % (t interval at 99 %)."),
        (4, 1, "5 % (4 intervals, simultaneous at 95 %; Bonferroni, each at 99 %)."),
        (4, 3, "5 % (4 intervals, 3 tests of each, simultaneous at 95 %; Bonferroni, each at"),
    ],
)
def test_variants_are_compared_by_joint_intervals(family: int, looks: int, fragment: str) -> None:
    (words,) = texts(Methods(variants=VariantMethod(0.05, 0.99, family, looks)),
                     "methods.variants")  # fmt: skip
    assert fragment in words


def test_what_came_of_all_deliveries_is_stated_if_every_count_is_known(tmp_path: Path) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape(**SMALL))))
    usable = evidence.usable.with_columns(failed=pl.lit(3))
    evidence.usable = usable
    deliveries = methods_of(evidence).deliveries
    assert deliveries is not None and deliveries.failed == 3 * usable.height
    assert deliveries.expected == usable["expected"].sum()
