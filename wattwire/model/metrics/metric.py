"""Define a metric: its name, unit, words, direction, and the lists that contain it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

RUN, NODE, PROCESS, COUNTER, PRINTED = "run", "node", "process", "counter", "printed"
LOWER, HIGHER = "lower", "higher"
MEASURED, ESTIMATE, BOUND, GIVEN = "measured", "estimate", "bound", "given"
IDENTITY, VERDICT = "identity", "verdict"
NUMERIC_KINDS = (MEASURED, ESTIMATE)
OFFERED, COMPARED = "offered", "compared"
FIGURES, EVIDENCE, HARNESS = "figures", "evidence", "harness"
"""Lists of metrics. Each is a field of `Metric`.

OFFERED contains the responses that a page offers without a question, and COMPARED the costs that a
comparison compares without `--response`; they scatter little, unlike tail percentiles. FIGURES
contains the main results of a run, EVIDENCE the evidence for a verdict, and HARNESS the cost and
disturbance of the harness.
"""
ENERGY = "an energy counter"
SYSTEM_CALLS = "runs that count system calls (plan.syscall_runs)"
SYSTEM_CALLS_COUNTED = "syscall_calls"
"""Quantity of a meter that counts system calls."""
SENT_RECORDS = "the records of all senders"
SUM, WORST = "sum", "worst"
"""Ways to combine the values of several hosts."""
MEAN, HIGHEST = "mean", "highest"
"""Further ways to combine the values of several processes with the same name."""


@dataclass(frozen=True)
class Metric:
    """A number or a text that each run has.

    - `summary` describes its computation. columns.json contains it.
    - `kind` is MEASURED, ESTIMATE, BOUND, GIVEN, IDENTITY or VERDICT.
    - `of` is RUN, NODE, PROCESS, COUNTER or PRINTED. `of_flow` states that each flow also has it,
      and `of_emulated` that it is valid although an emulator executed a device. Counts and
      conditions are valid in any case.
    - `needs` is its requirement: ENERGY, SYSTEM_CALLS, SENT_RECORDS, the name of a quantity that a
      meter reads, or "" for none. Without it, the value is unknown.
    - `over_hosts` is SUM or WORST for metrics that are read on each host of a rig.
    - `over_processes` is SUM, MEAN or HIGHEST for metrics in the table of processes.
    - `direction` is the better direction, LOWER or HIGHER.
    - `is_share` is true for shares, which are compared by differences instead of ratios.
    - `title` and `verb` name it in a sentence: "A {verb} 0.5 times the {title} of B".
    - `also` is a regular expression for its synonyms.
    - `offered`, `compared`, `figures`, `evidence` and `harness` are its position in the
      list of this name, from 1; 0 if the list does not contain it.
    """

    name: str
    unit: str
    summary: str
    _: KW_ONLY
    kind: str = MEASURED
    of: str = RUN
    of_flow: bool = False
    of_emulated: bool = False
    needs: str = ""
    over_hosts: str = SUM
    over_processes: str = ""
    direction: str = LOWER
    is_share: bool = False
    title: str = ""
    verb: str = "had"
    also: str = ""
    offered: int = 0
    compared: int = 0
    figures: int = 0
    evidence: int = 0
    harness: int = 0

    @property
    def is_number(self) -> bool:
        """Return whether the metric can be a response. Identities and verdicts cannot."""
        return self.kind in NUMERIC_KINDS and self.name != "outcome"

    @property
    def words(self) -> str:
        """Return the title, or the name with spaces if there is no title."""
        return self.title or self.name.replace("_", " ")

    @property
    def is_read(self) -> bool:
        """Return whether the metric requires a quantity that a meter reads."""
        return self.needs not in ("", ENERGY, SYSTEM_CALLS, SENT_RECORDS)
