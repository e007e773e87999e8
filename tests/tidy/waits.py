"""Find waits without a deadline, which a silent process, a far host or Ctrl-C cannot end.

Polars installs a handler of SIGINT with SA_RESTART, so that Ctrl-C does not interrupt a system call
that waits in C: Python raises KeyboardInterrupt only after the call has returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

WITHOUT_ARGUMENTS = frozenset("wait communicate readline join acquire get result select".split())
"""Methods that wait for ever if they have no argument. `"".join(x)` and `{}.get(x)` have one."""
PROGRAMS = frozenset("run call check_call check_output".split())
"""Functions of subprocess that wait for a program."""
PIPES = frozenset("stdout stderr".split())
FUNCTIONS = frozenset({"input", "urlopen", "waitpid", "wait", "create_connection", "accept"})
"""Functions that wait for ever without a timeout."""
BY_POSITION = {"urlopen": 3, "wait": 2, "create_connection": 2}
"""Function → number of positional arguments that include the timeout."""
EXEMPTION = "waits:"
"""Begins a comment on the line of a wait that has another end, and states which."""


def wait_problems(path: Path, text: str) -> list[str]:
    """Return `path:line: call: fault and remedy` for each wait without a deadline."""
    lines = text.splitlines()
    return [
        f"{path}:{call.lineno}: {_name(call.func)}() has no deadline: pass a timeout, or end a "
        f"line of the call with `# {EXEMPTION} WHAT ENDS IT`"
        for call in _waits(ast.parse(text))
        if not any(f"# {EXEMPTION} " in line for line in lines[call.lineno - 1 : call.end_lineno])
    ]


def _waits(tree: ast.AST) -> Iterator[ast.Call]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and not _has_timeout(call) and _can_wait(call):
            yield call


def _has_timeout(call: ast.Call) -> bool:
    return any(word.arg is None or "timeout" in word.arg for word in call.keywords)


def _can_wait(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        name, owner = function.id, ""
    elif isinstance(function, ast.Attribute):
        name, owner = function.attr, _name(function.value)
        if not call.args and name in WITHOUT_ARGUMENTS:
            return True
        if owner == "subprocess" and name in PROGRAMS:
            return True
        if name == "read" and owner.rpartition(".")[2] in PIPES:
            return True
        if name not in FUNCTIONS or (name == "wait" and owner != "futures"):
            return False
    else:
        return False
    if name == "wait" and not call.args:  # a function of the caller, as futures.wait has arguments
        return False
    return name in FUNCTIONS and len(call.args) < BY_POSITION.get(name, 99)


def _name(node: ast.expr) -> str:
    """Return the dotted name of an expression, or "" for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}".lstrip(".")
    return ""
