"""Test that unusual CSV tables and names are imported, or refused with a message."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator
from tests.fuzz.verbs import contents, say

HEAD = "lang,size,y,day"
ROWS = [f"{lang},{size},{1 + n / 7},{day}" for n, (lang, size, day) in enumerate(
    (lang, size, day) for day in range(3) for lang in "ab" for size in (1, 2))]  # fmt: skip
PLAIN = "\n".join([HEAD, *ROWS]) + "\n"


def with_levels(level: str) -> bytes:
    return PLAIN.replace("\na,", f'\n"{level}",').encode("utf-8", "surrogatepass")


def with_column(name: str) -> bytes:
    return PLAIN.replace("lang,", f'"{name}",', 1).encode("utf-8", "surrogatepass")


def value(text: str) -> bytes:
    """Return the plain table with another text instead of its first number."""
    return PLAIN.replace("1.0,", f"{text},").encode()


LEVELS = (
    *("constructor", "__proto__", "a\u2028b", "a\x01b", "=cmd|' /C calc'!A0", "</script>", "'"),
    *("../../x", "x" * 500, "\u202eabc", "${alert(1)}", "{{7*7}}", "\\input{x}", "a\nb"),
)
COLUMNS = (
    *("constructor", "toString", "valueOf", "__proto__", "run", "block", "verdict", "a.b"),
    *("factor.x", "../x", "a\x7fb", "\u2029", "x" * 300),
)
TABLES: dict[str, bytes] = {
    "empty": b"", "blank": b"\n\n\n", "header alone": HEAD.encode(), "a byte": b"\0",
    "bom": b"\xef\xbb\xbf" + PLAIN.encode(), "utf-16": PLAIN.encode("utf-16"),
    "latin": PLAIN.replace("a,", "\xe9,").encode("latin-1"), "nul": PLAIN.encode() + b"a,\0,1,1\n",
    "cr": PLAIN.replace("\n", "\r").encode(), "crlf": PLAIN.replace("\n", "\r\n").encode(),
    "semicolons": PLAIN.replace(",", ";").encode(), "tabs": PLAIN.replace(",", "\t").encode(),
    "decimal commas": PLAIN.replace(",", ";").replace(".", ",").encode(),
    "short row": PLAIN.encode() + b"a,1\n", "long row": PLAIN.encode() + b"a,1,2,3,4,5\n",
    "open quote": PLAIN.encode() + b'"a,1,2,3\n', "two columns of a name": b"lang,lang,y,day\n",
    "unnamed column": PLAIN.replace("size", "").encode(),
    "no repeats": f"{HEAD}\na,1,1,1\n".encode(),
    "infinite": value("inf"), "nan": value("nan"), "huge": value("1e999"), "tiny": value("1e-320"),
    "underscore": value("1_000"), "hex": value("0x1"), "negative": value("-5"), "zero": value("0"),
    "all equal": "\n".join([HEAD, *("a,1,5,1", "b,1,5,1") * 4]).encode(), "missing": value(""),
    "one level": PLAIN.replace("\nb,", "\na,").encode(),
    "1 and 1.0": PLAIN.replace("a,1,", "a,1.0,").encode(),
    **{f"level {n}": with_levels(level) for n, level in enumerate(LEVELS)},
    **{f"column {n}": with_column(name) for n, name in enumerate(COLUMNS)},
}  # fmt: skip
NAMES = ("a b.csv", "=x.csv", "..csv", "-x.csv", "\u2028.csv", "a'b.csv", "<b>.csv", "$(x).csv")


def words_for(table: bytes) -> list[str]:
    """Return the import options of a table; its first column is always the factor."""
    text = table.decode("utf-8", "replace").lstrip("\ufeff")
    first = text.split(",")[0].strip('"') if text.startswith('"') else "lang"
    options = ["--response", "y:ms", "--block", "day", "--factor", "size"]
    return [*options, f"--factor={first}"]


def taken_or_refused(place: Path, name: str, table: bytes, page: bool) -> int:
    file = place / name
    file.write_bytes(table)
    before = contents(place)
    words = words_for(table)
    words += [] if page else ["--no-report"]
    said = say("import", "csv", f"./{name}", *words, "--campaign", "c")
    after = {key: value for key, value in contents(place).items() if key.split("/")[0] != "c"}
    assert after == before, "wrote outside"
    if said.code == 0:
        summary = (place / "c" / "summary.csv").read_text("utf-8")
        cells = [cell.strip('"') for line in summary.splitlines() for cell in line.split(",")]
        assert not [cell for cell in cells if cell[:1] in ("=", "@")], "a formula"
        if page:
            told = (place / "c" / "report" / "index.html").read_text("utf-8")
            assert "could not be drawn" not in told
    return said.code


def test_an_odd_table_is_taken_or_refused_in_words(
    cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test all tables, and unusual file names with a plain table. Only some pages are created."""
    tried = [(f"t{n}.csv", table, name) for n, (name, table) in enumerate(TABLES.items())]
    tried += [(name, PLAIN.encode(), f"file {name}") for name in NAMES]
    pages = {at % len(tried) for at in cases(0, len(tried))}
    pages |= set(random.Random(1).sample(range(len(tried)), 1))
    codes = {}
    for at, (name, table, what) in enumerate(tried):
        place = tmp_path / f"p{at}"
        place.mkdir()
        monkeypatch.chdir(place)
        try:
            codes[what] = taken_or_refused(place, name, table, at in pages)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error
    assert codes["bom"] == codes["semicolons"] == codes["level 0"] == codes["column 0"] == 0
    assert codes["underscore"] == codes["utf-16"] == codes["infinite"] == codes["empty"] == 2


def test_a_mutated_table_is_taken_or_refused_in_words(
    cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in cases(40, 1_000):
        place = tmp_path / f"p{seed}"
        place.mkdir()
        monkeypatch.chdir(place)
        table = Mutator(seed).bytes(PLAIN.encode())
        try:
            taken_or_refused(place, "t.csv", table, False)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {table!r}: {error}") from error
