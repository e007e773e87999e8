"""Parse the options of `exec` into a request and the document of its study."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from typing import Any

from wattwire.analysis.topics.processes.subjects import subject
from wattwire.cli import study_variants
from wattwire.cli.quantities import duration_s
from wattwire.model.deployment import EXEC, Request, Target
from wattwire.model.errors import UsageError
from wattwire.rig.attach_targets import parse_target
from wattwire.run.exec.output import MessageCounter, ValueReader

ATTACHED_FOR_S = 60.0
BLOCKS_OF_VARIANTS = 10
"""Blocks of a comparison without --repeat."""


def requested(options: argparse.Namespace) -> Request:
    """Return the request of the options; with variants, with the command of the first variant.

    Raises UsageError for invalid options.
    """
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
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
    warmup_s, warmup_messages = _warm_up(options)
    if options.messages is not None and options.messages <= 0:
        raise UsageError(f"--messages: found {options.messages:g}; allowed: a number above 0")
    if options.count_from is not None:
        MessageCounter(options.count_from)  # raises UsageError for an invalid expression
        if not command:
            raise UsageError(
                "--count-from reads the output of a command that `exec` starts; for attached "
                "processes, use --messages N"
            )
    if options.value_from:
        ValueReader(options.value_from)  # raises UsageError for an invalid expression
        if not command:
            raise UsageError("--value-from reads the output of a command that `exec` starts")
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
        values_from=tuple(options.value_from),
    )


def _warm_up(options: argparse.Namespace) -> tuple[float | None, int | None]:
    """Return the warm-up as a time (s) or as a number of messages; a number alone is the latter."""
    text = options.warmup
    if text is None:
        return None, None
    if options.messages is not None:
        raise UsageError(
            "--warmup cannot be combined with --messages, because the number of messages after the "
            "warm-up is unknown; count them with --count-from"
        )
    if not text.strip().isdecimal():
        return duration_s(text, "--warmup"), None
    if options.count_from is None:
        raise UsageError(
            f"--warmup {text}: a number of messages needs --count-from; for a time, add its unit, "
            f"such as --warmup {text}s"
        )
    if int(text) < 1:
        raise UsageError(f"--warmup: found {text}; allowed: 1 message or more, or a time")
    return None, int(text)


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
    document = {
        "title": title,
        EXEC: request.to_json(),
        "plan": plan,
        "validity": {"look": True},
    }
    figures = [f"value.{name}" for name in ValueReader(request.values_from).names]
    cost = "cpu_us_per_message" if request.messages or request.count_from else "cpu_s"
    return study_variants.applied(document, options, study_variants.command_of, [*figures, cost])
