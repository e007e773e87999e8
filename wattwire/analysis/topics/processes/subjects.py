"""Name what `exec` measured by its command line and the labels of the attached systems."""

from __future__ import annotations

import shlex

from wattwire.model.deployment import Request

SUBJECT_MAX = 80


def subject(request: Request) -> str:
    """Return the command line and the labels of the attached systems, or the name of the probe.

    Each is shortened. A long command hides no attached system, because the figures after it are
    those of both.
    """
    attached = _shortened(", ".join(target.label for target in request.attached), SUBJECT_MAX // 2)
    if request.is_only_probe:
        return _shortened(request.probe, SUBJECT_MAX)
    space = SUBJECT_MAX - len(" and ") - len(attached) if attached else SUBJECT_MAX
    command = _shortened(shlex.join(request.command), space)
    system = " and ".join(part for part in (command, attached) if part)
    return f"{system}, watched by {request.probe}" if request.probe else system


def _shortened(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
