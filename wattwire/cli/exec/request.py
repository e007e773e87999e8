"""Parse the options of `exec` into a request and the document of its study."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from typing import Any

from wattwire.analysis.streams.figures import ENDS, LAYER_ENDS
from wattwire.analysis.topics.limits.numbers import RUNS_MIN as LIMIT_RUNS_MIN
from wattwire.analysis.topics.processes.subjects import subject
from wattwire.cli import study_variants
from wattwire.cli.quantities import duration_s
from wattwire.cli.topics.probe_build import checked_patterns
from wattwire.model.deployment import EXEC, Request, Target
from wattwire.model.errors import UsageError, unknown
from wattwire.model.metrics import check_response, is_printed
from wattwire.rig.attach_targets import parse_target
from wattwire.run.exec.output import MessageCounter, ValueReader
from wattwire.run.layers.recorder import prepared_library
from wattwire.run.probing.watching import WatchRequest

ATTACHED_FOR_S = 60.0
BLOCKS_OF_VARIANTS = 10
"""Blocks of a comparison without --repeat."""
RUNS = re.compile(r"(\d+) ?runs?")
"""A warm-up as a number of runs."""


def requested(options: argparse.Namespace) -> Request:
    """Return the request of the options; with variants, with the command of the first variant.

    Raises UsageError for invalid options.
    """
    is_parted = options.command[:1] == ["--"]
    command = options.command[1:] if is_parted else options.command
    if not is_parted:
        _check_patterns(options)
    if options.variants:
        if command or options.attach:
            raise UsageError(
                "--variant: found a command after -- or --attach, too; each variant names its own "
                "command, such as --variant base='./server --count 1000'"
            )
        command = shlex.split(study_variants.command_of(options.variants[0])[1]["command"])
    if not command and not options.attach:
        raise UsageError(
            "exec: nothing to measure. Add a command after --, or use --attach pid:NUMBER; "
            "see `wattwire exec --help`."
        )
    if options.repeat is None:
        options.repeat = BLOCKS_OF_VARIANTS if options.variants else 1
    if options.repeat < 1:
        raise UsageError(f"--repeat: found {options.repeat}; allowed: 1 or more")
    warmup_s, warmup_messages, warmup_runs = _warm_up(options, bool(command))
    if options.messages is not None and options.messages <= 0:
        raise UsageError(f"--messages: found {options.messages:g}; allowed: a number above 0")
    if options.count_from is not None:
        MessageCounter(options.count_from)  # raises UsageError for an invalid expression
        if not command:
            raise UsageError(
                "--count-from reads the output of a command that `exec` starts; for attached "
                "processes, use --messages N"
            )
    figures = ValueReader(options.value_from).names
    if figures and not command:
        raise UsageError("--value-from reads the output of a command that `exec` starts")
    _check_directions(options, figures)
    length_s = duration_s(options.length, "--for") if options.length else None
    if length_s is None and not command:
        length_s = ATTACHED_FOR_S
    return Request(
        command=tuple(command),
        attached=targets_of(options.attach),
        for_s=length_s,
        messages=options.messages,
        count_from=options.count_from,
        baseline_s=duration_s(options.baseline, "--baseline") if options.baseline else None,
        cwd=os.getcwd(),
        warmup_s=warmup_s,
        warmup_messages=warmup_messages,
        warmup_runs=warmup_runs,
        values_from=tuple(options.value_from),
        higher_is_better=tuple(options.higher_is_better),
        lower_is_better=tuple(options.lower_is_better),
        layers=_layers(options),
    )


def topics_of(options: argparse.Namespace) -> WatchRequest | None:
    """Return the topics that a probe watches; None without --topics."""
    if not options.topics:
        return None
    is_all = None in options.topics  # --topics without a pattern
    return WatchRequest(() if is_all else checked_patterns(options.topics, "--topics"))


def _check_patterns(options: argparse.Namespace) -> None:
    """Raise UsageError if --topics took the command, or its first word, as a pattern.

    Its value is optional, so it takes the next word unless that is --.
    """
    has_target = bool(options.variants or options.attach)
    for pattern in filter(None, options.topics):
        is_program = os.path.isfile(pattern) or (
            not has_target and shutil.which(pattern) is not None
        )
        allowed = "allowed: a topic, a pattern such as '/camera/*', or nothing for all topics"
        if is_program:
            command = shlex.join([pattern, *options.command])
            raise UsageError(
                f"--topics {pattern}: found a program instead of a pattern of topics; {allowed}. "
                f"To measure the program, write -- before it: --topics -- {command}"
            )
        if not (has_target or options.command):
            raise UsageError(
                f"--topics {pattern}: found no command after this pattern of topics; {allowed}, "
                f"and then -- COMMAND or --attach WHAT: --topics {shlex.quote(pattern)} -- COMMAND"
            )


def _check_directions(options: argparse.Namespace, figures: Sequence[str]) -> None:
    """Raise UsageError for a direction of a figure that is not read, or for two directions."""
    higher, lower = options.higher_is_better, options.lower_is_better
    for option, names in (("--higher-is-better", higher), ("--lower-is-better", lower)):
        for name in names:
            if not figures:
                raise UsageError(f"{option} {name}: needs the figure; add --value-from {name}")
            if name not in figures:
                raise unknown(option, "figure of --value-from", name, figures)
    if both := {*higher} & {*lower}:
        raise UsageError(
            f"{min(both)}: named in --higher-is-better and in --lower-is-better; delete one"
        )


def _layers(options: argparse.Namespace) -> bool:
    """Return whether to record layers. Raises UsageError for running programs."""
    if not options.layers:
        return False
    if options.attach:
        raise UsageError(
            "--layers cannot be combined with --attach: a program loads the library that records "
            "the layers when it starts. Start the system with `wattwire exec --layers -- COMMAND`."
        )
    prepared_library()  # raises errors of the tables before anything is measured
    return True


def _check_derived(name: str, options: argparse.Namespace, figures: Sequence[str]) -> None:
    """Raise UsageError for a figure that neither a probe nor recorded layers can give."""
    ends = {
        "--topics": ENDS if options.topics else (),
        "--layers": LAYER_ENDS if options.layers else (),
    }
    if name.endswith((*ends["--topics"], *ends["--layers"])):
        return
    sources = [option for option, of_option in ends.items() if of_option]
    if sources:
        known = "; ".join(f"{option}: {', '.join(ends[option])}" for option in sources)
        raise UsageError(
            f"{name}: neither --value-from nor {' nor '.join(sources)} reads this figure; a figure "
            f"of a topic is value.TOPIC, and that of a path value.TOPIC_to_TOPIC, with one of the "
            f"ends of {known}"
        )
    needed = next((o for o, e in (("--topics", ENDS), ("--layers", LAYER_ENDS))
                   if name.endswith(e)), None)  # fmt: skip
    remedy = f"Add {needed}, or" if needed else "Add"
    raise UsageError(
        f"{name}: no --value-from reads this figure; known: {', '.join(figures) or 'none'}. "
        f"{remedy} --value-from {name.partition('.')[2]}."
    )


def _warm_up(
    options: argparse.Namespace, has_command: bool
) -> tuple[float | None, int | None, int]:
    """Return the warm-up as a time (s), a number of messages, or a number of runs.

    A number alone is a number of messages.
    """
    text = options.warmup
    if text is None:
        return None, None, 0
    if runs := RUNS.fullmatch(text.strip()):
        if not has_command:
            raise UsageError(f"--warmup {text}: attached processes have no runs; use a time")
        if int(runs[1]) < 1:
            raise UsageError(f"--warmup: found {text}; allowed: 1run or more, or a time")
        return None, None, int(runs[1])
    if options.messages is not None:
        raise UsageError(
            "--warmup cannot be combined with --messages, because the number of messages after the "
            "warm-up is unknown; count them with --count-from"
        )
    if not text.strip().isdecimal():
        return duration_s(text, "--warmup"), None, 0
    if options.count_from is None:
        raise UsageError(
            f"--warmup {text}: a number of messages needs --count-from. For a time, add its unit, "
            f"such as --warmup {text}s; for a number of runs that no value includes, write "
            f"--warmup {text}runs"
        )
    if int(text) < 1:
        raise UsageError(f"--warmup: found {text}; allowed: 1 message or more, or a time")
    return None, int(text), 0


def _limits(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the tables [[limit]] of --max and --min. Raises UsageError for an invalid limit."""
    tables: dict[str, dict[str, Any]] = {}
    for bound, texts in (("max", options.max), ("min", options.min)):
        for text in texts:
            name, _, number = text.partition("=")
            check_response(name, f"--{bound} {text}")
            table = tables.setdefault(name, {"response": name})
            if bound in table:
                raise UsageError(f"--{bound} {text}: {name} has two limits; delete one of them")
            try:
                table[bound] = float(number)
            except ValueError:
                table[bound] = math.nan
            if not math.isfinite(table[bound]):
                raise UsageError(
                    f"--{bound} {text}: allowed: NAME=NUMBER in the unit of the response, such as "
                    "cpu_s=2.5 or value.p50_ms=4"
                )
    if tables and options.repeat < LIMIT_RUNS_MIN:
        raise UsageError(
            f"--repeat: found {options.repeat}; --max and --min need {LIMIT_RUNS_MIN} repeats or "
            "more, because a limit is compared with an interval over the repeats"
        )
    return list(tables.values())


