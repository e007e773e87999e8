"""Load a campaign's tables for analysis in Python (`wattwire.load`)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.analysis.dataset import gather
from wattwire.analysis.document import document
from wattwire.model.derived import with_derived
from wattwire.model.errors import UsageError
from wattwire.model.metrics import METRICS, Metric
from wattwire.store import ImportedCampaign, open_campaign


class CampaignData:
    """The tables of a campaign, which are read on first access. Nothing is written.

    All tables are Polars frames. If pandas is installed, `.to_pandas()` converts a frame.
    """

    def __init__(self, path: Path | str) -> None:
        self._campaign = open_campaign(Path(path))
        self.path = self._campaign.path

    def __repr__(self) -> str:
        return f"wattwire.load({str(self.path)!r})"

    @cached_property
    def study(self) -> dict[str, Any]:
        """The study as stored before the first run."""
        return dict(self._campaign.study_document)

    @cached_property
    def machine(self) -> dict[str, Any]:
        """Hardware, kernel, toolchains and meters of the machine."""
        return dict(self._campaign.machine)

    @cached_property
    def attempts(self) -> pl.DataFrame:
        """One row per attempt of a run: identity, levels (`factor.NAME`), verdict and metrics.

        `units` contains the units. A latency percentile is infinite if it falls among lost messages
        or failed calls. Settling runs, control runs and excluded attempts are included.
        """
        return with_derived(self._campaign.summary())

    @cached_property
    def runs(self) -> pl.DataFrame:
        """The rows of `attempts` that the answers use: one valid attempt per design run."""
        attempts = self.attempts
        return attempts.filter(pl.col("used")) if "used" in attempts.columns else attempts

    @cached_property
    def processes(self) -> pl.DataFrame | None:
        """One row per process and run of a command that `exec` measured; None for other campaigns.

        It is the table processes.parquet, in which columns.json describes the columns.
        """
        campaign = self._campaign
        return None if isinstance(campaign, ImportedCampaign) else campaign.processes()

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of each column of `attempts` that has a unit."""
        campaign, units = self._campaign, {}
        described = campaign.columns if isinstance(campaign, ImportedCampaign) else {}
        for name in self.attempts.columns:
            metric = self.metric(name)
            unit = described.get(name, {}).get("unit") or (metric.unit if metric else "")
            if unit:
                units[name] = unit
        return units

    @staticmethod
    def metric(column: str) -> Metric | None:
        """Return the registered metric of a column; None for a column of imported data."""
        return METRICS.get(column.partition(".")[0])

    def messages(self, run: str) -> pl.DataFrame:
        """Return all records of one run: a row per node and message, call, goal or feedback.

        `begin_ns` and `end_ns` are CLOCK_MONOTONIC of the node's host. `run` is a value of
        `runs["run"]`. Raise UsageError for an unknown run, and for imported campaigns.
        """
        return self._measured("messages").messages(run)

    def quantities(self, run: str) -> pl.DataFrame:
        """Return all meter readings of one run: time, quantity, scope, subject, value.

        Raise UsageError for an unknown run, and for imported campaigns.
        """
        return self._measured("quantities").quantities(run)

    def analysis(self) -> dict[str, Any]:
        """Return the content of report/analysis.json: contrasts with intervals, medians, controls.

        It is computed from the same numbers as the report. docs/python.md documents the keys.
        """
        return document(gather(self._campaign)).values

    def _measured(self, table_name: str) -> Any:
        if isinstance(self._campaign, ImportedCampaign):
            raise UsageError(f"{self.path}: an imported campaign has no {table_name}, only `runs`")
        return self._campaign

    def close(self) -> None:
        """Close the journal. Tables that are read later do not open it again."""
        self._campaign.close()

    def __enter__(self) -> CampaignData:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
