"""Test that progress messages of a reader reach all listeners of the block and no others."""

from __future__ import annotations

import pytest

from wattwire.imports import progress


def test_only_listeners_hear_and_only_while_they_listen() -> None:
    heard: list[str] = []
    progress.tell("before")
    with progress.listening(heard.append):
        progress.tell("now")
    progress.tell("after")
    assert heard == ["now"]


def test_a_reader_that_fails_leaves_no_listener() -> None:
    heard: list[str] = []
    with pytest.raises(ValueError, match="broken"), progress.listening(heard.append):
        raise ValueError("broken")
    progress.tell("after")
    assert heard == []
