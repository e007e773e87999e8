"""Test that no name of wattwire, Polars or Vega-Lite changes an imported table's numbers.

Every word that the package uses as a key, column or value is a column, factor or level once.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import wattwire
from tests.fuzz.conftest import Cases
from tests.fuzz.verbs import say
from wattwire import imports
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.document import document
from wattwire.imports import table
from wattwire.imports.row_checks import is_absent
from wattwire.imports.tests.test_writing import ABOUT
from wattwire.model.metrics import METRICS
from wattwire.model.study import LEVEL_RULES
from wattwire.run.results.schema import describe

WORD = re.compile(r"[A-Za-z_#][\w.#$-]{0,40}")
VEGA = (
    *("data", "datum", "item", "event", "parent", "width", "height", "signal", "scale", "index"),
    *("field", "key", "type", "value", "values", "color", "facet", "layer", "row", "column", "x"),
    *("y", "count", "__count", "__proto__", "constructor", "toString", "hasOwnProperty", "length"),
)
OTHERS = ("a:b:c", "µs", "1", "a b", "a.b", "True", "None", "factor.x", "settings.qos", "column.x")
RESPONSES = 60
"""Number of responses in one table."""
FACTORS = 5
LEVELS = 12


@cache
def words() -> tuple[str, ...]:
    """Return every word that can have a meaning in code or in a library."""
    texts = set(METRICS) | set(LEVEL_RULES) | set(VEGA) | set(OTHERS)
    texts |= {name for name in dir(pl.DataFrame) + dir(pl.Expr) if not name.startswith("__")}
    for path in Path(wattwire.__file__).parent.rglob("*.py"):
        if "tests" not in path.parts:
            texts |= {
                node.value
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
    kept = pl.Series(sorted({text for text in texts if WORD.fullmatch(text)} | set(OTHERS)))
    present = pl.DataFrame({"word": kept}).filter(~is_absent("word"))
    return tuple(present["word"])


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    def cell(value: object) -> str:
        return '"' + str(value).replace('"', '""') + '"'

    path.parent.mkdir(parents=True)
    path.write_text("\n".join(",".join(map(cell, row)) for row in [header, *rows]) + "\n", "utf-8")
    return path


def evidence_of(file: Path, request: table.TableRequest) -> Evidence:
    data = table.read(file, request)
    return gather(imports.write(data, file.parent / "c", ABOUT, describe(data.runs.columns)))


def contrasts(evidence: Evidence) -> list[dict[str, Any]]:
    answers = answer_all(evidence)
    entries: list[dict[str, Any]] = document(evidence, answers).values["contrasts"]
    return entries


def in_parts(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def columns_apart(names: Sequence[str]) -> list[str]:
    """Return the names without those that differ from another only in characters such as dots."""
    apart: dict[str, str] = {}
    for name in names:
        apart.setdefault(table.column(name), name)
    return list(apart.values())


def ordered(names: Sequence[str], first: Sequence[str]) -> list[str]:
    """Return the names with those in `first` at the begin and the others in a seeded order."""
    others = sorted(set(names) - set(first))
    random.Random(1).shuffle(others)
    return [*(name for name in names if name in first), *others]


def test_no_name_of_a_response_changes_its_numbers(cases: Cases, tmp_path: Path) -> None:
    parts = list(in_parts(ordered(columns_apart(words()), list(METRICS)), RESPONSES))
    for seed in cases(10, len(parts)):
        names = parts[(seed - 1) % len(parts)]
        rows = [
            [level, day, *(value(at, beta, day) for at in range(len(names)))]
            for beta, level in enumerate(("alpha", "beta"))
            for day in range(3)
        ]
        file = write(tmp_path / f"p{seed}" / "t.csv", ["the level", "the day", *names], rows)
        responses = tuple((name, "") for name in names)
        evidence = evidence_of(file, table.TableRequest(responses, ("the level",), "the day"))
        ratios = {entry["response"]: entry["estimate"] for entry in contrasts(evidence)}
        assert len(ratios) == len(names)
        for at, name in enumerate(names):
            assert ratios[table.column(name)] == pytest.approx(ratio(at), rel=0.02), name


def value(position: int, beta: int, day: int) -> float:
    """Return a value with some scatter, whose ratio of the levels is `ratio`."""
    return (100.0 + day + 0.1 * beta * (day % 2)) * (ratio(position) if beta else 1.0)


def ratio(position: int) -> float:
    return 1.5 + 0.5 * position


def test_no_name_of_a_factor_changes_the_numbers(cases: Cases, tmp_path: Path) -> None:
    parts = list(in_parts(ordered(words(), [*LEVEL_RULES, *OTHERS]), FACTORS))
    for seed in cases(14, len(parts)):
        names = parts[(seed - 1) % len(parts)]
        rows = []
        for day, *betas in itertools.product(range(2), *[range(2)] * len(names)):
            y = (100.0 + day + 0.3 * (sum(betas) % 2)) * math.prod(
                ratio(at) for at, beta in enumerate(betas) if beta
            )
            levels = [("1", "2")[beta] if seed % 2 else ("v", "w")[beta] for beta in betas]
            rows.append([*levels, day, y])
        file = write(tmp_path / f"p{seed}" / "t.csv", [*names, "the day", "the time"], rows)
        request = table.TableRequest((("the time", "ms"),), tuple(names), "the day")
        ratios = {entry["factor"]: entry for entry in contrasts(evidence_of(file, request))}
        for at, name in enumerate(names):
            entry = ratios[table.factor(name)]
            assert entry["estimate"] == pytest.approx(ratio(at), rel=0.02), name
            # Levels of a column with the name of a version or a commit stay texts.
            levels = (entry["baseline"], entry["level"])
            assert levels in ((1, 2), ("1", "2"), ("v", "w")), name


def test_no_name_of_a_level_changes_the_numbers(cases: Cases, tmp_path: Path) -> None:
    parts = list(in_parts(ordered(words(), OTHERS), LEVELS))
    for seed in cases(10, len(parts)):
        levels = parts[(seed - 1) % len(parts)]
        rows = [
            [level, day, (100.0 + day + 0.1 * (at * day % 3)) * ratio(at)]
            for at, level in enumerate(levels)
            for day in range(3)
        ]
        file = write(tmp_path / f"p{seed}" / "t.csv", ["the level", "the day", "the time"], rows)
        request = table.TableRequest((("the time", "ms"),), ("the level",), "the day")
        entries = contrasts(evidence_of(file, request))
        assert len(entries) == len(levels) - 1
        for entry in entries:
            expected = ratio(levels.index(entry["level"])) / ratio(levels.index(entry["baseline"]))
            assert entry["estimate"] == pytest.approx(expected, rel=0.02), entry


def test_a_page_draws_every_name(
    cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test whole pages, whose names are a response, two factors and three levels."""
    for seed in cases(3, 200):
        draw = random.Random(seed)
        first, second = draw.sample([*LEVEL_RULES, *OTHERS], 2)
        response = draw.choice([*METRICS, *VEGA])
        levels = draw.sample(words(), 3)
        place = tmp_path / f"p{seed}"
        rows = [
            [level, other, day, (100.0 + day + (at + other) % 2) * (at + other)]
            for at, level in enumerate(levels, 1)
            for other in (1, 2)
            for day in range(3)
        ]
        if response in (first, second):
            continue
        write(place / "t.csv", [first, second, "the day", response], rows)
        monkeypatch.chdir(place)
        names = f"--response={response}", f"--factor={first}", f"--factor={second}"
        said = say("import", "csv", "t.csv", *names, "--block=the day", "--campaign", "c")
        assert said.code == 0, (names, levels, said.err)
        page = (place / "c" / "report" / "index.html").read_text("utf-8")
        assert "could not be drawn" not in page, (names, levels)
        numbers = json.loads((place / "c" / "report" / "analysis.json").read_text("utf-8"))
        by_factor = {entry["factor"] for entry in numbers["contrasts"]}
        assert by_factor == {table.factor(first), table.factor(second)}, (names, levels)