def targets_of(attached: Sequence[str]) -> tuple[Target, ...]:
    """Return the targets to measure. Raises UsageError for a target that is given twice."""
    targets: dict[tuple[int | None, str | None], Target] = {}
    for text in attached:
        target = parse_target(text)
        first = targets.setdefault((target.pid, target.cgroup), target)
        if first is not target:
            also = "" if first.label == text else f" (it is {first.label})"
            raise UsageError(
                f"--attach {text}: already attached{also}, so it would be counted twice. Delete "
                "one of the two options."
            )
    return tuple(targets.values())


def name_of(request: Request) -> str:
    label = next(iter(request.labels.values()))
    return "exec-" + (re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.")[:40] or "command")


def study_of(request: Request, options: argparse.Namespace) -> dict[str, Any]:
    """Return the document of a study whose runs are the repeats of a request.

    With variants, each repeat is a block of all variants, with control runs of the first variant.
    The validity limits are disabled, because a result on a busy machine is still an answer about
    that machine. The table of results states other load. Therefore, only a run whose agent or guard
    ended is repeated.
    """
    plan: dict[str, Any] = {
        "blocks": options.repeat,
        "controls": bool(options.variants),
        "retries": 1,
        "warmup_calls": 0,
        "quiet_wait_s": 0.0,
    }
    if request.for_s is not None:
        plan["duration_s"] = request.for_s
    title = " or ".join(options.variants) if options.variants else subject(request)
    document: dict[str, Any] = {
        "title": title,
        EXEC: request.to_json(),
        "plan": plan,
        "validity": {"look": True},
    }
    figures = [f"value.{name}" for name in ValueReader(request.values_from).names]
    if limits := _limits(options):
        document["limit"] = limits
    for name in (*options.response, *(limit["response"] for limit in limits)):
        if is_printed(name.partition(".")[0]) and name not in figures:
            _check_derived(name, options, figures)
    cost = "cpu_us_per_message" if request.messages or request.count_from else "cpu_s"
    return study_variants.applied(document, options, study_variants.command_of, [*figures, cost])
