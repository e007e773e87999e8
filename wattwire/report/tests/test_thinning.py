"""Tests of downsampled figures and of the note on them."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire.analysis.charts import spread
from wattwire.model import words
from wattwire.report.figures.downsample import Thinner, thinned
from wattwire.report.figures.style import POINTS
from wattwire.report.html.explorer import Explorer
from wattwire.report.page import bounded
from wattwire.report.parts import Figure, Fold, Section, figures_of


def points(count, treatments=4, **more):
    rng = np.random.default_rng(1)
    return [
        {
            "run": f"r{at}",
            "treatment": f"t{at % treatments}",
            "colour": "c",
            "panel": "",
            "value": float(rng.lognormal(at % treatments, 1.0)),
            **more,
        }
        for at in range(count)
    ]


def of_treatment(some, name):
    return np.array([point["value"] for point in some if point["treatment"] == name])


def test_each_treatment_keeps_its_share_its_ends_and_its_quartiles():
    many = points(20_000)
    few = thinned(many, 1000)
    assert len(few) == 1000
    for name in ("t0", "t1", "t2", "t3"):
        before, after = of_treatment(many, name), of_treatment(few, name)
        assert len(after) == 250
        assert (after.min(), after.max()) == (before.min(), before.max())
        quartiles = (25, 50, 75)
        assert np.percentile(after, quartiles) == pytest.approx(
            np.percentile(before, quartiles), rel=0.03
        )


def test_what_is_kept_stays_in_the_order_of_execution():
    runs = [int(point["run"][1:]) for point in thinned(points(5000), 100)]
    assert runs == sorted(runs)


def test_a_small_group_beside_a_large_one_is_not_lost():
    small = [{**point, "treatment": "rare"} for point in points(3)]
    assert len(of_treatment(thinned([*points(10_000), *small], 100), "rare")) == 3


def test_more_treatments_than_points_are_bounded_all_the_same():
    assert len(thinned(points(9000, treatments=3000), 1000)) == 1000


def test_evenly_spaced_places_hold_both_ends():
    assert spread(10, 4) == [0, 3, 6, 9]
    assert spread(3, 4) == [0, 1, 2]


def figure(name, held):
    return Figure(name, "T", "Caption.", {"mark": "point", "datasets": {POINTS: held}})


def test_a_figure_says_what_was_left_out_wherever_it_stands_and_others_are_left_alone():
    many, curve = points(9000), [{"us": at, "share": at} for at in range(9000)]
    small = figure("small", points(50))
    of_curve = figure("curve", curve)
    parts = [figure("a", many), Fold("more", [figure("b", many), of_curve]), small]
    first, second, untouched, same = figures_of(bounded(Section("s", "S", parts), Thinner()).parts)
    told = (
        f"Caption. The figure shows {words.count(4000)} of {words.count(9000)} runs: a proportional"
    )
    assert first.caption.startswith(told)
    assert "The tables contain every run" in second.caption
    held = [one.spec["datasets"][POINTS] for one in (first, second)]
    assert len(held[0]) == 4000 and held[0] is held[1]  # stored once on the page
    assert untouched is of_curve and same is small


def test_an_explorer_is_no_figure():
    explorer = Explorer((), (), (), 0, {})
    assert bounded(Section("s", "S", [explorer]), Thinner()).parts == [explorer]
