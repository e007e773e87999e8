"""Tests of the reasons for which a host cannot build a cell."""

from __future__ import annotations

import pytest

from wattwire.rig.builds import LackingError, require


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["no-such-compiler"], "no-such-compiler is not on PATH; install it and try again"),
        (["none-1", "none-2"], "none-1 and none-2 are not on PATH; install them and try again"),
        (["/no/such/header"], "/no/such/header does not exist; install it and try again"),
        (["/no/header", "/no/device"], "/no/device and /no/header do not exist; install them"),
        (
            ["none-1", "/no/device"],
            "none-1 is not on PATH and /no/device does not exist; install them and try again",
        ),
    ],
)
def test_missing_programs_and_files_are_reported_apart(names: list[str], reason: str) -> None:
    with pytest.raises(LackingError, match=f"^carrier/cpp: {reason}") as error:
        require(["sh", "/", *names], "carrier/cpp")
    assert sorted(error.value.programs) == sorted(names)
