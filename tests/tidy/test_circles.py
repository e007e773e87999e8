"""Test that the modules of the Python package and of each Rust crate have no circular imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.circles import circle_problems, circles, python_imports, rust_imports
from tests.tidy.layers import is_test
from tests.tidy.tree import ROOT, texts

CRATES = ("agent", "languages/rust/kit", "languages/rust/kit/web")


def _sources(folder: str, suffix: str) -> dict[Path, str]:
    below = [(path, text) for path, text in texts() if path.is_relative_to(folder)]
    return {path: text for path, text in below if path.suffix == suffix and not is_test(path)}


def test_python_modules_import_each_other_in_one_direction() -> None:
    graph = python_imports(_sources("wattwire", ".py"))
    assert "wattwire.model.errors" in graph["wattwire.cli.main"]
    problems = circle_problems("wattwire", graph)
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("crate", CRATES)
def test_rust_modules_import_each_other_in_one_direction(crate: str) -> None:
    sources = _sources(f"{crate}/src", ".rs")
    graph = rust_imports({path.relative_to(f"{crate}/src"): t for path, t in sources.items()})
    assert len(graph) > 1
    assert (ROOT / crate / "Cargo.toml").is_file()
    problems = circle_problems(crate, graph)
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("from wattwire import b", "from wattwire.a import x", 1),
        ("import wattwire.b", "def f():\n    import wattwire.a", 1),
        ("from . import b", "from .a import x", 1),
        ("import wattwire.b", "import json", 0),
        ("import wattwire.b", "if TYPE_CHECKING:\n    import wattwire.a", 1),
        ("if TYPE_CHECKING:\n    import wattwire.b", "from wattwire.a import x", 1),
    ],
)
def test_a_planted_circle_of_python_modules_is_found(first: str, second: str, count: int) -> None:
    sources = {Path("wattwire/a.py"): first, Path("wattwire/b.py"): second}
    assert len(circles(python_imports(sources))) == count


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("use crate::b;", "use crate::host::a::X;", 1),
        ("use crate::{b::Y, c};", "use crate::a;", 1),
        ("use super::super::b::Y;", "fn f() { crate::a::g() }", 1),
        ("use crate::b;", "#[cfg(test)]\nmod tests { use crate::a; }\nfn f() {}", 0),
        ("use crate::b;", "mod inner { use super::x; }", 0),
        ("use crate::b;", 'const X: &str = "crate::a";  // crate::a', 0),
        ("use crate::VERSION;", "", 1),
    ],
)
def test_a_planted_circle_of_rust_modules_is_found(first: str, second: str, count: int) -> None:
    sources = {
        Path("main.rs"): "mod b; mod host;\nuse host::a;\nfn main() { host::a::run() }",
        Path("host/mod.rs"): "pub mod a;",
        Path("host/a.rs"): first,
        Path("b.rs"): second,
        Path("c.rs"): "",
    }
    assert len(circles(rust_imports(sources))) == count


def test_a_circle_of_many_is_named_in_its_order() -> None:
    graph = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("a"), "d": frozenset("a")}
    assert circles(graph) == [["a", "b", "c", "a"]]
