"""Test that several runs of a treatment in a block count as one value of the block."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import special

from wattwire import stats
from wattwire.analysis.answering.block_models import block_table, fit_of
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.comparison.two_campaigns import Source, two_campaigns
from wattwire.analysis.topics.sensitivity.violations import violations
from wattwire.imports import table, writing
from wattwire.report.tests.answered import headline

SESSIONS, TRIALS, CAMPAIGNS = 6, 20, 400
STACKS = ("a", "b")


def logs_of(rng, scatter: float) -> np.ndarray:
    """Return the log values, shape (sessions, stacks, trials), of two equal stacks.

    `scatter` is that of the effect of a session on a stack, in standard deviations of a trial.
    """
    effects = scatter * rng.normal(size=(SESSIONS, 2, 1))
    return 0.05 * (effects + rng.normal(size=(SESSIONS, 2, TRIALS)))


def imported(folder, logs: np.ndarray):
    rows = [
        f"{stack},{session},{np.exp(logs[session, at, trial]):.9f}"
        for session, trial in np.ndindex(SESSIONS, TRIALS)
        for at, stack in enumerate(STACKS)
    ]
    folder.mkdir(exist_ok=True)
    (folder / "t.csv").write_text("\n".join(["stack,session,lat_ms", *rows]))
    wanted = table.TableRequest((("lat_ms", "ms"),), ("stack",), "session", rows_are_runs=True)
    read = table.read(folder / "t.csv", wanted)
    return gather(writing.write(read, folder / "c", {"study": "csv", "recipe": ""}, {}))


def test_the_interval_is_the_paired_t_interval_over_sessions(tmp_path) -> None:
    logs = logs_of(np.random.default_rng(3), 3.0)
    logs[:, 1] += 2.0  # so that the headline has the number
    evidence = imported(tmp_path, logs)
    answers = answer_all(evidence)
    (answer,) = answers.items
    changes = logs.mean(axis=2) @ [-1.0, 1.0]
    half = special.stdtrit(SESSIONS - 1, 0.975) * changes.std(ddof=1) / np.sqrt(SESSIONS)
    centre = changes.mean()
    limits = np.exp([centre - half, centre, centre + half])
    interval = answer.interval
    assert [interval.low, interval.estimate, interval.high] == pytest.approx(limits, rel=1e-6)
    assert interval.degrees == pytest.approx(SESSIONS - 1)
    # The ranks use the same values, so that the page does not contradict itself.
    sides = block_table(evidence, answer.response, "stack", ["b", "a"])
    assert sides.shape == (SESSIONS, 2)
    assert np.mean(sides @ [1.0, -1.0]) == pytest.approx(centre, abs=1e-8)
    runs = SESSIONS * 2 * TRIALS
    assert f"means of {SESSIONS} blocks, {runs} runs)" in headline(evidence, answers)
    assert violations(evidence, [answer.response]).correlations == ()


def test_equal_stacks_differ_in_five_percent_of_tables_with_an_effect_of_the_session(
    tmp_path,
) -> None:
    rng = np.random.default_rng(11)
    evidence = imported(tmp_path, logs_of(rng, 3.0))
    (answer,) = answer_all(evidence).items
    alarms = 0
    for _ in range(CAMPAIGNS):
        values = np.exp(logs_of(rng, 3.0)).transpose(0, 2, 1).ravel()
        frame = evidence.usable.with_columns(pl.Series("lat_ms", values))
        fit = fit_of(evidence, frame, answer.response)
        assert isinstance(fit, stats.Fit)
        ratio = stats.ratio(fit, "stack", "b", "a", 0.95)
        assert isinstance(ratio, stats.Ratio)
        alarms += ratio.interval.excludes(1.0)
    assert alarms / CAMPAIGNS <= 0.075, "three standard errors above 5 % at most"


def test_two_campaigns_are_compared_by_the_means_of_their_blocks(tmp_path) -> None:
    rng = np.random.default_rng(4)
    sides = tuple(imported(tmp_path / name, logs_of(rng, 3.0)) for name in ("base", "head"))
    (answer,) = answer_all(sides[0]).items
    sources = [Source(name, side.reader, {}) for name, side in zip("ab", sides, strict=True)]
    pairing = two_campaigns(*sources, across_machines=True)
    (interval, _) = pairing.ratios(
        [pairing.values(c, answer.response) for c in pairing.cases], 0.95
    )
    assert isinstance(interval, stats.Interval)
    assert interval.count == 2 * SESSIONS
