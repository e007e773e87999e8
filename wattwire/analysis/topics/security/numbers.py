"""Compute what uninvited nodes received, and whether payloads were on the link in plain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.setting_purposes import SECURED, SECURITY
from wattwire.model.study import PROOF

ONLY_TREATMENT = "all runs"


@dataclass(frozen=True)
class Proved:
    """A run that proves security. `frames` is the number of frames with a piece of the payload.

    `level` is that of the setting of security. A number that is not known is None; `absent` is the
    reason why no frame was searched.
    """

    run: str
    treatment: str
    level: str
    protocol: str
    cipher: str
    uninvited: int
    admitted: int
    received: int | None
    delivered: int | None
    frames: int | None
    frames_searched: int
    absent: str = ""

    @property
    def is_secured(self) -> bool:
        """Return whether the treatment is secured."""
        return self.level == SECURED

    @property
    def has_hole(self) -> bool:
        """Return whether a secured treatment admitted a node, or showed or passed a message."""
        return self.is_secured and (
            self.admitted > 0 or any((self.received, self.delivered, self.frames))
        )

    @property
    def is_blind(self) -> bool:
        """Return whether the proof of an open treatment found nothing, although all is open."""
        return not self.is_secured and self.frames == 0


@dataclass(frozen=True)
class Security:
    """All runs that prove security: `planned` ones, their results, and those without a result."""

    planned: int = 0
    proved: tuple[Proved, ...] = ()
    unproved: tuple[str, ...] = ()

    @property
    def holes(self) -> tuple[Proved, ...]:
        """Return the runs that show a hole."""
        return tuple(run for run in self.proved if run.has_hole)

    @property
    def secured(self) -> tuple[Proved, ...]:
        """Return the runs of secured treatments."""
        return tuple(run for run in self.proved if run.is_secured)

    @property
    def uninvited(self) -> int:
        """Return the number of uninvited nodes in the runs of secured treatments."""
        return sum(run.uninvited for run in self.secured)

    @property
    def unsearched(self) -> tuple[Proved, ...]:
        """Return the runs of secured treatments whose frames were not searched."""
        return tuple(run for run in self.secured if run.frames is None)

    @property
    def frames_searched(self) -> int:
        """Return the number of frames searched in the runs of secured treatments."""
        return sum(run.frames_searched for run in self.secured)

    @property
    def open_seen(self) -> tuple[Proved, ...]:
        """Return the runs of open treatments in which the payload was seen on the link."""
        return tuple(run for run in self.proved if not run.is_secured and run.frames)

    @property
    def blind(self) -> tuple[Proved, ...]:
        """Return the runs of open treatments in which the payload was not seen on the link."""
        return tuple(run for run in self.proved if run.is_blind)


def security(evidence: Evidence) -> Security:
    """Return the results of the runs that prove security; empty without such runs."""
    planned = sum(entry.get("control") == PROOF for entry in evidence.plan)
    if evidence.imported or not planned:
        return Security()
    proved, unproved = [], []
    for key, frame in by_treatment(evidence, evidence.proofs).items():
        title = evidence.title_of_key(key) or ONLY_TREATMENT
        for row in frame.iter_rows(named=True):
            document = evidence.reader.run(f"{row['run']}-{row['attempt']}")
            if document.get("proof"):
                proved.append(_proved(row, document, title, evidence))
            else:
                reasons = [str(reason["detail"]) for reason in document.get("reasons", ())]
                reasons += [str(document.get("outcome_detail") or "")]
                unproved.append(f"{row['run']}: {'; '.join(filter(None, reasons))}")
    return Security(planned, tuple(proved), tuple(unproved))


def _proved(
    row: Mapping[str, Any], document: Mapping[str, Any], title: str, evidence: Evidence
) -> Proved:
    proof, ready = document["proof"], [node.get("ready") or {} for node in document["nodes"]]
    effective = [line.get("effective") or {} for line in ready]
    return Proved(
        str(row["run"]),
        title,
        _level(document, evidence),
        _joined(each.get("security_protocol") for each in effective),
        _joined(each.get("security_cipher") for each in effective),
        len(proof["uninvited"]),
        sum(bool(node["admitted"]) for node in proof["uninvited"]),
        row.get("uninvited_received"),
        row.get("uninvited_delivered"),
        row.get("fill_on_link"),
        int(proof["frames_searched"]),
        str(proof.get("fill_absent", "")),
    )


def _level(document: Mapping[str, Any], evidence: Evidence) -> str:
    """Return the level of the setting with the purpose of security."""
    levels = {**document.get("levels", {}), **document.get("treatment", {})}
    purposes = evidence.reader.machine.get("setting_purposes", {})
    for cell in document["cells"].values():
        for name, purpose in purposes.get(str(cell).partition("/")[0], {}).items():
            if purpose == SECURITY:
                return str(levels.get(f"settings.{name}", ""))
    return ""


def _joined(words: Iterable[Any]) -> str:
    """Return the different words that nodes report, without empty ones."""
    return ", ".join(dict.fromkeys(str(word) for word in words if word))
