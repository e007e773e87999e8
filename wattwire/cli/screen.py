"""Print the progress of a campaign as a live line, as plain lines or as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from wattwire.cli.wrap import columns, printable, unfiltered, wrapped
from wattwire.model.words import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from wattwire.run.progress import Progress

BUILD_LINE_EVERY_S = 30.0
"""Interval between the repeated lines of a long build step in a log, in seconds."""


def make_progress(as_json: bool, plain: bool) -> ScreenProgress | PlainProgress | JsonProgress:
    """Return a progress printer for JSON, for lines of a log, or for a live line of a terminal."""
    if as_json:
        return JsonProgress(sys.stdout)
    if plain or not sys.stdout.isatty():
        return PlainProgress(sys.stdout)
    return ScreenProgress()


def _print_line(stream: TextIO, text: str) -> None:
    print(text, file=stream, flush=True)


class JsonProgress:
    """Prints one JSON object per line, with `kind` as the first key."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def event(self, kind: str, **fields: Any) -> None:
        _print_line(self._stream, json.dumps({"kind": kind, **fields}))

    def close(self) -> None:
        return


class Tally:
    """Counts finished runs and estimates the remaining time from their mean duration."""

    def __init__(self) -> None:
        self.runs = self.left = 0
        self.verdicts = {"valid": 0, "invalid": 0, "failed": 0}
        self._began = time.monotonic()
        self._first_run: float | None = None
        self._executed = 0

    def campaign(self, runs: int, left: int) -> None:
        self.runs, self.left = runs, left

    def run(self) -> None:
        self._first_run = self._first_run or time.monotonic()

    def done(self, verdict: str, last: bool) -> None:
        """Count an attempt. The last attempt of a run finishes the run."""
        self._executed += last
        if last:
            self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1
            self.left = max(0, self.left - 1)

    def words(self) -> str:
        finished = self.runs - self.left
        text = f"{finished}/{self.runs} runs"
        for verdict in ("invalid", "failed"):
            if self.verdicts[verdict]:
                text += f", {self.verdicts[verdict]} {verdict}"
        if self._executed and self._first_run is not None and self.left:
            mean_s = (time.monotonic() - self._first_run) / self._executed
            text += f", {duration_words(mean_s * self.left)} left ({mean_s:.1f} s per run so far)"
        return text


def duration_words(seconds: float) -> str:
    """Format a duration in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class PlainProgress:
    """Prints one line per relevant event, without cursor movement."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tally = Tally()
        self._label = ""
        self._build_step: tuple[Any, ...] = ()
        self._build_printed_s = 0.0

    def _print(self, text: str, indent: str = "") -> None:
        _print_line(self._stream, wrapped(text, columns(self._stream), indent))

    def event(self, kind: str, **fields: Any) -> None:
        if kind == "campaign":
            self._tally.campaign(fields["runs"], fields.get("left", fields["runs"]))
            skipped = plural(fields["skipped"], "treatment")
            skipped = f", {skipped} skipped" if fields["skipped"] else ""
            self._print(f"campaign {fields['path']}: {plural(fields['runs'], 'run')}{skipped}")
            if fields.get("left") == 0:
                self._print("all runs are done; rewriting the page", "  ")
        elif kind == "building":
            self._building(fields)
        elif kind == "run":
            self._tally.run()
            self._label = f"{fields['run']} {fields['label']}"
        elif kind == "done":
            self._tally.done(fields["verdict"], fields["last"])
            self._print(f"{self._label}: {attempt_text(fields)} [{self._tally.words()}]")
        elif kind == "note":
            self._print(f"note: {fields['text']}", "  ")

    def _building(self, fields: Mapping[str, Any]) -> None:
        """Print a line for each step of a build, and repeat it during a long step."""
        step = (fields["name"], fields["step"], fields["done"])
        elapsed_s = float(fields["elapsed_s"])
        if step == self._build_step and elapsed_s < self._build_printed_s + BUILD_LINE_EVERY_S:
            return
        self._build_step, self._build_printed_s = step, elapsed_s
        self._print(build_words(fields, elapsed_s), "  ")

    def close(self) -> None:
        return


