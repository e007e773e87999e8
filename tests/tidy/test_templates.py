"""Test that templates of topics use existing fields and sentences, and print every sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.layers import is_test
from tests.tidy.templates import (
    OWN,
    SHARED,
    fields_of,
    imported_modules,
    macros_of,
    name_problems,
    unused_macros,
)
from tests.tidy.tree import ROOT, texts
from wattwire.report.topic_page import PLAIN

TOPICS = sorted(path.parent for path in (ROOT / "wattwire/analysis/topics").rglob("numbers.py"))
"""The folders of topics, and the folders of findings inside one of them."""
RESULTS = (ROOT / "wattwire/stats/results.py").read_text("utf-8")
MODULES = [
    text
    for path, text in texts()
    if path.parts[0] == "wattwire" and path.suffix == ".py" and not is_test(path)
]


@pytest.mark.parametrize("folder", TOPICS, ids=lambda folder: folder.name)
def test_templates_use_what_exists_and_every_sentence_is_printed(folder) -> None:
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("test_")]
    fields = set().union(*(_fields(path.read_text("utf-8")) for path in modules))
    templates = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.j2"))}
    macros, others = _macros(folder), _macros_of_others(folder)
    problems = [
        f"{folder.name}/{name}:{problem}"
        for name, source in templates.items()
        for problem in name_problems(PLAIN, source, fields, macros, others)
    ]
    around = [path.read_text("utf-8") for path in (*folder.glob("*/*.j2"), *_outer(folder))]
    topic = folder.relative_to(ROOT / "wattwire/analysis/topics").as_posix()
    modules_with_sentences = (text for text in MODULES if f'Sentences("{topic}")' in text)
    idle = unused_macros(
        macros, "\n".join([*templates.values(), *around]), "\n".join(modules_with_sentences)
    )
    idle -= set(
        re.findall(r'data-(?:sentence|reason|mark|hint)="(\w+)"', "".join(templates.values()))
    )
    problems += [f"{folder.name}/words.j2: the sentence {name} is printed nowhere" for name in idle]
    assert not problems, "\n" + "\n".join(problems)


def test_no_sentence_has_a_backtick_which_the_page_would_show() -> None:
    comments = re.compile(r"{#.*?#}", re.DOTALL)
    templates = sorted((ROOT / "wattwire/analysis/topics").rglob("*.j2"))
    assert [path for path in templates if "`" in comments.sub("", path.read_text("utf-8"))] == []
    assert len(templates) > 50


def _macros(folder: Path) -> set[str]:
    """Return the names of the macros in a folder's `words.j2`; none without this file."""
    path = folder / "words.j2"
    return macros_of(PLAIN, path.read_text("utf-8")) if path.is_file() else set()


def _macros_of_others(folder: Path) -> dict[str, set[str]]:
    """Return the macros that every folder inside has, and those of the folder around."""
    inside = [_macros(path.parent) for path in folder.glob("*/numbers.py")]
    return {OWN: set.intersection(*inside) if inside else set(), SHARED: _macros(folder.parent)}


def _outer(folder: Path) -> list[Path]:
    """Return the templates of the folder around a finding, which print its sentences."""
    return sorted(folder.parent.glob("*.j2"))


def _fields(module: str) -> set[str]:
    """Return the fields of the classes in a topic's module and in the modules that it imports."""
    paths = [ROOT / f"{name.replace('.', '/')}.py" for name in sorted(imported_modules(module))]
    imported = [path.read_text("utf-8") for path in paths if path.is_file()]
    return set().union(*map(fields_of, [module, RESULTS, *imported]))


SOURCE = (
    "class A:\n    runs: int\n    @property\n    def named(self): ...\n    def other(self): ...\n"
)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ a.runs }}{{ a.named }}{{ words.said(a) }}{{ loop.last }}", ""),
        ("{{ a.other }}", '1: "other" is neither'),
        ("\n{{ a.run }}", '2: "run" is neither'),
        ("{{ words.runs(a) }}", '1: "runs" is neither'),
        ('<table data-rows="named"><th data-key="x" data-sentence="said">', ""),
        ('<th data-key="x" data-field="runs.0.named">', ""),
        ('<th data-key="{{ a.runs }}">', ""),
        ('\n<th data-key="x">', '2: data-key: "x" is neither'),
        ('<table id="t"><th data-key="x"></th><tr><td>{{ a.runs }}</td></tr></table>', ""),
        ('<table id="t"></table>\n<table data-rows="runs"><th data-key="x">', '2: data-key: "x"'),
        ('<table data-rows="runs.rows">', '1: data-rows: "rows" is neither'),
        ('<th data-key="x" data-sentence="runs">', '1: data-sentence: "runs" is neither'),
        (
            '<th data-key="runs" data-mark="said" data-hint="mine">',
            '1: data-hint: "mine" is neither',
        ),
        ('<th data-key="x" data-sentence="said" data-of="run">', '1: data-of: "run" is neither'),
        ('<form data-runs="named">', ""),
        ('<form data-runs="rows">', '1: data-runs: "rows" is neither'),
        ('<figure data-chart="runs" data-points="named">', ""),
        ('<figure data-chart="run" data-points="runs">', '1: data-chart: "run" is no chart'),
    ],
)
def test_a_name_that_does_not_exist_is_found(template, problem) -> None:
    (*found,) = name_problems(PLAIN, template, fields_of(SOURCE), {"said"})
    assert [text.startswith(problem) for text in found] == ([True] if problem else [])


def test_a_sentence_of_another_folder_must_exist_there() -> None:
    others = {"own": {"title"}, "shared": {"span"}}
    (*found,) = name_problems(
        PLAIN, "{{ own.title(a) }}{{ own.cause(a) }}{{ shared.title(a) }}", set(), {"said"}, others
    )
    assert [text.partition(" is")[0] for text in found] == ['1: "cause"', '1: "title"']


def test_fields_of_imported_classes_are_known() -> None:
    source = "from wattwire.stats.break_even import Without\nclass A:\n    n: int\n"
    assert imported_modules(source) == {"wattwire.stats.break_even"}
    assert {"n", "estimate", "crossed"} <= _fields(source)


def test_a_sentence_that_nothing_prints_is_found() -> None:
    words = "{% macro a(x) %}{{ b(x) }}{% endmacro %}{% macro b(x) %}{% endmacro %}"
    assert macros_of(PLAIN, words) == {"a", "b"}
    assert unused_macros({"a", "b"}, words) == {"a"}
    assert unused_macros({"a", "b"}, words, "LIMIT.a(check)") == set()
    assert unused_macros({"a", "b"}, words, "a(check)") == {"a"}, "a function of this name"
    assert unused_macros({"a", "b"}, words + "{{ x | listed(a) }}") == set()
