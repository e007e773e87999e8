"""Find messages that wait for an acknowledgement: Nagle's algorithm and delayed acknowledgements.

What it detects: treatments with a latency mode at 40 or 80 ms (`ack_waits.py`).

How: if settings with a relevant purpose vary, the share of messages in the mode is compared between
the runs of a block.

What it misses: what `ack_waits.py` states. Without a contrast the cause is only a suspicion.

Reference: RFC 896; RFC 9293 §3.7.4 and §3.8.6.3; Linux include/net/tcp.h, TCP_DELACK_MIN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.ack_waits import Hit, hits_of, in_mode
from wattwire.analysis.topics.findings.detector import Detected, Searched
from wattwire.analysis.topics.findings.level_titles import (
    SharedLevels,
    level_title,
    levels_title,
    shared_levels,
    study_key,
)
from wattwire.analysis.topics.findings.run_pairs import (
    BLOCKS,
    FACTOR,
    OTHERWISE,
    PAIRS_NEEDED,
    ComparedShares,
    compared,
    run_pairs,
)
from wattwire.analysis.topics.findings.runs import Run, by_treatment, settings_with
from wattwire.model import words
from wattwire.model.setting_purposes import NAGLE_OFF, QUICK_ACK, SWITCH, WRITES_PER_MESSAGE


@dataclass(frozen=True)
class WaitingTreatment:
    """A treatment with the mode, in `runs` runs with `messages` messages.

    `inside` messages are in the mode, which has its centre at `centre_ms`, and `beside` are in the
    fuller neighbouring band. `excluded` of the `possible_runs` runs, whose messages may wait, are
    excluded. `title` is "" if no factor varies.
    """

    treatment: tuple[str, ...]
    title: str
    possible_runs: int
    runs: int
    excluded: int
    messages: int
    inside: int
    beside: int
    centre_ms: float

    @property
    def share(self) -> float:
        """The share of messages in the mode, in percent."""
        return 100 * self.inside / self.messages


@dataclass(frozen=True)
class ReportedSetting:
    """The values of a setting that nodes in runs with the mode reported; `yes` is "on"."""

    title: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Contrast(ComparedShares):
    """Share of messages in the mode at two levels of a setting, compared in pairs of runs.

    `on` and `off` are the titles of the levels.
    """

    setting: str
    purpose: str
    on: str
    off: str

    @property
    def proves(self) -> bool:
        """Whether the setting removes the mode. Fewer writes per message prove no cause."""
        return self.purpose != WRITES_PER_MESSAGE and super().proves


@dataclass(frozen=True)
class AckWaits:
    """Treatments with the mode, of `treatments` treatments.

    Contrasts use valid runs alone. `confirm` says what would confirm a suspected cause, and `keys`
    are the lines of a study file with the factors for FACTOR.
    """

    treatments: int
    rows: tuple[WaitingTreatment, ...]
    common: tuple[SharedLevels, ...] = ()
    settings: tuple[ReportedSetting, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    confirm: str = OTHERWISE
    keys: tuple[str, ...] = ()
    pairs_needed: int = PAIRS_NEEDED

    @property
    def is_shown(self) -> bool:
        """Whether a setting removes the mode."""
        return any(contrast.proves for contrast in self.contrasts)

    @property
    def inside(self) -> int:
        """The number of messages in the mode."""
        return sum(row.inside for row in self.rows)

    @property
    def messages(self) -> int:
        """The number of messages of these treatments."""
        return sum(row.messages for row in self.rows)

    @property
    def share(self) -> float:
        """The share of messages in the mode."""
        return self.inside / self.messages

    @property
    def runs(self) -> int:
        """The number of runs of these treatments."""
        return sum(row.runs for row in self.rows)

    @property
    def possible_runs(self) -> int:
        """The number of runs of these treatments whose messages may wait."""
        return sum(row.possible_runs for row in self.rows)

    @property
    def excluded(self) -> int:
        """The number of these runs that are excluded."""
        return sum(row.excluded for row in self.rows)

    @property
    def only_excluded(self) -> tuple[WaitingTreatment, ...]:
        """The treatments of which only excluded runs have the mode, if any run is excluded."""
        rows = (row for row in self.rows if row.excluded == row.possible_runs)
        return tuple(rows) if self.excluded else ()

    @property
    def centre_min_ms(self) -> float:
        """The centre of the fastest mode in ms."""
        return min(row.centre_ms for row in self.rows)

    @property
    def centre_max_ms(self) -> float:
        """The centre of the slowest mode in ms."""
        return max(row.centre_ms for row in self.rows)


@dataclass(frozen=True)
class DelayedAck(Detected):
    """The finding over all treatments, if there is one."""

    found: tuple[AckWaits, ...] = ()


def delayed_ack(searched: Searched) -> DelayedAck:
    """Search valid and excluded runs for messages that wait for an acknowledgement."""
    evidence, runs = searched.evidence, [*searched.runs, *searched.excluded]
    hits = hits_of(evidence, runs)
    if not hits:
        return DelayedAck()
    treatments = by_treatment(evidence, runs)
    confirm, keys = _confirmation(evidence, runs)
    waits = AckWaits(
        len(treatments),
        tuple(_waiting_treatment(evidence, hit) for hit in hits),
        shared_levels(evidence, (hit.treatment for hit in hits), treatments),
        tuple(_reported_settings(evidence, runs, hits)),
        tuple(_contrasts(evidence, searched.runs, hits)),
        confirm,
        keys,
    )
    return DelayedAck((waits,))


def _waiting_treatment(evidence: Evidence, hit: Hit) -> WaitingTreatment:
    return WaitingTreatment(
        tuple(word for _, word in hit.treatment),
        levels_title(evidence, hit.treatment),
        len(hit.runs),
        hit.mode.runs,
        sum(run.excluded for run in hit.runs),
        hit.mode.total,
        hit.inside,
        hit.mode.neighbours,
        hit.mode.centre / 1000,
    )


def _reported_settings(
    evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]
) -> Iterator[ReportedSetting]:
    """Yield the settings of Nagle's algorithm that nodes in runs with the mode reported."""
    mode_runs = [run for hit in hits for run in hit.runs]
    for name in settings_with(evidence, runs, NAGLE_OFF):
        values = sorted({value for run in mode_runs for value in run.in_force(name)})
        if values:
            switched = tuple({"yes": "on", "no": "off"}.get(value, value) for value in values)
            yield ReportedSetting(words.factor_title(name), switched)


