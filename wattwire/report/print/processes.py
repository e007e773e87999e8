"""Print the CPU time of a command or an attached system in one sentence."""

from __future__ import annotations

import shlex
import statistics
from dataclasses import dataclass

from wattwire.analysis.processes import PEAK_IS_BOUND, Executed, mean_of
from wattwire.model.deployment import Request
from wattwire.model.metrics import find, is_printed
from wattwire.model.words import duration, listed, number
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import Interval, TooFew

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
PRINTED_MAX = 3
"""Maximum number of printed figures in the first sentence."""


def subject(request: Request) -> str:
    """Return the command line and the labels of the attached systems."""
    attached = ", ".join(target.label for target in request.attached)
    words = " and ".join(part for part in (shlex.join(request.command), attached) if part)
    text = " ".join(words.split())
    return text if len(text) <= SUBJECT_MAX else f"{text[: SUBJECT_MAX - 1]}…"


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


def headline(executed: Executed) -> Phrase:
    """Return early ends, and the CPU time in the window as a mean over the runs."""
    windows_s = executed.values("window_s")
    if not windows_s:
        return PHRASES("nothing", subject=subject(executed.request))
    times = f"{len(windows_s)} × " if len(windows_s) > 1 else ""
    seconds = duration(sum(windows_s) / len(windows_s))
    cpu_time = mean_of(executed.values("cpu_s"))
    text = "–" if cpu_time is None else str(cpu_time)
    if isinstance(cpu_time, Interval):
        low, high = number(cpu_time.low), number(cpu_time.high)
        text = f"{number(cpu_time.estimate)} [{low}, {high}]"
    elif isinstance(cpu_time, TooFew):
        text = cpu_time.brief
    elif isinstance(cpu_time, float):
        text = number(cpu_time)
    figures = listed([_printed(figure) for figure in printed_figures(executed)[:PRINTED_MAX]])
    command = subject(executed.request)
    if figures:
        sentence = PHRASES(
            "headline_printed",
            subject=command, figures=figures, cpu_time=text, times=times, seconds=seconds,
        )  # fmt: skip
    else:
        sentence = PHRASES("headline", subject=command, cpu_time=text, times=times, seconds=seconds)
    return joined((*early_ends(executed), sentence))


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


def _printed(figure: Figure) -> str:
    value = mean_of(figure.values)
    text = number(figure.mean)
    if isinstance(value, Interval):
        text += f" [{number(value.low)}, {number(value.high)}]"
    return f"{figure.title} = {text} {figure.unit}".strip()
