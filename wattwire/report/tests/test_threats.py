"""What a reader should hold against the numbers, as far as no other part shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.report.sections.threats import threats
from wattwire.report.tests.synthetic import FileCampaign, Shape, write_campaign

SHAPE = Shape(blocks=2, patterns=("service",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
WARM_UP = {"calls": 500, "words": "", "cells": []}


@pytest.mark.parametrize(
    ("lengths_s", "warm_up", "words"),
    [
        ((0.05, 0.4), WARM_UP, "shortest window (0.0500 s; the median is 0.225 s) up to 100 %"),
        ((0.5, 1.9), WARM_UP, "shortest window (0.500 s; the median is 1.20 s) up to 20 %"),
        ((2.0, 2.5), WARM_UP, ""),
        ((0.05, 0.4), None, ""),
    ],
)
def test_cpu_time_that_lies_between_two_readings_is_said(
    tmp_path: Path, lengths_s: tuple[float, float], warm_up: object, words: str
) -> None:
    evidence = gather(FileCampaign(write_campaign(tmp_path / "c", SHAPE)))
    half = evidence.usable.height // 2
    lengths = pl.Series("cost_window_s", [lengths_s[0]] * half + [lengths_s[1]] * half)
    evidence = replace(evidence, usable=evidence.usable.with_columns(lengths), warm_up=warm_up)
    told = construct(evidence)
    assert ("are read every 0.100 s" in told) == bool(words)
    assert words in told


def construct(evidence: Evidence) -> str:
    found = threats(evidence, answer_all(evidence))
    return " ".join(text for kind, text in found if kind == "construct")