def _contrasts(evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit]) -> Iterator[Contrast]:
    """Yield a contrast for each varied setting that may remove the mode."""
    for purpose in (NAGLE_OFF, QUICK_ACK, WRITES_PER_MESSAGE):
        for setting in settings_with(evidence, runs, purpose):
            name = f"settings.{setting}"
            levels = sorted(evidence.factors.get(name, ()))
            if len(levels) < 2:
                continue
            without, with_it = _contrasted_levels(purpose, levels)
            contrast = _contrast(evidence, runs, hits, (name, purpose, without, with_it))
            if contrast is not None:
                yield contrast


def _contrasted_levels(purpose: str, levels: Sequence[Any]) -> tuple[str, str]:
    """Return the level that should remove the mode and the level that should have it."""
    if set(levels) <= set(SWITCH):
        return "on", "off" if "off" in levels else "default"
    extremes = words.plain(levels[0]), words.plain(levels[-1])
    return extremes if purpose == WRITES_PER_MESSAGE else extremes[::-1]


def _contrast(
    evidence: Evidence, runs: Sequence[Run], hits: Sequence[Hit], setting: tuple[str, str, str, str]
) -> Contrast | None:
    name, purpose, without, with_it = setting
    hit_treatments = {hit.treatment for hit in hits}
    pairs = [
        (in_mode(slow), in_mode(fast))
        for slow, fast in run_pairs(evidence, runs, name, with_it, without)
        if slow.treatment(evidence.varied) in hit_treatments
    ]
    if not pairs:
        return None
    on, off = (level_title(evidence, name, word) for word in (without, with_it))
    return Contrast(*compared(pairs), name, purpose, on, off)


def _confirmation(evidence: Evidence, runs: Sequence[Run]) -> tuple[str, tuple[str, ...]]:
    """Return what would confirm the cause, and the lines of a study file for FACTOR."""
    names = [
        f"settings.{name}"
        for purpose in (NAGLE_OFF, QUICK_ACK)
        for name in settings_with(evidence, runs, purpose)
    ]
    fixed_names = [name for name in names if len(evidence.factors.get(name, ())) < 2]
    if len(fixed_names) < len(names):
        return BLOCKS, ()
    keys = tuple(study_key(name, _levels_to_compare(evidence, name)) for name in fixed_names)
    return FACTOR if keys else OTHERWISE, keys


def _levels_to_compare(evidence: Evidence, name: str) -> tuple[Any, Any]:
    """Return the two levels of a setting that a study should compare."""
    switches = (evidence.reader.machine.get("switches") or {}).values()
    is_switch = any(name == f"settings.{setting}" for names in switches for setting in names)
    return ('"default"', '"on"') if is_switch else (False, True)