class ScreenProgress:
    """Shows a live line on a terminal. The results of finished runs scroll above it."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow to import, only for a terminal
        from rich.live import Live  # noqa: PLC0415

        self._console = console or Console(file=unfiltered(sys.stdout))
        self._tally = Tally()
        self._label = self._phase = ""
        self._build: Mapping[str, Any] | None = None
        self._build_began_s = 0.0
        self._live = Live(
            get_renderable=self._line, console=self._console, refresh_per_second=4, transient=True
        )
        self._live.start()

    def _line(self) -> Text:
        """Return the current line. The time of a build advances between its events."""
        from rich.text import Text  # noqa: PLC0415 - slow to import

        if self._build is not None:
            text = build_words(self._build, time.monotonic() - self._build_began_s)
        elif self._tally.runs:
            text = " · ".join(filter(None, (self._tally.words(), self._label, self._phase)))
        else:
            text = self._phase
        return Text(printable(text), no_wrap=True, overflow="ellipsis")

    def _say(self, text: str, style: str | None = None) -> None:
        self._console.print(printable(text), style=style, highlight=False, markup=False)

    def event(self, kind: str, **fields: Any) -> None:
        if kind == "campaign":
            self._tally.campaign(fields["runs"], fields.get("left", fields["runs"]))
            self._say(f"campaign {fields['path']}")
        elif kind == "building":
            self._build = None if fields["done"] else fields
            self._build_began_s = time.monotonic() - float(fields["elapsed_s"])
        elif kind == "run":
            self._build = None
            self._tally.run()
            self._label = f"{fields['run']} {fields['label']}"
        elif kind == "phase":
            self._phase = fields["phase"]
        elif kind == "done":
            self._tally.done(fields["verdict"], fields["last"])
            self._say(f"{self._label}: {attempt_text(fields)}")
        elif kind == "note":
            self._say(f"note: {fields['text']}", style="yellow")
        self._live.refresh()

    def close(self) -> None:
        self._live.stop()


def build_words(fields: Mapping[str, Any], elapsed_s: float) -> str:
    """Describe the progress of a build by cell, build number, step and time."""
    position = f" ({fields['number']} of {fields['builds']})" if fields["builds"] > 1 else ""
    if fields["done"]:
        return f"built {fields['name']}{position} in {duration_words(elapsed_s)}"
    text = f"building {fields['name']}{position}"
    if fields["step"]:
        return f"{text}, step {fields['step']} of {fields['steps']}, {duration_words(elapsed_s)}"
    return text + (f", which takes {fields['expected']}" if fields["expected"] else "")


def attempt_text(fields: dict[str, Any]) -> str:
    """Describe the result of an attempt."""
    words = fields["verdict"]
    if fields["outcome"] != "completed":
        words += f", {fields['outcome']}: {fields['detail']}"
    if fields["reasons"]:
        words += f" ({'; '.join(fields['reasons'])})"
    figures = fields["figures"]
    if figures.get("sent") is not None:
        failed = f", failed {figures['failed']}" if figures.get("failed") else ""
        by_flow = [
            f"{name.partition('.flow.')[2]} {value}"
            for name, value in figures.items()
            if name.startswith("lost.flow.") and value
        ]
        lost = f" ({', '.join(by_flow)})" if by_flow else ""
        words += f", sent {figures['sent']}{failed}, lost {figures['lost']}{lost}"
    medians = [
        f"{name.partition('.flow.')[2]} {value:.0f} µs".strip()
        for name, value in figures.items()
        if name.startswith("latency_p50_us") and value is not None
    ]
    words += f", p50 {', '.join(medians)}" if medians else ""
    if figures.get("cpu_us_per_message") is not None:
        words += f", {figures['cpu_us_per_message']:.0f} CPU-µs per message"
    return words


def _static_check(progress: ScreenProgress | PlainProgress | JsonProgress) -> Progress:
    return progress  # mypy checks here that each class above implements the protocol
