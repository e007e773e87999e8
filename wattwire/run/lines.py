"""Validate the lines that a node prints (contract C-05)."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from wattwire.catalog import home
from wattwire.model import LazyModule
from wattwire.model.errors import WattwireError

if TYPE_CHECKING:
    import jsonschema
else:
    jsonschema = LazyModule("jsonschema")

LINE = re.compile(r"(LISTENING|READY|COUNTED|SENT|DONE|ERROR) (\{.*\})", re.DOTALL)
LINE_ORDER = ("LISTENING", "READY", "COUNTED", "SENT", "DONE", "ERROR")
CLAUSES = {
    "LISTENING": "C-06",
    "READY": "C-07",
    "COUNTED": "C-11",
    "SENT": "C-14",
    "DONE": "C-16",
    "ERROR": "C-05",
}
LINE_CHARACTERS_MAX = 60_000
"""The agent passes on lines of up to 64 KiB without splitting them."""
STRING_CHARACTERS_MAX = 8_192
DEPTH_MAX = 8
COUNT_MAX = 2**53
TIME_NS_MAX = 2**63 - 1
EXCERPT_CHARACTERS = 80


class BadLineError(WattwireError):
    """Error for a printed line that the contract does not allow.

    Its text begins with the clause.
    """


def parse_line(text: str, seen: Collection[str]) -> tuple[str, dict[str, Any]]:
    """Return the keyword and the fields of one line. `seen` contains the earlier keywords.

    Raise BadLineError if the form, a type or the order of the line violates the contract.
    """
    match = LINE.fullmatch(text)
    if len(text) > LINE_CHARACTERS_MAX:
        keyword = text.partition(" ")[0]
        clause = CLAUSES.get(keyword, "C-05")
        raise BadLineError(f"{clause}: a line of more than {LINE_CHARACTERS_MAX:,} characters")
    if match is None:
        raise BadLineError(
            f"C-05: found {excerpt(text)}; allowed: a line of the form `KEYWORD {{…}}`"
        )
    keyword = match[1]
    clause = CLAUSES[keyword]
    later = LINE_ORDER[LINE_ORDER.index(keyword) :]
    # Two threads of a node may both report that it ended.
    if keyword != "ERROR" and any(name in seen for name in later):
        raise BadLineError(
            f"C-05: found {keyword} after {', '.join(seen)}; allowed: each line once, in the order "
            f"{' '.join(LINE_ORDER)}"
        )
    try:
        fields = json.loads(match[2], parse_constant=_refuse_constant, parse_float=_finite)
        problem = _problem_in(fields, DEPTH_MAX)
    except RecursionError:
        problem = f"nested more than {DEPTH_MAX} levels deep"
    except ValueError as error:
        problem = f"not a JSON object ({error})"
    problem = problem or _schema_problem(keyword, fields) or _limit_problem(fields)
    if problem:
        raise BadLineError(f"{clause}: {keyword}: {problem}; the line is {excerpt(text)}")
    return keyword, {key: _as_integer(value) for key, value in fields.items()}


def excerpt(text: str) -> str:
    """Return the beginning of a text in printable ASCII, quoted."""
    short = text if len(text) <= EXCERPT_CHARACTERS else text[:EXCERPT_CHARACTERS] + "..."
    return ascii(short)


def printable(text: str) -> str:
    """Return a node's text with control characters escaped."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word} is not a finite number")
    return value


def _problem_in(value: Any, depth: int) -> str:
    """Return a breach of the limits that apply to values at all depths, or ""."""
    if depth < 0:
        return f"nested more than {DEPTH_MAX} levels deep"
    if isinstance(value, str):
        if len(value) > STRING_CHARACTERS_MAX:
            return f"a string of {len(value):,} characters; allowed: {STRING_CHARACTERS_MAX:,}"
        if any("\ud800" <= character <= "\udfff" for character in value):
            return f"the string {excerpt(value)} has a lone surrogate"
    elif isinstance(value, int):
        if not -(2**64) < value < 2**64:
            return "an integer of more than 64 bits"
    elif isinstance(value, dict):
        inner = [*value, *value.values()]
        return next((p for item in inner if (p := _problem_in(item, depth - 1))), "")
    elif isinstance(value, list):
        return next((p for item in value if (p := _problem_in(item, depth - 1))), "")
    return ""


@functools.cache
def _validator(keyword: str) -> jsonschema.Draft202012Validator:
    path = home() / "contract" / "schemas" / f"{keyword.lower()}.schema.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def _schema_problem(keyword: str, fields: dict[str, Any]) -> str:
    """Return up to three violations of the keyword's schema, or ""."""
    errors = sorted(_validator(keyword).iter_errors(fields), key=lambda error: error.json_path)
    return "; ".join(f"{error.json_path}: {error.message[:200]}" for error in errors[:3])


def _limit_problem(fields: dict[str, Any]) -> str:
    """Return the first number beyond its limit, or ""."""
    for key, value in fields.items():
        limit = TIME_NS_MAX if key.endswith("_ns") else COUNT_MAX
        if isinstance(value, (int, float)) and value > limit:
            return f"{key} is {value:,}; allowed: at most {limit:,}"
    return ""


def _as_integer(value: Any) -> Any:
    """Return a float such as 3.0 as an integer, because JSON does not distinguish 3.0 from 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
