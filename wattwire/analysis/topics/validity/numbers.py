"""Judge campaigns again by other validity limits, and list notices on the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.model.stored_study import StoredStudy
from wattwire.model.validity import (
    CONDITION_CODES,
    MISSED_TICKS,
    VALIDITY,
    ValidityLimits,
    broken_limits,
    disabled_limits,
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


@dataclass(frozen=True)
class Look:
    """Notice on a look, which excludes no run; `excluded` of `runs` runs violate default limits."""

    runs: int
    excluded: int
    codes: tuple[tuple[str, int], ...]
    """Reason codes with their numbers of runs, in descending order."""
    of_command: bool = False
    """Whether `exec` chose the look, not the user."""
    kind: ClassVar[str] = "look"

    @property
    def share(self) -> float:
        """The share of the runs that violate default limits; 0 without runs."""
        return self.excluded / self.runs if self.runs else 0.0


@dataclass(frozen=True)
class JudgedAgain:
    """Notice on limits that were changed after the measurement.

    It has the numbers of valid runs and of all runs under the new and under the original limits.
    """

    changes: str
    valid: int
    runs: int
    valid_as_measured: int
    runs_as_measured: int
    kind: ClassVar[str] = "judged_again"


@dataclass(frozen=True)
class DisabledLimit:
    """A limit on a share that is at least 1 and therefore excludes no run."""

    key: str
    limit: float
    kind: ClassVar[str] = "limit_disabled"

    @property
    def percent(self) -> float:
        """The limit in percent."""
        return 100 * self.limit


Notice = Look | JudgedAgain | DisabledLimit
"""`kind` is the kind of a notice in analysis.json."""


@dataclass(frozen=True)
class Validity:
    """The notices on a campaign's validity limits."""

    notices: tuple[Notice, ...] = ()


def validity(evidence: Evidence) -> Validity:
    """Return the notices on validity limits: not applied, changed after the runs, or disabled."""
    return Validity(tuple(_notices(evidence)))


def stored(result: Validity) -> dict[str, Any]:
    """Return the notices as JSON values."""
    return {"validity_notices": [_entry(notice) for notice in result.notices]}


def disabled(limits: ValidityLimits) -> list[DisabledLimit]:
    """Return the limits on shares that are at least 1 and therefore exclude no run."""
    return [DisabledLimit(key, limit) for key, limit in disabled_limits(limits).items()]


def _notices(evidence: Evidence) -> Iterator[Notice]:
    limits, changes = evidence.study.validity, evidence.validity_changed
    if limits.look:
        look = _look(evidence)
        if look.excluded or not look.of_command:
            yield look
    elif not changes:
        yield from disabled(limits)
    if changes:
        stored = evidence.reader.summary_as_measured()  # type: ignore[attr-defined]
        # Use the report's attempts: no settling runs, no runs that count system calls.
        stored = stored.join(evidence.attempts, on=["run", "attempt"], how="semi")
        attempts = evidence.attempts
        yield JudgedAgain(changes, _valid(attempts), attempts.height, _valid(stored), stored.height)
        yield from (notice for notice in disabled(limits) if notice.key in changes)


def _valid(attempts: pl.DataFrame) -> int:
    return attempts.filter(pl.col("verdict") == Verdict.VALID.value).height


def _look(evidence: Evidence) -> Look:
    """Return the notice on a look, with the runs that the default limits would exclude."""
    codes: Counter[str] = Counter()
    excluded = 0
    for row in evidence.attempts.iter_rows(named=True):
        document = evidence.document(row["run"], row["attempt"])
        broken = {reason.code for reason in reasons_at(row, document, ValidityLimits())}
        excluded += bool(broken)
        codes.update(sorted(broken))
    of_command = evidence.study.request is not None
    return Look(evidence.attempts.height, excluded, tuple(codes.most_common()), of_command)


def _entry(notice: Notice) -> dict[str, Any]:
    values = dict(vars(notice))
    if isinstance(notice, Look):
        values["codes"] = dict(notice.codes)
    return {"kind": notice.kind, **values}
