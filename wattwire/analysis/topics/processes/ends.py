"""Find repeats of a command that failed, and attached systems that ended within the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wattwire.analysis.topics.processes.executed import Executed

UNMEASURED, SIGNAL, EXIT_CODE = "unmeasured", "signal", "exit code"


@dataclass(frozen=True)
class Cause:
    """The repeats that failed for one cause: `kind` is UNMEASURED, SIGNAL or EXIT_CODE.

    `code` is the signal or the exit code.
    """

    kind: str
    code: int | None
    repeats: tuple[int, ...]
    is_of_all: bool


@dataclass(frozen=True)
class Failures:
    """The failed repeats of a command or a variant, of as many `repeats`."""

    variant: str
    failed: int
    repeats: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class EarlyEnd:
    """An attached target that ended this long (s) after the window began, which `for_s` planned."""

    target: str
    ended_s: float
    for_s: float | None


def failures(executed: Executed) -> Failures | None:
    """Return the failed repeats; None if none failed.

    A stop that wattwire requested is not a failure.
    """
    blocks_by_cause: dict[tuple[str, int | None], list[int]] = {}
    if executed.lost_blocks:
        blocks_by_cause[UNMEASURED, None] = [*executed.lost_blocks]
    for repeat in executed.repeats:
        if repeat.get("ended_by") != "itself":
            continue
        for kind, column in ((SIGNAL, "exit_signal"), (EXIT_CODE, "exit_code")):
            if repeat.get(column):
                blocks_by_cause.setdefault((kind, repeat[column]), []).append(repeat["block"])
                break
    failed = sum(map(len, blocks_by_cause.values()))
    repeats = len(executed.repeats) + len(executed.lost_blocks)
    causes = tuple(
        Cause(kind, code, tuple(sorted(blocks)), len(blocks) == repeats)
        for (kind, code), blocks in blocks_by_cause.items()
    )
    return Failures(executed.variant, failed, repeats, causes) if failed else None


def early_ends(executed: Executed) -> Iterator[EarlyEnd]:
    """Yield the attached targets that ended within the window."""
    request = executed.request
    for index, target in enumerate(request.attached):
        ends_s = executed.values(f"ended_s.attached{index}")
        if ends_s:
            yield EarlyEnd(target.label, min(ends_s), request.for_s or None)
