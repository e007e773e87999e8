"""Validity limits after the measurement: rejudged campaigns, and notices about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.model.stored_study import StoredStudy
from wattwire.model.validity import (
    CONDITION_CODES,
    MISSED_TICKS,
    VALIDITY,
    ValidityLimits,
    broken_limits,
    missed_ticks_share,
    opened_words,
)
from wattwire.model.verdict import Reason, Verdict, worst
from wattwire.store import Campaign, Messages
from wattwire.store.campaign import used_attempt

JUDGED_AGAIN = "Judged again after the measurement"
"""First words of the notice on a report whose verdicts differ from those in the files."""


def reasons_at(
    row: Mapping[str, Any], document: Mapping[str, Any], limits: ValidityLimits
) -> list[Reason]:
    """Return the limits that a stored run breaks, from its summary row and its run.json."""
    conditions = {**row, MISSED_TICKS: missed_ticks_share(document.get("sampling") or {})}
    return broken_limits(conditions, document.get("resolution") or {}, limits)


class Rejudged:
    """A campaign judged again under other validity limits; its files do not change."""

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
        """The frozen study with the new limits in place of its own."""
        study, default = self._campaign.study, ValidityLimits()
        table, stated = vars(self._limits), study.stated(VALIDITY)
        kept = {k: v for k, v in table.items() if k in stated or v != getattr(default, k)}
        document = {**study.document, VALIDITY: kept}
        return replace(study, validity=self._limits, document=document)

    @property
    def plan(self) -> list[dict[str, Any]]:
        return self._campaign.plan

    @property
    def machine(self) -> dict[str, Any]:
        return self._campaign.machine

    @cached_property
    def _attempts(self) -> dict[str, list[dict[str, Any]]]:
        """Each run's attempts in order, each with its number, new verdict and reasons."""
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

    def _judged_attempt(self, run: str) -> Mapping[str, Any]:
        """Return the attempt of `run` that counts under the new limits, or RUN-ATTEMPT itself."""
        if run in self._attempts:
            return used_attempt(self._attempts[run])
        name, _, attempt = run.rpartition("-")
        return next(a for a in self._attempts[name] if str(a["attempt"]) == attempt)

    def _attempt_name(self, run: str) -> str:
        return f"{run}-{self._judged_attempt(run)['attempt']}" if run in self._attempts else run

    def summary(self) -> pl.DataFrame:
        """Return one row per attempt, with `verdict` and `used` under the new limits."""
        summary = self._campaign.summary()
        verdicts, used = [], []
        for row in summary.iter_rows(named=True):
            verdict = self._judged_attempt(f"{row['run']}-{row['attempt']}")["verdict"]
            counts = self._judged_attempt(row["run"])["attempt"] == row["attempt"]
            verdicts.append(verdict)
            used.append(verdict == Verdict.VALID.value and counts and not row.get("control"))
        return summary.with_columns(pl.Series("verdict", verdicts), pl.Series("used", used))

    def summary_as_measured(self) -> pl.DataFrame:
        """Return one row per attempt, as stored in the campaign."""
        return self._campaign.summary()

    def run(self, run: str) -> dict[str, Any]:
        judged = self._judged_attempt(run)
        new = {"verdict": judged["verdict"], "reasons": judged["reasons"]}
        return {**self._campaign.run(self._attempt_name(run)), **new}

    def recorded(self, run: str) -> Messages:
        return self._campaign.recorded(self._attempt_name(run))

    def quantities(self, run: str) -> pl.DataFrame:
        return self._campaign.quantities(self._attempt_name(run))


def stamps(evidence: Evidence) -> list[str]:
    """Return the report's notices on validity limits: none applied, or limits changed later."""
    sentences = []
    if evidence.study.validity.look:
        notice = "A look: no run is excluded for the machine's state."
        sentences.append(f"{notice} {_default_limits_sentence(evidence)}".rstrip())
    elif not evidence.validity_changed:
        sentences += opened_words(evidence.study.validity)
    if evidence.validity_changed:
        stored = evidence.reader.summary_as_measured()  # type: ignore[attr-defined]
        # The report's attempts, without settling runs and runs that count system calls.
        stored = stored.join(evidence.attempts, on=["run", "attempt"], how="semi")
        sentences.append(
            f"{JUDGED_AGAIN}, with {evidence.validity_changed}: "
            f"{_valid_phrase(evidence.attempts)}; as measured, {_valid_phrase(stored)}. "
            "Its answers are exploratory."
        )
        sentences += [
            phrase
            for phrase in opened_words(evidence.study.validity)
            if phrase.partition("=")[0] in evidence.validity_changed
        ]
    return sentences


def _valid_phrase(attempts: pl.DataFrame) -> str:
    valid = attempts.filter(pl.col("verdict") == Verdict.VALID.value).height
    return (
        f"{valid} of {words.plural(attempts.height, 'run')} {'is' if valid == 1 else 'are'} valid"
    )


def _default_limits_sentence(evidence: Evidence) -> str:
    """Return a sentence on the runs that the default limits would exclude; "" if there are none."""
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
    counts_text = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    return f"The default limits would have excluded {excluded} of {tried} ({share}): {counts_text}."
