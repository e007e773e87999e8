"""List the notices on the validity limits of a campaign: not applied, changed or disabled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.rejudged import reasons_at
from wattwire.model.validity import ValidityLimits, disabled_limits
from wattwire.model.verdict import Verdict


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
