"""Write tables as LaTeX for papers, with booktabs, units below headings and notes.

Cells have the same text as on the page. Reasons for missing numbers become notes. The first line of
a file lists the required LaTeX packages.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.report.parts import Column, Table

COLUMN_MM, PAGE_MM, TURNED_MM = 84.0, 174.0, 235.0
"""Widths available to a table in mm, for one column, two columns and a landscape page."""
WORDS_MM_MIN = 22.0
REASON_LETTERS_MIN = 20
FLOAT_ROWS_MAX, TURNED_ROWS_MAX = 40, 25
"""Maximum number of rows per page, in portrait and landscape. A longer table continues on further
pages.
"""

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "−": r"$-$", "×": r"$\times$", "±": r"$\pm$", "·": r"$\cdot$", "∞": r"$\infty$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "→": r"$\rightarrow$", "√": r"$\surd$",
    "\u202f": r"\,", "\u00a0": "~", "–": "--", "—": "---", "…": r"\ldots{}",
    "“": "``", "”": "''", "‘": "`", "’": "'", "µ": r"\textmu{}", "μ": r"\textmu{}",
    "°": r"\textdegree{}", "✓": r"$\surd$",
}  # fmt: skip
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "η": "eta",
    "κ": "kappa", "λ": "lambda", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "varphi",
    "χ": "chi", "ω": "omega", "Δ": "Delta", "Σ": "Sigma", "Ω": "Omega",
}  # fmt: skip
RAISED = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
LATIN_END = 0x17F


class _Letters(dict[int, str]):
    """Maps a character to itself if pdflatex supports it, and to [U+…] otherwise."""

    def __missing__(self, code: int) -> str:
        known = 32 <= code <= LATIN_END and code != 127
        self[code] = chr(code) if known else f"[U+{code:04X}]"
        return self[code]


LETTERS = _Letters(
    {ord(letter): replacement for letter, replacement in SPECIAL.items()}
    | {ord(letter): rf"$\{name}$" for letter, name in GREEK.items()}
    | {ord(letter): " " for letter in "\n\t\r"}
)
SCRIPTS = (
    ("^", RAISED, re.compile(f"[{''.join(RAISED)}]+")),
    ("_", LOWERED, re.compile(f"[{''.join(LOWERED)}]+")),
)


def escaped(text: str) -> str:
    """Return `text` escaped for LaTeX. A character that pdflatex lacks becomes [U+…]."""
    if text.isalnum() and text.isascii():
        return text
    for sign, digits, pattern in SCRIPTS:
        if pattern.search(text):
            return _with_script(text, sign, digits, pattern)
    return text.translate(LETTERS)


def _with_script(text: str, sign: str, digits: dict[str, str], pattern: re.Pattern[str]) -> str:
    """Escape `text` for LaTeX, and typeset superscript and subscript digits as scripts."""
    scripts = [f"${sign}{{{''.join(digits[c] for c in run)}}}$" for run in pattern.findall(text)]
    between = [escaped(text_part) for text_part in pattern.split(text)]
    return "".join(a + b for a, b in zip(between, [*scripts, ""], strict=True))


@dataclass(frozen=True)
class Setting:
    """Typesetting of a table, with font size, column gap and available width."""

    letters: str
    mm_per_letter: float
    gap_mm: float
    room_mm: float

    def width_mm(self, letters: int) -> float:
        """Return the approximate width of `letters` characters of text in mm."""
        return self.mm_per_letter * letters


SETTINGS = (
    Setting(r"\footnotesize", 1.65, 4.3, PAGE_MM),
    Setting(r"\scriptsize\setlength{\tabcolsep}{3pt}", 1.45, 2.2, PAGE_MM),
    Setting(r"\scriptsize\setlength{\tabcolsep}{3pt}", 1.45, 2.2, TURNED_MM),
)
"""Font settings in order of preference (8 pt, 7 pt). A smaller font would be unreadable."""


@dataclass
class Notes:
    """The reasons for missing numbers, each with the letter of its note."""

    marks: dict[str, str] = field(default_factory=dict)

    def mark(self, reason: str) -> str:
        """Return the letter of a reason. The letters after z are aa, ab, and so on."""
        if reason not in self.marks:
            more, last = divmod(len(self.marks), 26)
            letters = string.ascii_lowercase
            self.marks[reason] = (letters[more - 1] if more else "") + letters[last]
        return self.marks[reason]


def write_tex(table: Table, path: Path) -> None:
    """Write the table as a LaTeX fragment, which is a float or a longtable over several pages."""
    path.write_text(tex(table), "utf-8")


def tex(table: Table) -> str:
    """Return the table as LaTeX with the first of SETTINGS that fits, or with the last."""
    notes = Notes()
    rows = [[_cell(table, column, row, notes) for column in table.columns] for row in table.rows]
    lengths = [_longest_line(table, column) for column in table.columns]
    fitting = (
        candidate
        for candidate in SETTINGS
        if _min_width_mm(table, lengths, candidate) <= candidate.room_mm
    )
    setting = next(fitting, SETTINGS[-1])
    widths = _widths(table, lengths, setting)
    layout = "".join(map(_alignment, table.columns, widths))
    width_mm = sum(w or setting.width_mm(n) for w, n in zip(widths, lengths, strict=True))
    width_mm += setting.gap_mm * len(lengths)
    body = [" & ".join(cells) + r" \\" for cells in rows] or [
        rf"\multicolumn{{{len(table.columns)}}}{{l}}{{none}} \\"
    ]
    is_turned = setting.room_mm == TURNED_MM
    is_long = len(rows) > (TURNED_ROWS_MAX if is_turned else FLOAT_ROWS_MAX)
    packages = ["array", "booktabs", "longtable" if is_long else "threeparttable"]
    packages += ["pdflscape" if is_long else "rotating"] if is_turned else []
    column_note = "; one column a page" if is_long else ""
    if is_long:
        environments = ["landscape"] if is_turned else []
    else:
        environments = [
            "sidewaystable*" if is_turned else "table*" if width_mm > COLUMN_MM else "table"
        ]
    lines = (_longtable_lines if is_long else _float_lines)(
        table, layout, _head(table), body, notes, setting.letters
    )
    begin_lines = [rf"\begin{{{name}}}" for name in environments]
    end_lines = [rf"\end{{{name}}}" for name in environments]
    return (
        "\n".join(
            [f"% needs: {', '.join(packages)}{column_note}", *begin_lines, *lines, *end_lines]
        )
        + "\n"
    )


def _cell(table: Table, column: Column, row: dict[str, Any], notes: Notes) -> str:
    if table.muted(column, row):
        reason = str(row[column.key])
        if len(table.text(column, row)) >= REASON_LETTERS_MIN:
            return rf"--\textsuperscript{{{notes.mark(reason)}}}"
    text = escaped(table.text(column, row))
    # After \\, LaTeX interprets a bracket or an asterisk as an argument of the line break.
    return f"{{{text}}}" if text.startswith(("[", "*")) else text


def _longest_line(table: Table, column: Column) -> int:
    """Return the number of characters in the longest line of a column."""
    cells = [table.text(column, row) for row in table.rows if not table.muted(column, row)]
    unit = f"({column.unit})" if column.unit else ""
    return max(len(text) for text in (*_heading_lines(column.title), unit, *cells, ""))


def _heading_lines(title: str) -> list[str]:
    """Split a heading of more than 12 characters into two lines."""
    words = title.split()
    if len(title) <= 12 or len(words) < 2:
        return [title]
    splits = [(" ".join(words[:index]), " ".join(words[index:])) for index in range(1, len(words))]
    return list(min(splits, key=lambda pair: max(map(len, pair))))


def _is_long(column: Column, letters: int, setting: Setting) -> bool:
    """Return whether the text of a column may wrap."""
    return column.kind == "text" and setting.width_mm(letters) > WORDS_MM_MIN


def _min_width_mm(table: Table, lengths: Sequence[int], setting: Setting) -> float:
    """Return the minimum width in mm of a table whose long texts wrap."""
    widths_mm = [
        WORDS_MM_MIN if _is_long(column, letters, setting) else setting.width_mm(letters)
        for column, letters in zip(table.columns, lengths, strict=True)
    ]
    return sum(widths_mm) + setting.gap_mm * len(widths_mm)


def _widths(table: Table, lengths: Sequence[int], setting: Setting) -> list[float | None]:
    """Return the width in mm of each text column that must wrap, and None for other columns."""
    natural_mm = [setting.width_mm(letters) for letters in lengths]
    room = setting.room_mm - setting.gap_mm * len(natural_mm)
    if sum(natural_mm) <= room:
        return [None] * len(natural_mm)
    are_long = [_is_long(c, n, setting) for c, n in zip(table.columns, lengths, strict=True)]
    fixed = sum(mm for mm, is_long in zip(natural_mm, are_long, strict=True) if not is_long)
    total = sum(mm for mm, is_long in zip(natural_mm, are_long, strict=True) if is_long)
    return [
        max(WORDS_MM_MIN, (room - fixed) * mm / total) if is_long else None
        for mm, is_long in zip(natural_mm, are_long, strict=True)
    ]


def _alignment(column: Column, width_mm: float | None) -> str:
    if width_mm is not None:
        return rf">{{\raggedright\arraybackslash}}p{{{width_mm:.0f}mm}}"
    return "r" if column.numeric else "l"


def _head(table: Table) -> list[str]:
    """Return the heading rows, with groups, titles (in one or more lines) and units."""
    if not table.headed:
        return [r"\toprule"]
    lines = [r"\toprule"]
    if table.groups:
        lines.append(
            " & ".join(rf"\multicolumn{{{n}}}{{c}}{{{escaped(t)}}}" for t, n in table.groups)
            + r" \\"
        )
    titles = [_heading_lines(column.title) for column in table.columns]
    for index in range(max(len(title_lines) for title_lines in titles)):
        cells = [title_lines[index] if index < len(title_lines) else "" for title_lines in titles]
        lines.append(" & ".join(escaped(cell) for cell in cells) + r" \\")
    if any(column.unit for column in table.columns):
        units = [f"({escaped(c.unit)})" if c.unit else "" for c in table.columns]
        lines.append(" & ".join(units) + r" \\")
    return [*lines, r"\midrule"]


def _caption(table: Table) -> str:
    kinds = {column.kind for column in table.columns}
    modelled = " Modelled, not measured." if "estimate" in kinds else ""
    return rf"\caption{{{escaped(table.title)}.{modelled}}}\label{{tab:{table.id}}}"


def _note_lines(table: Table, notes: Notes) -> list[tuple[str, str]]:
    lines = [("", table.note)] if table.note else []
    return lines + [(mark, reason) for reason, mark in notes.marks.items()]


def _float_lines(
    table: Table, layout: str, head: Sequence[str], body: Sequence[str], notes: Notes, letters: str
) -> list[str]:
    note_items = [
        rf"\item[{mark}] {escaped(text)}" if mark else rf"\item {escaped(text)}"
        for mark, text in _note_lines(table, notes)
    ]
    note_block = [r"\begin{tablenotes}", *note_items, r"\end{tablenotes}"] if note_items else []
    return [
        rf"\centering{letters}",
        r"\begin{threeparttable}",
        _caption(table),
        rf"\begin{{tabular}}{{{layout}}}",
        *head,
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *note_block,
        r"\end{threeparttable}",
    ]


def _longtable_lines(
    table: Table, layout: str, head: Sequence[str], body: Sequence[str], notes: Notes, letters: str
) -> list[str]:
    note_texts = [
        (rf"\textsuperscript{{{mark}}} " if mark else "") + escaped(text)
        for mark, text in _note_lines(table, notes)
    ]
    return [
        "{" + letters,
        rf"\begin{{longtable}}{{{layout}}}",
        _caption(table) + r"\\",
        *head,
        r"\endfirsthead",
        *head,
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *body,
        r"\end{longtable}",
        *(rf"\noindent {text}\par" for text in note_texts),
        "}",
    ]
