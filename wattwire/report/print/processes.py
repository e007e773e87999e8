"""Print the CPU time of a command or an attached system in one sentence."""

from __future__ import annotations

import shlex

from wattwire.analysis.processes import Executed, mean_of
from wattwire.model.deployment import Request
from wattwire.model.words import duration, number
from wattwire.report.words.phrases import Phrase, Phrases
from wattwire.stats import Interval, TooFew

PHRASES = Phrases(
    "processes_in_short",
    {
        "headline": "“{subject}” used {cpu_time} s of CPU time in {times}{seconds}.",
        "nothing": "“{subject}”: nothing was measured.",
    },
)
SUBJECT_MAX = 80


def subject(request: Request) -> str:
    """Return the command line and the labels of the attached systems."""
    attached = ", ".join(target.label for target in request.attached)
    words = " and ".join(part for part in (shlex.join(request.command), attached) if part)
    text = " ".join(words.split())
    return text if len(text) <= SUBJECT_MAX else f"{text[: SUBJECT_MAX - 1]}…"


def headline(executed: Executed) -> Phrase:
    """Return the CPU time in the window, as a mean over the runs."""
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
    return PHRASES(
        "headline", subject=subject(executed.request), cpu_time=text, times=times, seconds=seconds
    )
