"""Compute what uninvited nodes received, and whether payloads were on the link in plain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.model.setting_purposes import SECURED, SECURITY, UNSECURED
from wattwire.model.study import PROOF
from wattwire.model.verdict import COMPLETE

ONLY_TREATMENT = "all runs"
COLUMNS = {
    "received": "messages received by uninvited nodes",
    "delivered": "messages of uninvited nodes that arrived",
    "frames": "frames with the payload",
}
"""Numbers that show a hole of a secured treatment if they are above zero."""


@dataclass(frozen=True)
class Proved:
    """A run that proves security. `frames` is the number of frames with a piece of the payload.

    - `level` is that of the setting of security; `pair` is the same for the runs of the open and
      the secured treatment that differ in nothing else.
    - `uninvited` counts the nodes that tried, `ready` those of them that were READY. `untried` has
      the ends of the others.
    - A number that is not known is None; `absent` is the reason why no frame was searched.
    - `open_runs` is the number of control runs of the open treatment of a secured one, and
      `blind_columns` are the COLUMNS that are 0 in them, too.
    """

    run: str
    treatment: str
    level: str
    protocol: str
    cipher: str
    uninvited: int
    ready: int
    received: int | None
    delivered: int | None
    frames: int | None
    frames_searched: int
    absent: str = ""
    frames_unsearched: int = 0
    untried: tuple[str, ...] = ()
    pair: str = ""
    open_runs: int = 0
    blind_columns: tuple[str, ...] = ()

    @property
    def is_secured(self) -> bool:
        """Return whether the treatment is secured."""
        return self.level == SECURED

    @property
    def has_hole(self) -> bool:
        """Return whether a secured treatment showed or passed a message.

        READY is no hole: uninvited nodes of one kind may have matched each other.
        """
        return self.is_secured and any((self.received, self.delivered, self.frames))

    def compared(self, runs: Iterable[Proved]) -> Proved:
        """Return this run with what the open treatment of the same pair shows in `runs`."""
        if not self.is_secured:
            return self
        opened = [run for run in runs if not run.is_secured and run.pair == self.pair]
        blind = [name for name in COLUMNS if {getattr(run, name) for run in opened} == {0}]
        return replace(self, open_runs=len(opened), blind_columns=tuple(blind))


@dataclass(frozen=True)
class Security:
    """All runs that prove security.

    They are the `planned` ones, their results, the reasons of those without a result, and the
    number of those that were not executed.
    """

    planned: int = 0
    proved: tuple[Proved, ...] = ()
    unproved: tuple[str, ...] = ()
    not_run: int = 0

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
        """Return the number of uninvited nodes that tried in the runs of secured treatments."""
        return sum(run.uninvited for run in self.secured)

    @property
    def ready(self) -> int:
        """Return the number of uninvited nodes in secured treatments that were READY."""
        return sum(run.ready for run in self.secured)

    @property
    def untried(self) -> tuple[tuple[str, str], ...]:
        """Return (run, end) of each uninvited node that never tried."""
        return tuple((run.run, end) for run in self.proved for end in run.untried)

    @property
    def unsearched(self) -> tuple[Proved, ...]:
        """Return the runs of secured treatments whose frames were not searched."""
        return tuple(run for run in self.secured if run.frames is None)

    @property
    def cut(self) -> tuple[Proved, ...]:
        """Return the runs whose capture was full, so that later frames were not searched."""
        return tuple(run for run in self.proved if run.frames_unsearched)

    @property
    def frames_searched(self) -> int:
        """Return the number of frames searched in the runs of secured treatments."""
        return sum(run.frames_searched for run in self.secured)

    @property
    def blind(self) -> tuple[tuple[str, tuple[Proved, ...]], ...]:
        """Return (column, secured runs) of each of COLUMNS that is 0 in an open treatment, too."""
        pairs = (
            (words, tuple(run for run in self.secured if column in run.blind_columns))
            for column, words in COLUMNS.items()
        )
        return tuple((words, runs) for words, runs in pairs if runs)

    @property
    def uncontrolled(self) -> tuple[Proved, ...]:
        """Return the secured runs without a control run of their open treatment."""
        return tuple(run for run in self.secured if not run.open_runs)


def security(evidence: Evidence) -> Security:
    """Return the results of the runs that prove security; empty without such runs."""
    planned = sum(
        entry.get("control") == PROOF and not entry.get("skipped") for entry in evidence.plan
    )
    if evidence.imported or not planned:
        return Security()
    proved, unproved = [], []
    for key, frame in by_treatment(evidence, evidence.proofs).items():
        title = evidence.title_of_key(key) or ONLY_TREATMENT
        for row in frame.iter_rows(named=True):
            document = evidence.reader.run(f"{row['run']}-{row['attempt']}")
            run = _proved(row, document, title, evidence) if document.get("proof") else None
            if reason := _why_unproved(run, row, document):
                unproved.append(f"{row['run']}: {reason}")
            elif run:
                proved.append(run)
    compared = tuple(run.compared(proved) for run in proved)
    return Security(planned, compared, tuple(unproved), planned - len(proved) - len(unproved))


def _why_unproved(run: Proved | None, row: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return why a run proves nothing; "" if it proves something. A hole needs no whole run."""
    if run is None or row.get("outcome") not in COMPLETE:
        if run is not None and run.has_hole:
            return ""
        details = [str(reason["detail"]) for reason in document.get("reasons", ())]
        details += [str(document.get("outcome_detail") or "")]
        return "; ".join(filter(None, details)) or f"the run {row.get('outcome') or 'failed'}"
    if run.level not in {SECURED, UNSECURED}:
        return "the level of its security is not known"
    if run.has_hole:
        return ""
    if not row.get("received_unique"):
        return "its own nodes received no message"
    if run.received is None:
        return "; ".join(run.untried) or "what uninvited nodes received is not known"
    return ""


def _proved(
    row: Mapping[str, Any], document: Mapping[str, Any], title: str, evidence: Evidence
) -> Proved:
    proof, ready = document["proof"], [node.get("ready") or {} for node in document["nodes"]]
    effective = [line.get("effective") or {} for line in ready]
    tried = [node for node in proof["uninvited"] if node["tried"]]
    levels, setting = all_levels(document), _setting(document, evidence)
    level = str(levels.pop(f"settings.{setting}", ""))
    return Proved(
        str(row["run"]),
        title,
        level,
        _joined(each.get("security_protocol") for each in effective),
        _joined(each.get("security_cipher") for each in effective),
        len(tried),
        sum(bool(node["ready"]) for node in tried),
        row.get("uninvited_received"),
        row.get("uninvited_delivered"),
        row.get("fill_on_link"),
        int(proof["frames_searched"]),
        str(proof.get("fill_absent", "")),
        int(proof.get("frames_unsearched", 0)),
        tuple(
            f"{node['process']} {node['end']}" for node in proof["uninvited"] if not node["tried"]
        ),
        json.dumps(levels, sort_keys=True, default=str),
    )


def _setting(document: Mapping[str, Any], evidence: Evidence) -> str:
    """Return the name of the setting with the purpose of security; "" without one."""
    purposes = evidence.reader.machine.get("setting_purposes", {})
    for cell in document["cells"].values():
        for name, purpose in purposes.get(str(cell).partition("/")[0], {}).items():
            if purpose == SECURITY:
                return str(name)
    return ""


def _joined(words: Iterable[Any]) -> str:
    """Return the different words that nodes report, without empty ones."""
    return ", ".join(dict.fromkeys(str(word) for word in words if word))
