"""Print the CPU time of a command or an attached system in one sentence."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from wattwire.analysis.processes import PEAK_IS_BOUND, Executed, mean_of
from wattwire.model.deployment import Request
from wattwire.model.metrics import find, is_printed
from wattwire.model.words import MISSING, duration, listed, listed_first, number
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import Interval

PHRASES = Phrases(
    "processes_in_short",
    {
        "headline_printed": (
            "“{subject}” printed {figures} and used {cpu_time} s of CPU time in {times}{seconds}."
        ),
        "headline": "“{subject}” used {cpu_time} s of CPU time in {times}{seconds}.",
        "early": (
            "{target} ended {ended} after the window began{planned}, so its values end there."
        ),
        "failed": "{subject} failed in {failed} of {repeats:plural repeat} ({causes:listed}).",
        "command": "The command",
        "exit_code": "exit code {code}",
        "signal": "signal {signal}",
        "unmeasured": "not measured",
        "cause_in": "{cause} in {repeats}",
        "wall": "wall time",
        "window": "window",
        "cpu_s": "CPU time",
        "cpu_user_s": "user",
        "cpu_system_s": "kernel",
        "memory_peak_kib": "peak memory",
        "messages": "messages",
        "energy_j": "energy",
        "planned": " (--for {seconds})",
        "nothing": "“{subject}”: nothing was measured.",
    },
)
SUBJECT_MAX = 80
REPEATS_MAX = 10
"""Maximum number of repeats that a sentence names."""
PRINTED_MAX = 3
"""Maximum number of printed figures in the first sentence."""


def subject(request: Request) -> str:
    """Return the command line and the labels of the attached systems, each shortened.

    A long command hides no attached system, because the figures after it are those of both.
    """
    attached = _shortened(", ".join(target.label for target in request.attached), SUBJECT_MAX // 2)
    space = SUBJECT_MAX - len(" and ") - len(attached) if attached else SUBJECT_MAX
    command = _shortened(shlex.join(request.command), space)
    return " and ".join(part for part in (command, attached) if part)


def _shortened(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def early_ends(executed: Executed) -> list[Phrase]:
    """Return a sentence on each attached target that ended within the window."""
    request = executed.request
    planned = PHRASES("planned", seconds=duration(request.for_s)) if request.for_s else ""
    sentences = []
    for index, target in enumerate(request.attached):
        ends_s = executed.values(f"ended_s.attached{index}")
        if ends_s:
            ended = duration(min(ends_s))
            sentences.append(PHRASES("early", target=target.label, ended=ended, planned=planned))
    return sentences


def failed(executed: Executed) -> Phrase:
    """Return a sentence on the failed repeats, or "" if none failed.

    A stop that wattwire requested is not a failure.
    """
    blocks_by_cause = (
        {PHRASES("unmeasured"): [*executed.lost_blocks]} if executed.lost_blocks else {}
    )
    for row in executed.summary.to_dicts():
        if row.get("ended_by") != "itself":
            continue
        if row.get("exit_signal"):
            cause = PHRASES("signal", signal=row["exit_signal"])
        elif row.get("exit_code"):
            cause = PHRASES("exit_code", code=row["exit_code"])
        else:
            continue
        blocks_by_cause.setdefault(cause, []).append(row["block"])
    count = sum(map(len, blocks_by_cause.values()))
    repeats = len(executed.summary) + len(executed.lost_blocks)
    causes = [
        cause
        if len(blocks) == repeats
        else PHRASES("cause_in", cause=cause, repeats=numbered_repeats(blocks))
        for cause, blocks in blocks_by_cause.items()
    ]
    name = executed.variant or PHRASES("command")
    return (
        PHRASES("failed", subject=name, failed=count, repeats=repeats, causes=causes)
        if count
        else Phrase()
    )


def numbered_repeats(blocks: Sequence[int]) -> str:
    """Return the numbers of repeats in words, such as "repeats 1 and 3"."""
    noun = "repeat" if len(blocks) == 1 else "repeats"
    return f"{noun} {listed_first(list(map(str, sorted(blocks))), REPEATS_MAX)}"


def headline(executed: Executed) -> Phrase:
    """Return failures, early ends, and the CPU time in the window as a mean over the runs."""
    windows_s = executed.values("window_s")
    if not windows_s:
        nothing = PHRASES("nothing", subject=subject(executed.request))
        return joined((failed(executed), nothing))
    times = f"{len(windows_s)} × " if len(windows_s) > 1 else ""
    seconds = duration(sum(windows_s) / len(windows_s))
    text = mean_words(executed.values("cpu_s"))
    figures = listed([_printed(figure) for figure in printed_figures(executed)[:PRINTED_MAX]])
    command = subject(executed.request)
    if figures:
        sentence = PHRASES(
            "headline_printed",
            subject=command, figures=figures, cpu_time=text, times=times, seconds=seconds,
        )  # fmt: skip
    else:
        sentence = PHRASES("headline", subject=command, cpu_time=text, times=times, seconds=seconds)
    return joined((failed(executed), *early_ends(executed), sentence))


@dataclass(frozen=True)
class Figure:
    """A metric of the whole command, with one value per repeat that has one."""

    key: str
    title: str
    unit: str
    values: list[float]
    is_bound: bool = False

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def sd(self) -> float | None:
        """Return the standard deviation of the repeats; None if there is one repeat."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def printed_figures(executed: Executed) -> list[Figure]:
    """Return the figures that the command printed."""
    figures = []
    for name in executed.summary.columns:
        values = executed.values(name) if is_printed(name.partition(".")[0]) else []
        if values and (metric := find(name)):
            title = name.partition(".")[2]
            figures.append(Figure(name, title, metric.unit, values))
    return figures


def whole_figures(executed: Executed) -> list[Figure]:
    """Return the printed figures, and the costs of all processes together."""
    ended = set(executed.summary["ended_by"]) if executed.summary.height else set()
    is_whole = ended == {"itself"} and not executed.request.warms_up
    is_wall = is_whole and bool(executed.request.command)
    costs = (
        ("window_s", PHRASES("wall") if is_wall else PHRASES("window"), "s", 1.0),
        ("cpu_s", PHRASES("cpu_s"), "s", 1.0),
        ("cpu_user_s", PHRASES("cpu_user_s"), "s", 1.0),
        ("cpu_system_s", PHRASES("cpu_system_s"), "s", 1.0),
        ("memory_peak_kib", PHRASES("memory_peak_kib"), "MiB", 1 / 1024),
        ("messages", PHRASES("messages"), "", 1.0),
        ("energy_j", PHRASES("energy_j"), "J", 1.0),
    )
    figures = [
        Figure(key, title, unit, [factor * value for value in executed.values(key)],
               key == "memory_peak_kib" and any(executed.values(PEAK_IS_BOUND)))
        for key, title, unit, factor in costs
    ]  # fmt: skip
    return [*printed_figures(executed), *(figure for figure in figures if figure.values)]


def mean_words(values: Sequence[float]) -> str:
    """Return the mean of one value per repeat, with its interval if there are enough repeats."""
    value = mean_of(values)
    if isinstance(value, Interval):
        return f"{number(value.estimate)} [{number(value.low)}, {number(value.high)}]"
    return MISSING if value is None else number(value)


def _printed(figure: Figure) -> str:
    return f"{figure.title} = {mean_words(figure.values)} {figure.unit}".strip()
