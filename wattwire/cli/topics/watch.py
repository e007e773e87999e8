"""Implement `topics`, which builds the probe, watches, and prints the streams."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wattwire import stats
from wattwire.analysis.streams.numbers import Watched, watched
from wattwire.analysis.streams.remarks import remarks
from wattwire.catalog import Catalog, Probe
from wattwire.cli import wrap
from wattwire.cli.quantities import duration_s
from wattwire.cli.topics.probe_build import built, checked_patterns, chosen_probe, probe_agent
from wattwire.cli.topics.stream_table import lines_of
from wattwire.model.errors import EXIT_NOTHING_USABLE, EXIT_OK, UsageError, WattwireError
from wattwire.model.words import confidence, number, plural
from wattwire.run.probing.perturbation import SIDE_S, perturbations
from wattwire.run.probing.watching import Watch, WatchRequest, watch_for

WINDOW_S = 30.0
LIVE_S = 5.0
"""Length (s) of the window that --live shows."""
PERIOD_S = 1.0
EXIT_INTERRUPTED = 130
Show = Callable[[Watched], None]


def execute(options: argparse.Namespace) -> int:
    """Watch, print the table and the remarks, and return the exit code."""
    probe = chosen_probe(Catalog(), options.probe)
    request, seconds = request_of(options, probe), window_s(options)
    result: Watched | None = None
    is_whole, differences = True, list[float]()
    with probe_agent() as (agent, state):
        build = built(agent, probe)
        watch = Watch(agent, build, request, probe_folder(state))
        try:
            watch.wait_settled()
            if not options.campaign:
                result, is_whole = observed(watch, seconds, options, probe)
        finally:
            watch.close()
        if options.perturbation and is_whole:
            differences = perturbations(agent, build, request, lambda: probe_folder(state))
    if options.campaign:
        from wattwire.cli.topics import stored_windows  # noqa: PLC0415 - slow to import

        stored = stored_windows.measure(build, request, seconds or WINDOW_S, options)
        result, is_whole = stored.last, stored.is_whole
        if result is not None:
            show_result(result, probe, options.json, (stored.number, options.repeat))
        if not options.json:
            print(f"Data: {options.campaign}\n{stored.page.resolve()}")
    if differences:
        show_perturbation(differences, options.json)
    if not is_whole:
        return EXIT_INTERRUPTED
    has_messages = result is not None and any(stream.messages for stream in result.streams)
    return EXIT_OK if has_messages else EXIT_NOTHING_USABLE


def probe_folder(state: str) -> Path:
    return Path(tempfile.mkdtemp(prefix="probe-", dir=state))


def window_s(options: argparse.Namespace) -> float | None:
    """Return the length (s) of the window, or None if Ctrl-C ends it.

    Raises UsageError for invalid options.
    """
    if options.campaign and options.live:
        raise UsageError("--live: a campaign has no live table; leave out --live or --campaign")
    if options.repeat < 1 or (options.repeat > 1 and not options.campaign):
        raise UsageError(
            f"--repeat: found {options.repeat}; allowed: 1 or more, and more than 1 only with "
            "--campaign DIR"
        )
    if options.attach and not options.campaign:
        raise UsageError(
            "--attach: found no --campaign; allowed: --campaign DIR, whose page has the processes"
        )
    if options.length:
        return duration_s(options.length, "--for")
    return None if options.live else WINDOW_S


def request_of(options: argparse.Namespace, probe: Probe) -> WatchRequest:
    """Return the checked request of the options. Raises UsageError for invalid ones."""
    probe.check_domain(options.domain, "--domain")
    if not options.domain:
        probe.check_own_domain()
    return WatchRequest(
        checked_patterns(options.patterns, "PATTERN"),
        checked_patterns(options.exclude, "--exclude"),
        options.domain,
    )


def observed(
    watch: Watch, seconds: float | None, options: argparse.Namespace, probe: Probe
) -> tuple[Watched, bool]:
    """Watch the window and print its numbers; return them, and whether Ctrl-C has shortened it.

    If the probe ends early, print what it has read, and raise its WattwireError.
    """
    begin_ns = time.monotonic_ns()
    is_whole, failure = True, None
    with shown(options) as show:

        def refresh(window_begin_ns: int) -> None:
            nonlocal begin_ns
            begin_ns = window_begin_ns
            if show is not None:
                now_ns = time.monotonic_ns()
                since_ns = max(begin_ns, now_ns - round(LIVE_S * 1e9)) if options.live else begin_ns
                show(watched(watch.graph, watch.records(), since_ns, now_ns))

        try:
            is_whole = watch_for(watch, seconds, PERIOD_S, refresh)
        except WattwireError as error:
            failure = error
        end_ns = time.monotonic_ns()
    watch.close()  # its last facts
    result = watched(watch.graph, watch.records(), begin_ns, end_ns)
    if failure is None or any(stream.messages for stream in result.streams):
        show_result(result, probe, options.json)
    if failure is not None:
        raise failure
    return result, is_whole


@contextmanager
def shown(options: argparse.Namespace) -> Iterator[Show | None]:
    """Yield how to show the numbers while the window is open: in place, as lines, or not at all."""
    if options.json:
        yield print_json if options.live else None
    elif sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415 - slow to import, only for a terminal
        from rich.live import Live  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        console = Console(file=wrap.unfiltered(sys.stdout))
        with Live(console=console, auto_refresh=False, transient=True) as live:

            def update(result: Watched) -> None:
                text = "\n".join(lines_of(result, wrap.columns(sys.stdout)))
                live.update(Text(wrap.printable(text), no_wrap=True), refresh=True)

            yield update
    else:
        yield print_table if options.live else None


def print_table(result: Watched) -> None:
    for line in lines_of(result, wrap.columns(sys.stdout)):
        print(line)
    print(flush=True)


def print_json(result: Watched, window: int = 1) -> None:
    """Print a line per stream, with the length and the number of its window."""
    for stream in result.streams:
        facts = {"window": window, "window_s": result.window_s}
        print(json.dumps({**stream.as_json(), **facts}, allow_nan=False))
    sys.stdout.flush()


def show_result(
    result: Watched, probe: Probe, as_json: bool, window: tuple[int, int] = (1, 1)
) -> None:
    """Print the final numbers of a window of so many, the probe's cost and the remarks."""
    sentences = list(remarks(result, probe.remedies))
    if not as_json:
        if window[1] > 1:
            print(f"Window {window[0]} of {window[1]}; the page has all of them.")
        print_table(result)
        for sentence in sentences:
            print(wrap.searchable(wrap.printable(sentence), sys.stdout, hanging=""))
        return
    print_json(result, window[0])
    for topic in result.graph.topics.values():
        print(json.dumps(topic))
    for reader in result.graph.readers.values():
        print(json.dumps(reader))
    cost: dict[str, Any] = {"kind": "probe_cost"}
    print(json.dumps(cost | (asdict(result.cost) if result.cost else {})))
    for sentence in sentences:
        print(json.dumps({"kind": "remark", "text": sentence}, ensure_ascii=False))


