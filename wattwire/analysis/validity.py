"""Validity limits after the measurement: judge a campaign again, and say what a look saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.model.validity import (
    CONDITION_CODES,
    MISSED_TICKS,
    VALIDITY,
    ValidityLimits,
    broken_limits,
    missed_ticks_share,
    opened_words,
    with_current_names,
)
from wattwire.model.verdict import Reason, Verdict, worst
from wattwire.store import Campaign, Messages
from wattwire.store.campaign import used_attempt

CHANGED = "validity_changed"
"""Key of a study whose runs were judged again: what was changed, as it was typed."""
JUDGED_AGAIN = "Judged again after the measurement"
"""How the stamp of a page begins that shows other verdicts than its campaign's files hold."""


def reasons_at(
    row: Mapping[str, Any], document: Mapping[str, Any], limits: ValidityLimits
) -> list[Reason]:
    """Return the limits that a stored run breaks, by its row of the summary and its run.json."""
    conditions = {**row, MISSED_TICKS: missed_ticks_share(document.get("sampling") or {})}
    return broken_limits(conditions, document.get("resolution") or {}, limits)


class Rejudged:
    """A campaign as if it had been measured under other validity limits. Its files stay."""

    def __init__(self, campaign: Campaign, limits: ValidityLimits, typed: str) -> None:
        self._campaign, self._limits, self._typed = campaign, limits, typed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._campaign, name)

    @property
    def path(self) -> Path:
        return self._campaign.path

    @cached_property
    def study(self) -> dict[str, Any]:
        """The frozen study with the new limits, and with what was changed."""
        study = with_current_names(self._campaign.study, str(self.path))
        table = {key.name: getattr(self._limits, key.name) for key in fields(self._limits)}
        default = ValidityLimits()
        stated = study.get(VALIDITY, {})
        kept = {k: v for k, v in table.items() if k in stated or v != getattr(default, k)}
        return {**study, VALIDITY: kept, CHANGED: self._typed}

    @property
    def plan(self) -> list[dict[str, Any]]:
        return self._campaign.plan

    @property
    def machine(self) -> dict[str, Any]:
        return self._campaign.machine

    @cached_property
    def _attempts(self) -> dict[str, list[dict[str, Any]]]:
        """Each run's attempts in order: attempt, its new verdict and reasons."""
        judged: dict[str, list[dict[str, Any]]] = {}
        rows = self._campaign.summary().sort("attempt")
        for row in rows.iter_rows(named=True):
            document = self._campaign.run(f"{row['run']}-{row['attempt']}")
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

    def _judged(self, run: str) -> Mapping[str, Any]:
        """The attempt of a run that counts now; of `RUN-ATTEMPT` that one."""
        if run in self._attempts:
            return used_attempt(self._attempts[run])
        name, _, attempt = run.rpartition("-")
        return next(a for a in self._attempts[name] if str(a["attempt"]) == attempt)

    def _folder(self, run: str) -> str:
        return f"{run}-{self._judged(run)['attempt']}" if run in self._attempts else run

    def summary(self) -> pl.DataFrame:
        """One row per attempt, `verdict` and `used` as they are now."""
        summary = self._campaign.summary()
        verdicts, used = [], []
        for row in summary.iter_rows(named=True):
            verdict = self._judged(f"{row['run']}-{row['attempt']}")["verdict"]
            counts = self._judged(row["run"])["attempt"] == row["attempt"]
            verdicts.append(verdict)
            used.append(verdict == Verdict.OK.value and counts and not row.get("control"))
        return summary.with_columns(pl.Series("verdict", verdicts), pl.Series("used", used))

    def summary_as_measured(self) -> pl.DataFrame:
        """One row per attempt, as the campaign holds them."""
        return self._campaign.summary()

    def run(self, run: str) -> dict[str, Any]:
        judged = self._judged(run)
        new = {"verdict": judged["verdict"], "reasons": judged["reasons"]}
        return {**self._campaign.run(self._folder(run)), **new}

    def recorded(self, run: str) -> Messages:
        return self._campaign.recorded(self._folder(run))

    def quantities(self, run: str) -> pl.DataFrame:
        return self._campaign.quantities(self._folder(run))


def stamps(evidence: Evidence) -> list[str]:
    """Return what the page's head says of its limits: of a look, and of limits changed later."""
    told = []
    if evidence.study.get(VALIDITY, {}).get("look"):
        look = "For a look: no run was excluded for the state of the machine."
        told.append(f"{look} {_at_defaults(evidence)}".rstrip())
    if CHANGED in evidence.study:
        stored = evidence.reader.summary_as_measured()  # type: ignore[attr-defined]
        # The page's own attempts: without settling runs and those that count system calls.
        stored = stored.join(evidence.attempts, on=["run", "attempt"], how="semi")
        told.append(
            f"{JUDGED_AGAIN}, with {evidence.study[CHANGED]}: {_valid(evidence.attempts)}; as "
            f"measured, {_valid(stored)}. Its answers are exploratory."
        )
        limits = ValidityLimits(**evidence.study.get(VALIDITY, {}))
        typed = str(evidence.study[CHANGED])
        told += [one for one in opened_words(limits) if one.partition("=")[0] in typed]
    return told


def _valid(attempts: pl.DataFrame) -> str:
    valid = attempts.filter(pl.col("verdict") == Verdict.OK.value).height
    return (
        f"{valid} of {words.plural(attempts.height, 'run')} {'is' if valid == 1 else 'are'} valid"
    )


def _at_defaults(evidence: Evidence) -> str:
    """How many runs the default limits would have excluded, and for what; "" without a run."""
    if not evidence.attempts.height:
        return ""
    codes: Counter[str] = Counter()
    excluded = 0
    for row in evidence.attempts.iter_rows(named=True):
        document = evidence.document(row["run"], row["attempt"])
        broken = {reason.code for reason in reasons_at(row, document, ValidityLimits())}
        excluded += bool(broken)
        codes.update(code.replace("_", " ") for code in broken)
    tried = words.plural(evidence.attempts.height, "run")
    if not excluded:
        return f"The default limits would have excluded none of {tried}."
    share = words.percent(excluded / evidence.attempts.height)
    why = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    return f"The default limits would have excluded {excluded} of {tried} ({share}): {why}."
