"""Repeat the tests of a published package with the decision path on its runs.

The runs are in the folder shared/replication, which is not part of the repository. Without it,
these tests are skipped. Each expected number is computed from the runs by the stated recipe, even
if it differs from the printed number.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from wattwire import papers

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "replication"
RUNS, EXPECTED = FOLDER / "albonico_runs.csv", FOLDER / "expected_albonico.json"
pytestmark = pytest.mark.skipif(
    not (RUNS.is_file() and EXPECTED.is_file()),
    reason="needs ../shared/replication beside the repository: the data are not part of it",
)
INTERVALS = ("0.05", "0.1", "0.25", "0.5", "1.0")
CLIENTS = ("1", "2", "3")
LANGUAGES = ("cpp", "py")


@pytest.fixture(scope="module")
def runs() -> list[dict[str, str]]:
    with RUNS.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["mean_power_w"]]


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    document = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return {test["test"]: test["data"] for test in document["tests"]} | {
        "table 6": next(t["published"] for t in document["tests"] if t["test"].startswith("Table"))
    }


def groups(
    runs: list[dict[str, str]], by: str, levels: tuple[str, ...], choice: str = "canonical",
    **where: str,
) -> dict[str, list[float]]:  # fmt: skip
    """Return the mean power of the runs that match `where`, by the levels of a factor."""
    kept = [row for row in runs if row[choice] == "yes"]
    kept = [row for row in kept if all(row[key] == level for key, level in where.items())]
    return {
        level: [float(row["mean_power_w"]) for row in kept if row[by] == level] for level in levels
    }


PUBLISHER = {"pattern": "pubsub", "role": "server"}
SUBSCRIBER = {"pattern": "pubsub", "role": "client"}
SERVER = {"pattern": "service", "role": "server"}
CLIENT = {"pattern": "service", "role": "client"}
KRUSKAL = [
    ("publisher by language, Kruskal-Wallis", "language", LANGUAGES, PUBLISHER),
    ("subscriber by language, Kruskal-Wallis", "language", LANGUAGES, SUBSCRIBER),
    ("publisher by interval, Python", "interval_s", INTERVALS, PUBLISHER | {"language": "py"}),
    ("publisher by interval, C++", "interval_s", INTERVALS, PUBLISHER | {"language": "cpp"}),
    ("publisher by clients, Python", "clients", CLIENTS, PUBLISHER | {"language": "py"}),
    ("publisher by clients, C++", "clients", CLIENTS, PUBLISHER | {"language": "cpp"}),
    ("subscriber by interval, Python", "interval_s", INTERVALS, SUBSCRIBER | {"language": "py"}),
    ("subscriber by interval, C++", "interval_s", INTERVALS, SUBSCRIBER | {"language": "cpp"}),
    ("service server by interval, C++", "interval_s", INTERVALS, SERVER | {"language": "cpp"}),
    ("service server by interval, Python", "interval_s", INTERVALS, SERVER | {"language": "py"}),
    ("service client by interval, Python", "interval_s", INTERVALS, CLIENT | {"language": "py"}),
    ("service client by interval, C++", "interval_s", INTERVALS, CLIENT | {"language": "cpp"}),
    ("subscriber by clients, Python at 0.1 s, KW", "clients", CLIENTS,
     SUBSCRIBER | {"language": "py", "interval_s": "0.1"}),
    ("subscriber by clients, Python at 1.0 s, KW", "clients", CLIENTS,
     SUBSCRIBER | {"language": "py", "interval_s": "1.0"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "by", "levels", "where"), KRUSKAL, ids=[k[0] for k in KRUSKAL])
def test_kruskal_wallis(runs, expected, name: str, by: str, levels, where: Mapping[str, str]):
    for choice in ("canonical", "authors_pick", "iqr"):
        known = expected[name].get(choice)
        if known is None:
            continue
        column = "authors_pick" if choice == "authors_pick" else "canonical"
        data = list(groups(runs, by, levels, column, **where).values())
        if choice == "iqr":
            data = [[v for v, k in zip(g, papers.iqr_outliers(g).kept, strict=True) if k]
                    for g in data]  # fmt: skip
        found = papers.kruskal_wallis(data)
        assert list(found.counts) == known["n"]
        # The table stores power with twelve digits, so the authors' selection is matched to them.
        assert found.statistic == pytest.approx(known["H"], rel=1e-9)
        assert found.p == pytest.approx(known["p"], rel=1e-7)


def test_dunn_with_bonferroni_gives_all_ten_rows_of_table_six(runs, expected) -> None:
    data = groups(runs, "interval_s", INTERVALS, **PUBLISHER, language="cpp")
    found = {(pair.first, pair.second): pair.p["Bonferroni"] for pair in papers.dunn(data)}
    rows = expected["table 6"]
    assert len(rows) == 10
    for row in rows:
        p = found[row["a"], row["b"]]
        assert p == pytest.approx(row["data"], rel=1e-8)
        assert f"{p:.3e}" == f"{row['published']:.3e}"


def test_shapiro_wilk_of_the_language_groups_and_of_the_group_the_number_is_from(
    runs, expected
) -> None:
    known = expected["publisher Shapiro-Wilk by language"]
    for choice, suffix in (("canonical", ""), ("authors_pick", "_authors_pick")):
        data = groups(runs, "language", LANGUAGES, choice, **PUBLISHER)
        for language in LANGUAGES:
            found = papers.shapiro_wilk(data[language])
            assert found.statistic == pytest.approx(known[language + suffix]["W"], rel=1e-6)
            assert found.p == pytest.approx(known[language + suffix]["p"], rel=1e-4)
    slower = [row for row in runs if row["interval_s"] != "0.1"]
    part = groups(slower, "clients", ("2",), **PUBLISHER, language="py")["2"]
    other = known["python_2_clients_without_0.1s"]
    found = papers.shapiro_wilk(part)
    assert len(part) == other["n"]
    assert found.statistic == pytest.approx(other["W"], rel=1e-6)
    assert found.p == pytest.approx(other["p"], rel=1e-4)


ANOVA: list[tuple[str, Callable[[dict[str, Any]], Any], Mapping[str, str]]] = [
    ("subscriber by clients, Python, ANOVA", lambda d: d["pooled"],
     SUBSCRIBER | {"language": "py"}),
    ("subscriber by clients, Python, ANOVA", lambda d: d["interval_005"],
     SUBSCRIBER | {"language": "py", "interval_s": "0.05"}),
    ("subscriber by clients, C++, ANOVA", lambda d: d["pooled"],
     SUBSCRIBER | {"language": "cpp"}),
    ("subscriber by clients, C++, ANOVA", lambda d: d["interval_005"],
     SUBSCRIBER | {"language": "cpp", "interval_s": "0.05"}),
    ('subscriber by clients, Python at 0.2 s and "1.0 s", ANOVA', lambda d: d["0.25"],
     SUBSCRIBER | {"language": "py", "interval_s": "0.25"}),
    ("service server by clients, Python, ANOVA", lambda d: d["server"],
     SERVER | {"language": "py"}),
    ("service server by clients, Python, ANOVA", lambda d: d["client"],
     CLIENT | {"language": "py"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pick", "where"), ANOVA)
def test_analysis_of_variance(runs, expected, name: str, pick, where: Mapping[str, str]) -> None:
    known = pick(expected[name])
    found = papers.anova(list(groups(runs, "clients", CLIENTS, **where).values()))
    assert found.statistic == pytest.approx(known["F"], rel=1e-8)
    assert found.p == pytest.approx(known["p"], rel=1e-8)


@pytest.mark.parametrize(
    ("name", "side", "where"),
    [
        ("service server by clients, C++, KW", "server", SERVER | {"language": "cpp"}),
        ("service client by clients, Python / C++", "py", CLIENT | {"language": "py"}),
        ("service client by clients, Python / C++", "cpp", CLIENT | {"language": "cpp"}),
    ],
)
def test_services_by_clients(runs, expected, name: str, side: str, where) -> None:
    known = expected[name][side]
    found = papers.kruskal_wallis(list(groups(runs, "clients", CLIENTS, **where).values()))
    assert list(found.counts) == known["n"]
    assert found.statistic == pytest.approx(known["H"], rel=1e-8)
    assert found.p == pytest.approx(known["p"], rel=1e-8)


def test_the_walk_takes_the_paper_where_the_paper_went(runs) -> None:
    """The data are not normal, even after Box–Cox: rank tests and Dunn's test are used."""
    path = papers.decide(groups(runs, "interval_s", INTERVALS, **PUBLISHER, language="cpp"))
    assert not path.normal and path.with_all.test.name == "Kruskal–Wallis"
    assert path.with_all.test.p == pytest.approx(1.9005212825170043e-60, rel=1e-7)
    assert len(path.with_all.pairs) == 10
    assert path.without_outliers is not None and 0 < path.removed_share < 0.2
