"""A tokeniser for languages with braces, sufficient for rules on names and lengths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes)|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)")
    | (?P<string>[bcLuU]?"(?:\\.|[^"\\])*")
    | (?P<character>b?'(?:\\(?:'|[^']+)|[^'\\\n])')
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark_of_one>[^\sA-Za-z0-9_])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTROL = frozenset({"func", "if", "for", "while", "switch", "catch", "constexpr"})
_NO_BODY = frozenset({";", "}", ")", "=", "."})


class Token(NamedTuple):
    """One token: its kind (name, string, mark), its text without quotes, and its line number."""

    kind: str
    text: str
    line: int
    end_line: int


def tokenise(source: str) -> Iterator[Token]:
    """Yield names, strings and marks; comments, characters and numbers are skipped."""
    line, counted_to = 1, 0
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or ""
        kind = next((k for k in ("comment", "raw", "string", "character", "name") if match[k]), "")
        if kind in ("comment", "character"):
            continue
        line += source.count("\n", counted_to, match.start())
        counted_to = match.start()
        end_line = line + match[0].count("\n")
        if kind in ("raw", "string"):
            body = match[0][match[0].index('"') + 1 : match[0].rindex('"')]
            if match[0].startswith("R"):
                body = body[body.index("(") + 1 : body.rindex(")")]
            yield Token("string", body, line, end_line)
        else:
            yield Token(kind or "mark", match[0], line, end_line)


def function_lengths(source: str) -> list[tuple[str, int, int]]:
    """Return (name, first line, number of lines) of each function, including nested functions.

    A function is `fn NAME …(…) … {` in Rust and `NAME(…) … {` in other languages, where NAME is not
    a control keyword. The lines of closures count towards the enclosing function.
    """
    tokens = list(tokenise(source))
    closing = _matching(tokens)
    rust = any(t.text == "fn" and t.kind == "name" for t in tokens)
    found = []
    for index, token in enumerate(tokens[:-1]):
        parameters = _parameters(tokens, index, rust)
        if parameters is None or parameters not in closing:
            continue
        body = _body_after(tokens, closing[parameters] + 1, closing)
        if body is not None and body in closing:
            name = tokens[index + 1].text if rust else token.text
            found.append((name, token.line, tokens[closing[body]].end_line - token.line + 1))
    return found


def _parameters(tokens: list[Token], index: int, rust: bool) -> int | None:
    """Return the index of the parenthesis that opens the parameters of a function at `index`."""
    token = tokens[index]
    if token.kind != "name" or (index > 0 and tokens[index - 1].text == "@"):  # an annotation
        return None
    if not rust:
        return index + 1 if token.text not in _CONTROL and tokens[index + 1].text == "(" else None
    if token.text != "fn" or tokens[index + 1].kind != "name":
        return None
    after = range(index + 2, min(index + 80, len(tokens)))
    return next((i for i in after if tokens[i].text == "("), None)


def _matching(tokens: list[Token]) -> dict[int, int]:
    pairs = {"(": ")", "{": "}"}
    stack: list[tuple[str, int]] = []
    closing: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.kind == "string":
            continue
        if token.text in pairs:
            stack.append((pairs[token.text], index))
        elif stack and token.text == stack[-1][0]:
            closing[stack.pop()[1]] = index
    return closing


def _body_after(tokens: list[Token], index: int, closing: dict[int, int]) -> int | None:
    """Return the opening brace of a body after `index`, past qualifiers and return types."""
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "string" or token.text in _NO_BODY:
            return None
        if token.text == "{":
            return index
        index = closing.get(index, index) + 1
    return None
