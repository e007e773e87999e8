"""Set the duration of the fuzz tests: short by default, or WATTWIRE_FUZZ_CASES."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "languages" / "python" / "kit"))

Cases = Callable[..., Iterator[int]]


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Iterator[Cases]:
    """Return a function that yields seeds.

    `cases(short)` yields `short` seeds, or WATTWIRE_FUZZ_CASES seeds from WATTWIRE_FUZZ_SEED.
    `cases(short, whole)` yields `whole` seeds in `make test-all`. With WATTWIRE_FUZZ_CASES,
    the number of cases is printed at the end (`pytest -s`).
    """
    counts: Counter[str] = Counter()

    def seeds(short: int, whole: int | None = None) -> Iterator[int]:
        first = int(os.environ.get("WATTWIRE_FUZZ_SEED", "1"))
        usual = whole if whole and os.environ.get("WATTWIRE_HEAVY") == "1" else short
        for seed in range(first, first + int(os.environ.get("WATTWIRE_FUZZ_CASES", usual))):
            counts["cases"] += 1
            yield seed

    yield seeds
    if "WATTWIRE_FUZZ_CASES" in os.environ:
        print(f"\n{request.node.name}: {counts['cases']:,} cases")
