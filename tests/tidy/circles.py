"""Detect circular imports: such modules cannot be read or tested separately."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.tidy.tokens import Token, tokenise

Graph = Mapping[str, frozenset[str]]
"""Module → the modules that it imports."""
ROOT_MODULE = "crate"


def circles(graph: Graph) -> list[list[str]]:
    """Return disjoint import cycles, such as [a, b, a] if a and b import each other."""
    remaining = {module: set(imported) for module, imported in graph.items()}
    result = []
    for module in sorted(graph):
        path = _way_back(remaining, module)
        if path:
            result.append(path)
            for passed in path:
                remaining.pop(passed, None)
    return result


def _way_back(graph: Mapping[str, set[str]], start: str) -> list[str]:
    """Return the shortest path of imports from a module to itself; empty if there is none."""
    paths: dict[str, list[str]] = {start: [start]}
    queue = [start]
    for module in queue:
        for imported in sorted(graph.get(module, ())):
            if imported == start:
                return [*paths[module], start]
            if imported not in paths:
                paths[imported] = [*paths[module], imported]
                queue.append(imported)
    return []


def circle_problems(where: str, graph: Graph) -> list[str]:
    """Return a line for each import cycle of a package or crate."""
    advice = "move what both need into the module where it belongs"
    return [f"{where}: {' → '.join(circle)}; {advice}" for circle in circles(graph)]


def python_imports(sources: Mapping[Path, str]) -> Graph:
    """Return the imports between Python modules. Paths are relative to the package's folder.

    Imports inside functions and imports for type checkers (`if TYPE_CHECKING`) count, because they
    only hide a cycle: a reader of either module needs the other.
    """
    names = {path: _python_module(path) for path in sources}
    known = frozenset(names.values())
    return {
        name: frozenset(_python_targets(path, sources[path], known)) - {name}
        for path, name in names.items()
    }


def _python_module(path: Path) -> str:
    return ".".join(part for part in path.with_suffix("").parts if part != "__init__")


def _python_targets(path: Path, source: str, known: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = path.parts[: len(path.parts) - node.level] if node.level else ()
            base = ".".join(filter(None, (*above, node.module)))
            members = [f"{base}.{alias.name}" for alias in node.names]
            names = [member if member in known else base for member in members]
        else:
            continue
        yield from (name for name in names if name in known)


def rust_imports(sources: Mapping[Path, str]) -> Graph:
    """Return the imports between the modules of a crate. Paths are relative to its `src`.

    A path in code counts like a path after `use`. Code below `#[cfg(test)]` does not count. The
    root of the crate is also a module: a module that uses an item of the root, or an item that the
    root re-exports, depends on it.
    """
    modules = {_rust_module(path): source for path, source in sources.items()}
    names = {module: "::".join(module) or ROOT_MODULE for module in modules}
    return {
        names[module]: frozenset(names[t] for t in _rust_targets(module, source, modules))
        - {names[module]}
        for module, source in modules.items()
    }


def _rust_module(path: Path) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "main", "lib") else parts


def _rust_targets(
    module: tuple[str, ...], source: str, modules: Mapping[tuple[str, ...], str]
) -> Iterator[tuple[str, ...]]:
    tokens = _without_tests(list(tokenise(source)))
    children = {other[-1] for other in modules if other and other[:-1] == module}
    above: list[int] = []
    """The depths of braces at which the modules inside this file begin."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind != "string" else 0
        if token.text == "{" and at > 1 and tokens[at - 2].text == "mod":
            above.append(depth)
        if above and depth < above[-1]:
            above.pop()
        is_later = at > 1 and tokens[at - 1].text == ":"
        if token.kind != "name" or is_later or not _is_path(tokens, at):
            continue
        if token.text not in ("crate", "self", "super") and token.text not in children:
            continue
        for path in _paths(tokens, at)[0]:
            yield _resolved(_absolute(module, len(above), path), modules)


def _without_tests(tokens: list[Token]) -> list[Token]:
    """Return the tokens without items in braces below `#[cfg(test)]`."""
    kept: list[Token] = []
    at = 0
    while at < len(tokens):
        if [t.text for t in tokens[at : at + 7]] == ["#", "[", "cfg", "(", "test", ")", "]"]:
            while tokens[at].text not in ("{", ";"):
                at += 1
            depth = tokens[at].text == "{"
            while depth:
                at += 1
                depth += {"{": 1, "}": -1}.get(tokens[at].text, 0)
            at += 1
        else:
            kept.append(tokens[at])
            at += 1
    return kept


def _is_path(tokens: Sequence[Token], at: int) -> bool:
    return [token.text for token in tokens[at + 1 : at + 3]] == [":", ":"]


def _paths(tokens: Sequence[Token], at: int) -> tuple[list[tuple[str, ...]], int]:
    """Return the paths of the tree `a::b` or `a::{b, c::d}` at a token, and the next token."""
    head = (tokens[at].text,)
    if not _is_path(tokens, at):
        return [head], at + 1
    at += 3
    if tokens[at].text != "{":
        if tokens[at].kind != "name":
            return [head], at
        tails, at = _paths(tokens, at)
        return [head + tail for tail in tails], at
    paths: list[tuple[str, ...]] = []
    at += 1
    while tokens[at].text != "}":
        if tokens[at].kind == "name":
            tails, at = _paths(tokens, at)
            paths += [head + tail for tail in tails]
        else:
            at += 1
    return paths, at + 1


def _absolute(module: tuple[str, ...], inside: int, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path from the crate's root; `inside` is the nesting depth within the file."""
    if path[0] == "crate":
        return path[1:]
    ups = sum(part == "super" for part in path) - inside
    rest = tuple(part for part in path if part not in ("super", "self"))
    return (module[: len(module) - ups] if ups > 0 else module) + rest


def _resolved(path: tuple[str, ...], modules: Mapping[tuple[str, ...], str]) -> tuple[str, ...]:
    """Return the module of an absolute path. The root may re-export a module of a folder."""
    for length in range(len(path), 0, -1):
        if path[:length] in modules:
            return path[:length]
    reexported = [module for module in modules if path and module and module[-1] == path[0]]
    return reexported[0] if len(reexported) == 1 else ()
