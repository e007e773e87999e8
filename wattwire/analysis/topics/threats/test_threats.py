"""Test the threats to validity that no other topic states."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from wattwire import imports
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.design.numbers import design
from wattwire.analysis.topics.threats.conclusion import Conclusion
from wattwire.analysis.topics.threats.construct import Construct, ShortWindows
from wattwire.analysis.topics.threats.internal import Internal, OpenLimit, includes_start
from wattwire.analysis.topics.threats.numbers import Threats, threats
from wattwire.imports.tests.test_writing import ABOUT, tiny
from wattwire.model.deployment import Request
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.store import Campaign

SMALL = {"patterns": ("topic",), "clients": (1,), "duration_s": 2.0}
SHAPE = Shape(blocks=2, patterns=("service",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
WARM_UP = {"calls": 500, "words": "", "cells": []}
KINDS = ("construct", "internal", "conclusion", "external")


def threats_of(evidence: Evidence) -> Threats:
    return threats(evidence, answer_all(evidence))


def of_campaign(folder: Path, **shape: Any) -> Threats:
    return threats_of(gather(Campaign(write_campaign(folder, Shape(**{**SMALL, **shape})))))


def keys(result: Threats, kind: str = "") -> list[str]:
    """Return the keys of the texts on the page, of one kind or of all."""
    parts = [part for _, part in topic_page("threats", result).parts]
    return [part.key for part in parts if kind in ("", part.paragraph)]


@pytest.mark.parametrize(
    ("lengths_s", "warm_up", "expected"),
    [
        ((0.05, 0.4), WARM_UP, ShortWindows(0.1, 0.05, 0.225, 1.0)),
        ((0.5, 1.9), WARM_UP, ShortWindows(0.1, 0.5, 1.2, 0.2)),
        ((2.0, 2.5), WARM_UP, None),
        ((0.05, 0.4), None, None),
    ],
)
def test_cpu_time_between_two_readings_is_interpolated_in_short_windows(
    tmp_path: Path,
    lengths_s: tuple[float, float],
    warm_up: Any,
    expected: ShortWindows | None,
) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", SHAPE)))
    half = evidence.usable.height // 2
    lengths = pl.Series("cost_window_s", [lengths_s[0]] * half + [lengths_s[1]] * half)
    evidence = replace(evidence, usable=evidence.usable.with_columns(lengths), warm_up=warm_up)
    result = threats_of(evidence)
    windows = result.construct.short_windows
    if expected is None:
        assert windows is None
    else:
        assert dataclasses.astuple(windows) == pytest.approx(dataclasses.astuple(expected))
    assert ("threats.interpolated" in keys(result, "construct")) == (expected is not None)


def test_levels_that_a_variant_changes_and_rates_of_closed_loops_are_not_held(
    tmp_path: Path,
) -> None:
    document = {
        "factors": {"variant": ["plain", "other"], "loop": ["closed", "open"]},
        "fixed": {"middleware": "loopback", "language": "cpp", "pattern": "pingpong",
                  "rate_hz": 50, "payload_bytes": 64},
        "variants": {"plain": {}, "other": {"levels": {"language": "python"}},
                     "unplanned": {"levels": {"pattern": "service"}}},
    }  # fmt: skip
    treatments = [
        {"variant": variant, "loop": loop}
        for variant in ("plain", "other")
        for loop in ("closed", "open")
    ]
    evidence = planted(tmp_path / "c", document, treatments, lambda _: 100.0, 2)
    held = [factor.title for factor in threats_of(evidence).held]
    assert held == ["middleware", "pattern", "payload"]
    assert design(evidence).shared == ("loopback", "pingpong", "64 B")


@pytest.mark.parametrize(
    ("request_of_study", "is_included"),
    [
        (Request(command=("make",)), True),
        (Request(command=("make",), warmup_s=2.0), False),
        (Request(attached=(1,)), False),  # the processes ran before
    ],
)
def test_the_window_includes_the_start_only_of_a_command_without_a_warm_up(
    request_of_study: Request, is_included: bool
) -> None:
    study = SimpleNamespace(request=request_of_study, variants={})
    assert includes_start(SimpleNamespace(study=study)) == is_included
    result = Threats(internal=Internal(includes_start=is_included))
    assert ("threats.start_included" in keys(result, "internal")) == is_included


def test_energy_is_attributed_or_not_measured(tmp_path: Path) -> None:
    without, measured = (
        of_campaign(tmp_path / str(energy), measured_energy=energy) for energy in (False, True)
    )
    assert not without.construct.has_energy and without.construct.has_estimates
    assert measured.construct.has_energy


def test_excluded_runs_blocks_and_noise_are_threats(tmp_path: Path) -> None:
    plain = of_campaign(tmp_path / "plain", blocks=6)
    assert not plain.internal.has_controls and plain.internal.excluded == 0
    assert plain.conclusion.noise == 0.0 and "threats.blocks" not in keys(plain)
    other = of_campaign(tmp_path / "other", blocks=3, b_over_a=1.4, unknown_runs=(0,))
    assert (other.internal.excluded, other.internal.runs) == (1, 12)
    assert other.conclusion.blocks == 3 and other.conclusion.noise > 0.1
    assert {"threats.excluded", "threats.blocks", "threats.noise"} <= set(keys(other))
    assert "threats.no_controls" not in keys(other)


def test_limits_that_exclude_no_run_are_threats(tmp_path: Path) -> None:
    result = of_campaign(tmp_path / "c", study={"validity": {"other_load_max": 1.1}})
    (limit,) = result.internal.open_limits
    assert limit == OpenLimit("other_load_max", 1.1, 0.01)
    look = of_campaign(tmp_path / "d", study={"validity": {"look": True}})
    assert [limit.key for limit in look.internal.open_limits] == ["other_load_max", "steal_max"]


@pytest.mark.parametrize(
    ("cell", "unsettled", "unknown"),
    [
        ({"settled": False, "known": False}, (), ("made/up",)),
        ({"settled": False, "known": True}, ("made/up",), ()),
        ({"settled": True, "known": True}, (), ()),
    ],
)
def test_cells_whose_settling_runs_show_no_steady_state_are_named(
    tmp_path: Path, cell: dict[str, bool], unsettled: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape(**SMALL))))
    cells = [{"cell": "made/up", "calls": None, **cell}]
    result = threats_of(replace(evidence, warm_up={"calls": 50, "cells": cells, "words": ""}))
    assert (result.internal.unsettled, result.internal.unknown) == (unsettled, unknown)
    assert not result.internal.has_no_warm_up


def test_each_kind_begins_with_its_question() -> None:
    titles = [f"threats.{kind}" for kind in KINDS]
    assert [key for key in keys(Threats()) if key in titles] == titles
    assert [keys(Threats(), kind)[0] for kind in KINDS] == titles
    section = topic_page("threats", Threats()).section()
    assert section is not None
    assert [part.key for part in section.parts] == ["threats.construct", "threats.conclusion"]


def test_answers_without_a_number_are_counted() -> None:
    conclusion = Conclusion(answers=3, numbers=1, undecided=1, unanswered=("CPU", "energy"))
    parts = [part for _, part in topic_page("threats", Threats(conclusion=conclusion)).parts]
    shown = {part.key: part.value for part in parts if part.paragraph == "conclusion"}
    assert shown["threats.unanswered"] == "2" and shown["threats.undecided"] == "1"


def test_imported_data_have_no_known_threats_to_construct_and_internal_validity(
    tmp_path: Path,
) -> None:
    result = threats_of(gather(imports.write(tiny(), tmp_path / "i", ABOUT, {})))
    assert result.is_imported and (result.construct, result.internal) == (Construct(), Internal())
    assert keys(result).count("threats.imported") == 3