def show_perturbation(differences: list[float], as_json: bool) -> None:
    """Print how much more CPU time the other processes used with the probe than without."""
    mean = stats.mean_interval(differences)
    interval = mean if isinstance(mean, stats.Interval) else None
    if as_json:
        document = {
            "kind": "perturbation", "unit": "cores", "differences": differences,
            "mean": mean if interval is None else interval.estimate,
            "interval": None if interval is None else [interval.low, interval.high],
            "level": None if interval is None else interval.level,
        }  # fmt: skip
        print(json.dumps(document))
        return
    print(wrap.searchable(perturbation_sentence(differences, mean), sys.stdout, hanging=""))


def perturbation_sentence(differences: list[float], mean: stats.Interval | float) -> str:
    """Return what the differences, in cores, show about the other processes of the machine."""
    pairs = f"({plural(len(differences), 'pair')} of {SIDE_S:g} s each)"
    if not isinstance(mean, stats.Interval):
        return (
            f"With the probe, all other processes of this machine used {number(100 * mean, 2)} % "
            f"of a core more than without it {pairs}, which are too few for an interval."
        )
    low, high = number(100 * mean.low, 2), number(100 * mean.high, 2)
    interval = f"{confidence(mean.level)} interval: {low} to {high} % of a core"
    if mean.low <= 0 <= mean.high:
        return (
            "No difference was detected between the CPU time of all other processes of this "
            f"machine with and without the probe ({interval}) {pairs}."
        )
    amount = f"{number(100 * abs(mean.estimate), 2)} % of a core"
    direction = "more" if mean.estimate > 0 else "less"
    return (
        f"With the probe, all other processes of this machine used {amount} {direction} than "
        f"without it ({interval}) {pairs}."
    )
