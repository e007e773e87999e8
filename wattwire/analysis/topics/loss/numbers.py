"""Count the deliveries of each treatment: received, failed, lost, undelivered and never sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.model.derived import column, share_of_due

FEW = 0.001
"""Share of the due messages up to which skipped slots of a timer are no result."""
NAMED_MAX = 5
"""Maximum number of treatments that a sentence on failed calls or unsent messages names."""
COUNTS = (
    "sent", "expected", "received_unique", "failed", "lost", "undelivered", "late", "duplicates",
    "corrupt", "foreign",
)  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """Sums over the runs of a treatment that know a count; None if no run knows it.

    In `unknown_runs`, a sender left no records, so that nothing of what it sent is known.
    """

    treatment: tuple[str, ...]
    runs: int
    unknown_runs: int
    sent: int | None
    expected: int | None
    received_unique: int | None
    failed: int | None
    lost: int | None
    undelivered: int | None
    late: int | None
    duplicates: int | None
    corrupt: int | None
    foreign: int | None

    @property
    def excess(self) -> int | None:
        """Received, failed, lost and undelivered deliveries beyond the expected ones, usually 0.

        It is None if a count is unknown.
        """
        if self.received_unique is None or self.lost is None or self.expected is None:
            return None
        others = (self.failed or 0) + (self.undelivered or 0)
        return self.received_unique + others + self.lost - self.expected

    @property
    def is_partly_unknown(self) -> bool:
        """Whether some runs, but not all, have unknown counts."""
        return 0 < self.unknown_runs < self.runs


@dataclass(frozen=True)
class Starts:
    """Times (s) that the nodes of a cell's role took to start and to discover their peers.

    A time is None if no node reported it.
    """

    cell: str
    role: str
    nodes: int
    startup_s: float | None
    startup_max_s: float | None
    discovery_s: float | None
    discovery_max_s: float | None


@dataclass(frozen=True)
class Affected:
    """A treatment with failed or unsent messages: their number, and their share of the due ones."""

    title: str
    messages: float
    share: float


@dataclass(frozen=True)
class AffectedTreatments:
    """The first NAMED_MAX treatments with failed or unsent messages, and the number of `more`."""

    named: tuple[Affected, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class Loss:
    """The counts of all treatments and runs. `has_messages` is false if the campaign sent none.

    `failed` and `unsent` are the treatments with failed calls and with messages that were due and
    never sent. The costs of a treatment are not compared if a run has more failed or lost calls
    than the share `failed_share_max`.
    """

    has_messages: bool = False
    runs: int = 0
    unknown_runs: int = 0
    runs_with_loss: int = 0
    expected: float = 0.0
    lost: float = 0.0
    failed: AffectedTreatments = AffectedTreatments()
    unsent: AffectedTreatments = AffectedTreatments()
    treatments: tuple[Counts, ...] = ()
    starts: tuple[Starts, ...] = ()
    has_warm_up: bool = False
    failed_share_max: float = FAILED_MAX

    @property
    def share(self) -> float:
        """The share of the expected deliveries that was lost; 0 if none was expected."""
        return self.lost / self.expected if self.expected else 0.0


def loss(evidence: Evidence) -> Loss:
    """Return the counts of the valid runs.

    Imported data and commands have only failed and unsent messages.
    """
    failed, unsent = failed_calls(evidence), never_sent(evidence)
    if not evidence.has_messages:
        return Loss(failed=failed, unsent=unsent)
    frame = evidence.usable
    expected, lost = column(frame, "expected"), column(frame, "lost")
    groups = by_treatment(evidence, frame)
    return Loss(
        True,
        frame.height,
        _unknown_runs(frame),
        int((lost > 0).sum()),
        float(np.nansum(expected)),
        float(np.nansum(lost)),
        failed,
        unsent,
        tuple(_counts(key, of_treatment) for key, of_treatment in groups.items()),
        tuple(_starts(evidence)),
        bool((column(frame, "expected_after_warmup") < expected).any()),
    )


def failed_calls(evidence: Evidence) -> AffectedTreatments:
    """Return the treatments with failed calls."""
    return _affected(evidence, "failed", 0.0)


def never_sent(evidence: Evidence) -> AffectedTreatments:
    """Return the treatments of which more than the share FEW of the due messages were never sent.

    A loss is a share of the messages that were sent, so it is small if a server died early.
    """
    return _affected(evidence, "unsent", FEW)


def _affected(evidence: Evidence, name: str, share_min: float) -> AffectedTreatments:
    treatments = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        share = share_of_due(frame, name)
        if share > share_min:
            title = evidence.title_of_key(key)
            treatments.append(Affected(title, float(np.nansum(column(frame, name))), share))
    return AffectedTreatments(tuple(treatments[:NAMED_MAX]), len(treatments[NAMED_MAX:]))


def _unknown_runs(frame: pl.DataFrame) -> int:
    return frame["sent"].null_count() if "sent" in frame.columns else 0


def _counts(treatment: tuple[str, ...], frame: pl.DataFrame) -> Counts:
    sums = {name: _known_sum(frame, name) for name in COUNTS}
    return Counts(treatment, frame.height, _unknown_runs(frame), **sums)


def _known_sum(frame: pl.DataFrame, name: str) -> int | None:
    values = column(frame, name)
    values = values[np.isfinite(values)]
    return int(values.sum()) if values.size else None


def _starts(evidence: Evidence) -> Iterator[Starts]:
    """Yield the times of each role of each cell, from what its nodes reported in READY."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in evidence.usable["run"].to_list():
        for node in evidence.runs[run].get("nodes", []):
            if node.get("ready"):
                groups.setdefault((node["cell"], node["role"]), []).append(node["ready"])
    for (cell, role), reports in sorted(groups.items()):
        times = [_median_and_max_s(reports, key) for key in ("startup_ns", "discovery_ns")]
        yield Starts(cell, role, len(reports), *times[0], *times[1])


def _median_and_max_s(
    reports: Sequence[dict[str, Any]], key: str
) -> tuple[float | None, float | None]:
    times_s = [report[key] / 1e9 for report in reports if report.get(key) is not None]
    return (float(np.median(times_s)), max(times_s)) if times_s else (None, None)
