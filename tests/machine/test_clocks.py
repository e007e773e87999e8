"""Test the relation of the clocks of two machines, each with a kernel and a clock of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.machine.boot import PEER_AHEAD_S
from tests.machine.conftest import booted

pytestmark = [pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(1500)]

LIMIT_S = 600.0
TICK_NS = 10_000_000
"""Longest step of the time that the host's kernel gives to a write."""
NEAR_NS = 3_000_000_000
"""Distance from a time up to which marks count there."""
DRIFT_NS = 2_000_000
"""Room for the change of both clocks' rates within this distance."""
WALL_S_MAX = 3.0
"""Error of the wall clock, which a kernel reads from a clock of whole seconds while it boots."""


@pytest.fixture(scope="module")
def clocks(tmp_path_factory) -> Path:
    """Return the folder of two machines that ran the steps `clocks` and `far`."""
    folder = tmp_path_factory.mktemp("clocks") / "machine"
    booted(folder, ["clocks"], LIMIT_S, peer=["far"])
    return folder


def relations(folder: Path) -> list[dict[str, Any]]:
    document = json.loads((folder / "out" / "clocks" / "relations.json").read_text())
    return list(document["relations"])


def knots(relation: dict[str, Any]) -> np.ndarray:
    """Return time, offset and band (ns) of each knot (array of shape [knots, 3])."""
    names = ("controller_ns", "offset_ns", "band_ns")
    rows: Sequence[dict[str, int]] = relation["relation"]["knots"]
    return np.array([[row[name] for name in names] for row in rows], np.int64)


def truth_ns(folder: Path, controller_ns: int) -> tuple[int, int]:
    """Return the bounds of the far clock minus this one's (ns), from the times of the host."""
    here, far = (
        np.array(json.loads((place / "marks.json").read_text()), np.int64)
        for place in (folder / "out" / "clocks", folder / "peer" / "out" / "far")
    )
    host_ns = here[np.argmin(np.abs(here[:, 0] - controller_ns)), 2]
    (here_low, here_high), (far_low, far_high) = (bounds_ns(m, host_ns) for m in (here, far))
    return far_low - here_high - DRIFT_NS, far_high - here_low + DRIFT_NS


def bounds_ns(marks: np.ndarray, host_ns: int) -> tuple[int, int]:
    """Return the bounds of a machine's clock minus the host's (ns) near a time of the host.

    Each write happened between two readings, and not before the time of its file.
    """
    before, after, written = marks[np.abs(marks[:, 2] - host_ns) <= NEAR_NS].T
    return int((before - written).max() - TICK_NS), int((after - written).min())


def test_the_band_of_each_offset_holds_that_of_the_two_kernels(clocks):
    for relation in relations(clocks):
        for controller_ns, offset_ns, band_ns in knots(relation):
            low_ns, high_ns = truth_ns(clocks, controller_ns)
            print(
                f"{relation['rate_ppm']:+.0f} ppm: {offset_ns / 1e9:.4f} s ± {band_ns / 1e6:.2f} "
                f"ms; truth {low_ns / 1e9:.4f} to {high_ns / 1e9:.4f} s"
            )
            assert offset_ns - band_ns <= high_ns and offset_ns + band_ns >= low_ns
            assert low_ns <= high_ns, "the marks contradict each other"


def test_the_rates_of_the_relation_are_the_planted_ones(clocks):
    for relation in relations(clocks):
        assert relation["relation"]["step_ns"] is None
        assert relation["relation"]["way"] == "datagrams"
        ends = knots(relation)
        seconds = (ends[-1, 0] - ends[0, 0]) / 1e9
        rate_ppm = (ends[-1, 1] - ends[0, 1]) / seconds / 1e3
        bound_ppm = (ends[-1, 2] + ends[0, 2]) / seconds / 1e3
        print(f"{rate_ppm:+.1f} ± {bound_ppm:.1f} ppm, planted {relation['rate_ppm']:+.0f} ppm")
        assert abs(rate_ppm - relation["rate_ppm"]) <= bound_ppm
        assert bound_ppm < abs(relation["rate_ppm"]), "the band is too wide to show the rate"


def test_doctor_has_the_planted_offset_of_the_wall_clock(clocks):
    document = json.loads((clocks / "out" / "clocks" / "relations.json").read_text())
    evidence = document["clock offset"]
    print(evidence)
    wall = re.search(r"([+-][0-9.]+) s \(wall clock\)", evidence)
    assert wall and float(wall[1]) == pytest.approx(PEER_AHEAD_S, abs=WALL_S_MAX)
