"""Name what `exec` measured by its command line and the labels of the attached systems."""

from __future__ import annotations

import shlex

from wattwire.model.deployment import Request

SUBJECT_MAX = 80


def subject(request: Request) -> str:
    """Return the command line, or the name of the probe, and the labels of the attached systems.

    Each is shortened. A long command hides no attached system, because the figures after it are
    those of both.
    """
    attached = _shortened(", ".join(target.label for target in request.attached), SUBJECT_MAX // 2)
    if request.probe and attached:  # the costs are those of the attached systems
        return f"{attached}, watched by {request.probe}"
    space = SUBJECT_MAX - len(" and ") - len(attached) if attached else SUBJECT_MAX
    command = _shortened(request.probe or shlex.join(request.command), space)
    return " and ".join(part for part in (command, attached) if part)


def _shortened(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
