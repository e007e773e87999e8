"""Test that runs which are read together have the latencies that each of them has alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire.analysis import latency
from wattwire.analysis.dataset import gather, unanswered
from wattwire.model.sample_codes import FLAG_WARM_UP
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign


def series_alone(campaign: Campaign) -> dict[str, latency.Series]:
    evidence = gather(campaign)
    runs = evidence.usable["run"].to_list()
    lost = unanswered(evidence.usable)
    return {
        run: latency.series_of(campaign.recorded(run), evidence.runs[run], float(number))
        for run, number in zip(runs, lost, strict=True)
    }


@pytest.mark.parametrize("loss_share", [0.0, 0.2])
def test_runs_read_together_have_the_series_of_each_run(tmp_path: Path, loss_share: float) -> None:
    shape = Shape(blocks=2, loss_share=loss_share, duration_s=2.0)
    campaign = Campaign(write_campaign(tmp_path / "c", shape))
    paths = [campaign.records_path(run) for run in campaign.journal.runs()]
    for index, path in enumerate(paths):
        frame = pl.read_parquet(path, glob=False)
        if index == 3:  # no sender has a record, so its losses are not announced
            frame = frame.filter(pl.col("node") != pl.col("sender"))
        if index == 5:
            frame = frame.with_columns(flags=pl.col("flags") | latency_warm_up(frame))
        frame.write_parquet(path)
    together, alone = latency.all_series(gather(campaign)), series_alone(campaign)
    assert list(together) == list(alone) and len(alone) > 20
    for run, series in alone.items():
        np.testing.assert_array_equal(together[run].values_us, series.values_us)
        np.testing.assert_array_equal(together[run].warm_up_us, series.warm_up_us)
        np.testing.assert_array_equal(together[run].since_send_us, series.since_send_us)
        assert together[run].loose == series.loose
    assert any(series.warm_up_us.size for series in alone.values())
    campaign.close()


def latency_warm_up(frame: pl.DataFrame) -> pl.Expr:
    """Return the flag of the warm-up for the first ten messages."""
    return pl.when(pl.col("counter") < 10).then(FLAG_WARM_UP).otherwise(0)


def test_short_runs_are_read_in_one_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(write_campaign(tmp_path / "c", Shape(blocks=2, duration_s=2.0)))
    sizes: list[int] = []
    together = latency.together

    def counted(batch: list[Path]) -> pl.DataFrame | None:
        sizes.append(len(batch))
        return together(batch)

    monkeypatch.setattr(latency, "together", counted)
    series = latency.all_series(gather(campaign))
    assert sum(sizes) == len(series) and len(sizes) == 6  # patterns times numbers of clients
    campaign.close()


@pytest.mark.parametrize("counter", [-1, latency.RUN_COUNTERS])
def test_a_counter_outside_the_range_of_a_run_is_not_another_run_s(
    tmp_path: Path, counter: int
) -> None:
    campaign = Campaign(write_campaign(tmp_path / "c", Shape(blocks=2, duration_s=2.0)))
    path = campaign.records_path(campaign.journal.runs()[0])
    frame = pl.read_parquet(path, glob=False)
    odd = pl.when(pl.int_range(pl.len()) == 0).then(counter).otherwise(pl.col("counter"))
    frame.with_columns(counter=odd.cast(pl.Int64)).write_parquet(path)
    together, alone = latency.all_series(gather(campaign)), series_alone(campaign)
    for run, series in alone.items():
        np.testing.assert_array_equal(together[run].values_us, series.values_us)
    campaign.close()


def test_the_documents_of_many_runs_share_their_equal_parts(tmp_path: Path) -> None:
    campaign = Campaign(write_campaign(tmp_path / "c", Shape(blocks=3)))
    runs = gather(campaign).runs.values()
    levels = {id(run["levels"]) for run in runs}
    assert len(runs) == 72 and len(levels) == 24
    campaign.close()
