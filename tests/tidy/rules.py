"""Rules for the text of one file. Each returns problems: the place, the fault and the remedy."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.tokens import function_lengths
from tests.tidy.tree import BRACE_SUFFIXES

LINE_LENGTH_MAX = 100
PAGE_LINE_LENGTH_MAX = 110
FUNCTION_LINES_MAX = 70
BLOB_BYTES_MAX = 500_000

SUFFIXES = frozenset(
    ".R .action .bin .c .cc .conf .cpp .cs .css .csv .go .h .hpp .html .idl .in .j2 .java "
    ".jinja .js .json .jsonl .lock .md .mod .msg .php .png .proto .py .pyi .rb .rs .ru .rules "
    ".sh .sha256 .spec .sql .srv .sum .svg .toml .ts .txt .xml .yaml .yml".split()
)
BARE_NAMES = frozenset(
    ".clang-format .editorconfig .gitattributes .gitignore .gitkeep CMakeLists.txt LICENSE "
    "Makefile run py.typed .dockerignore Dockerfile".split()
)

# The words are split, so that this file satisfies its own rules.
_LEFTOVER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
_MACHINE_PATH = re.compile(
    r"(?<![\w.}])/(?:wo" + r"rk/|ro" + r"ot(?:/|\b)|ho" + r"me/\w|Us" + r"ers/\w|opt/wh" + r"eels)"
)
_REGISTRY = re.compile(
    r"py" + r"pi\.org|pythonho" + r"sted\.org|(?:index|static)\.crat" + r"es\.io|"
    r"registry\.np" + r"mjs|proxy\.gol" + r"ang|maven\.apa" + r"che\.org|repo1\.ma" + r"ven|"
    r"(?:deb|security)\.deb" + r"ian\.org",
    re.IGNORECASE,
)
_WORKPLACE = re.compile(
    r"\bC" + r"EO\b|\bwork" + r"place\b|\bClau" + r"de\b|\bAnthro" + r"pic\b|\bsub-?ag" + r"ents?\b"
    r"|\bthis ses" + r"sion's\b|\bAI assis" + r"tant\b|\blanguage mod" + r"el\b"
)
_URL = re.compile(r"\w+://")
LOCK_FILES = frozenset({"Cargo.lock", "package-lock.json", "go.sum", "go.mod"})
"""Files written by package managers, which contain the name of a registry."""


def name_problems(path: Path) -> list[str]:
    """Check that a file has a known extension."""
    if path.suffix in SUFFIXES or path.name in BARE_NAMES:
        return []
    return [f"{path}: unknown kind of file; known kinds stand in tests/tidy/rules.py"]


def size_problems(path: Path, size_bytes: int) -> list[str]:
    """Check that a file is small. Scripts generate large data, or they are stored elsewhere."""
    if size_bytes <= BLOB_BYTES_MAX:
        return []
    return [f"{path}: {size_bytes} bytes; at most {BLOB_BYTES_MAX} are allowed"]


def word_problems(path: Path, text: str) -> list[str]:
    """Check for leftovers, machine paths, registry hosts and forbidden words."""
    rules = [
        (_LEFTOVER, "a leftover; do it, or write down why it is as it is"),
        (_MACHINE_PATH, "a path of one machine; take it from the environment or a parameter"),
        (_WORKPLACE, "a word that has no place in the repository; delete it"),
    ]
    if path.name not in LOCK_FILES:
        rules.append((_REGISTRY, "a registry's host; packages are named, their source is not"))
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, advice in rules:
            if match := pattern.search(line):
                problems.append(f'{path}:{number}: found "{match[0]}": {advice}')
    return problems


def line_problems(path: Path, text: str, columns_max: int = LINE_LENGTH_MAX) -> list[str]:
    """Check that lines of code have at most 100 columns, and lines of Markdown at most 110."""
    return [
        f"{path}:{number}: {len(line)} columns; at most {columns_max} are allowed"
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > columns_max
    ]


def long_functions(path: Path, text: str) -> dict[str, int]:
    """Return `path:name` → number of lines, for every function that exceeds the limit."""
    if path.suffix == ".py":
        lengths = [
            (node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
    elif path.suffix in BRACE_SUFFIXES:
        lengths = function_lengths(text)
    else:
        return {}
    return {f"{path}:{name}": count for name, _, count in lengths if count > FUNCTION_LINES_MAX}


def ratchet_problems(found: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """Check that listed long functions do not grow, and that shortened functions leave the list."""
    problems = []
    for name, count in sorted(found.items()):
        limit = allowed.get(name, FUNCTION_LINES_MAX)
        if count > limit:
            problems.append(f"{name}: {count} lines; at most {limit} are allowed; take it apart")
    for name in sorted(set(allowed) - set(found)):
        problems.append(f"{name}: no longer too long; take it out of the ratchet")
    return problems


def requirement_problems(path: Path, text: str) -> list[str]:
    """Check a pinned requirements file: exact versions with hashes, no addresses, no options."""
    problems = []
    logical = text.replace("\\\n", " ").splitlines()
    for line in logical:
        requirement = line.split(" #")[0].strip()
        if not requirement or requirement.startswith("#"):
            continue
        if requirement.startswith("-") or _URL.search(requirement):
            problems.append(f'{path}: found "{requirement[:60]}"; allowed: NAME==VERSION --hash=…')
        elif "==" not in requirement or "--hash=sha256:" not in requirement:
            problems.append(f'{path}: "{requirement[:60]}" lacks its version or its hashes')
    if _URL.search("\n".join(line for line in text.splitlines() if line.startswith("#"))):
        problems.append(f"{path}: an address in a comment; compile it without index addresses")
    return problems
