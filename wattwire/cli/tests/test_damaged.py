"""Tests of the error messages for malformed values in a campaign's files.

An internal error of wattwire still gives a traceback.
"""

from __future__ import annotations

import sqlite3

import pytest

from wattwire.cli import damaged
from wattwire.model.errors import MissingError, UsageError


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), sqlite3.DatabaseError("x")])
def test_what_a_reader_trips_over_is_told_with_its_place(error, monkeypatch) -> None:
    monkeypatch.delenv(damaged.DEBUG, raising=False)
    words = r"^camp: cannot be read: .*x.* \(at test_damaged.py:"
    with pytest.raises(UsageError, match=words), damaged.damage_named("camp"):
        raise error
    monkeypatch.setenv(damaged.DEBUG, "1")
    with pytest.raises(type(error)), damaged.damage_named("camp"):
        raise error


@pytest.mark.parametrize("error", [MissingError("x"), OSError(28, "x"), KeyboardInterrupt()])
def test_what_has_words_of_its_own_keeps_them(error) -> None:
    with pytest.raises(type(error)) as caught, damaged.damage_named("camp"):
        raise error
    assert caught.value is error
