"""Judge the runs of a campaign again by other validity limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.model.stored_study import StoredStudy
from wattwire.model.validity import (
    CONDITION_CODES,
    MISSED_TICKS,
    VALIDITY,
    ValidityLimits,
    broken_limits,
    missed_ticks_share,
)
from wattwire.model.verdict import Reason, Verdict, worst
from wattwire.store import Campaign, Messages
from wattwire.store.campaign import used_attempt
from wattwire.store.journal import Journal


def reasons_at(
    row: Mapping[str, Any], document: Mapping[str, Any], limits: ValidityLimits
) -> list[Reason]:
    """Return the limits that a stored run violates, from its summary row and its run.json."""
    conditions = {**row, MISSED_TICKS: missed_ticks_share(document.get("sampling") or {})}
    return broken_limits(conditions, document.get("resolution") or {}, limits)


class Rejudged:
    """A campaign that is judged by other validity limits. Its files do not change."""

    def __init__(self, campaign: Campaign, limits: ValidityLimits, typed: str) -> None:
        self._campaign, self._limits = campaign, limits
        self.validity_changed = typed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._campaign, name)

    @property
    def path(self) -> Path:
        return self._campaign.path

    @cached_property
    def study(self) -> StoredStudy:
        """The stored study with the new limits instead of the original limits."""
        study, default = self._campaign.study, ValidityLimits()
        table, stated = vars(self._limits), study.stated(VALIDITY)
        kept = {k: v for k, v in table.items() if k in stated or v != getattr(default, k)}
        document = {**study.document, VALIDITY: kept}
        return replace(study, validity=self._limits, document=document)

    @property
    def plan(self) -> list[dict[str, Any]]:
        return self._campaign.plan

    @property
    def journal(self) -> Journal:
        return self._campaign.journal

    @property
    def machine(self) -> dict[str, Any]:
        return self._campaign.machine

    @cached_property
    def _attempts(self) -> dict[str, list[dict[str, Any]]]:
        """Each run's attempts in order, with their numbers, new verdicts and reasons."""
        judged: dict[str, list[dict[str, Any]]] = {}
        rows = self._campaign.summary().sort("attempt")
        names = rows.select(pl.format("{}-{}", "run", "attempt")).to_series()
        documents = self._campaign.documents(names)
        for row, document in zip(rows.iter_rows(named=True), documents, strict=True):
            kept = [
                Reason(Verdict(reason["verdict"]), reason["code"], reason["detail"])
                for reason in document.get("reasons", [])
                if reason["code"] not in CONDITION_CODES
            ]
            reasons = kept + reasons_at(row, document, self._limits)
            attempt = {"attempt": row["attempt"], "verdict": worst(reasons).value}
            attempt["reasons"] = [reason.to_json() for reason in reasons]
            judged.setdefault(row["run"], []).append(attempt)
        return judged

    def _judged_attempt(self, run: str) -> Mapping[str, Any]:
        """Return the attempt of `run` that counts under the new limits.

        If `run` has the form RUN-ATTEMPT, return that attempt.
        """
        if run in self._attempts:
            return used_attempt(self._attempts[run])
        name, _, attempt = run.rpartition("-")
        return next(a for a in self._attempts[name] if str(a["attempt"]) == attempt)

    def _attempt_name(self, run: str) -> str:
        return f"{run}-{self._judged_attempt(run)['attempt']}" if run in self._attempts else run

    def summary(self) -> pl.DataFrame:
        """Return one row per attempt. `verdict` and `used` apply the new limits."""
        summary = self._campaign.summary()
        verdicts, used = [], []
        for row in summary.iter_rows(named=True):
            verdict = self._judged_attempt(f"{row['run']}-{row['attempt']}")["verdict"]
            counts = self._judged_attempt(row["run"])["attempt"] == row["attempt"]
            verdicts.append(verdict)
            used.append(verdict == Verdict.VALID.value and counts and not row.get("control"))
        return summary.with_columns(pl.Series("verdict", verdicts), pl.Series("used", used))

    def summary_as_measured(self) -> pl.DataFrame:
        """Return one row per attempt as stored in the campaign."""
        return self._campaign.summary()

    def run(self, run: str) -> dict[str, Any]:
        return next(self.documents([run]))

    def documents(self, runs: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield the documents of many runs, with the new verdicts and reasons."""
        runs = list(runs)
        documents = self._campaign.documents(map(self._attempt_name, runs))
        for run, document in zip(runs, documents, strict=True):
            judged = self._judged_attempt(run)
            yield {**document, "verdict": judged["verdict"], "reasons": judged["reasons"]}

    def recorded(self, run: str) -> Messages:
        return self._campaign.recorded(self._attempt_name(run))

    def records_path(self, run: str) -> Path:
        return self._campaign.records_path(self._attempt_name(run))

    def quantities(self, run: str) -> pl.DataFrame:
        return self._campaign.quantities(self._attempt_name(run))
