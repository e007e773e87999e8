"""Boot a machine in a test, which is skipped where a part of the machine is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.machine.boot import Ended, boot
from tests.machine.parts import MissingPartsError


def booted(folder: Path, steps: Sequence[str], limit_s: float, peer: Sequence[str] = ()) -> Ended:
    """Run steps in a new machine, with those of a `peer` in a second one; require success."""
    try:
        ended = boot(folder, steps, limit_s, peer=peer)
    except MissingPartsError as error:
        pytest.skip(str(error))
    assert ended.status is not None, f"the machine died; its console:\n{ended.console}"
    assert ended.status == 0, ended.log
    return ended
