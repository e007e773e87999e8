"""Boot a machine in a test, which is skipped where a part of the machine is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.machine.boot import Ended, boot
from tests.machine.parts import MissingPartsError


def booted(folder: Path, steps: Sequence[str], limit_s: float) -> Ended:
    """Run steps in a new machine, and require that all succeed."""
    try:
        ended = boot(folder, steps, limit_s)
    except MissingPartsError as error:
        pytest.skip(str(error))
    assert ended.status is not None, f"the machine died; its console:\n{ended.console}"
    assert ended.status == 0, ended.log
    return ended
