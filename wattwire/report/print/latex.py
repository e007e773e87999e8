"""Tables for papers: LaTeX with booktabs, units under the headings, reasons as notes.

What a cell says on the page it says here; where a reason stands for a number it moves into the
notes. The first line of a file says what the preamble needs.
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
"""Room for a table: one printed column, both, a page turned on its side."""
WORDS_MM_MIN = 22.0
REASON_LETTERS_MIN = 20
FLOAT_ROWS_MAX, TURNED_ROWS_MAX = 40, 25
"""What is longer does not fit a page and is broken over several."""

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
    """What stands for each letter: itself where pdflatex has it, [U+…] where it has not."""

    def __missing__(self, code: int) -> str:
        known = 32 <= code <= LATIN_END and code != 127
        self[code] = chr(code) if known else f"[U+{code:04X}]"
        return self[code]


LETTERS = _Letters(
    {ord(letter): told for letter, told in SPECIAL.items()}
    | {ord(letter): rf"$\{name}$" for letter, name in GREEK.items()}
    | {ord(letter): " " for letter in "\n\t\r"}
)
SCRIPTS = (
    ("^", RAISED, re.compile(f"[{''.join(RAISED)}]+")),
    ("_", LOWERED, re.compile(f"[{''.join(LOWERED)}]+")),
)


def escaped(text: str) -> str:
    """`text` so that LaTeX prints it. A sign that pdflatex has no letter for becomes [U+…]."""
    if text.isalnum() and text.isascii():
        return text
    for sign, digits, pattern in SCRIPTS:
        if pattern.search(text):
            return _with_script(text, sign, digits, pattern)
    return text.translate(LETTERS)


def _with_script(text: str, sign: str, digits: dict[str, str], pattern: re.Pattern[str]) -> str:
    """Raised or lowered digits, and what stands between them."""
    runs = [f"${sign}{{{''.join(digits[c] for c in run)}}}$" for run in pattern.findall(text)]
    between = [escaped(part) for part in pattern.split(text)]
    return "".join(a + b for a, b in zip(between, [*runs, ""], strict=True))


@dataclass(frozen=True)
class Setting:
    """How a table is set: its letters, the gap between columns, and the room that it has."""

    letters: str
    mm_per_letter: float
    gap_mm: float
    room_mm: float

    def width_mm(self, letters: int) -> float:
        """The width of so many letters of ordinary words, a little generous."""
        return self.mm_per_letter * letters


SETTINGS = (
    Setting(r"\footnotesize", 1.65, 4.3, PAGE_MM),
    Setting(r"\scriptsize\setlength{\tabcolsep}{3pt}", 1.45, 2.2, PAGE_MM),
    Setting(r"\scriptsize\setlength{\tabcolsep}{3pt}", 1.45, 2.2, TURNED_MM),
)
"""8 pt and 7 pt in an article of 10 pt: nothing is shrunk until it cannot be read."""


@dataclass
class Notes:
    """Reasons that stand for numbers, each with its letter."""

    marks: dict[str, str] = field(default_factory=dict)

    def mark(self, reason: str) -> str:
        """The letter of a reason: a … z, then aa, ab, …"""
        if reason not in self.marks:
            more, last = divmod(len(self.marks), 26)
            letters = string.ascii_lowercase
            self.marks[reason] = (letters[more - 1] if more else "") + letters[last]
        return self.marks[reason]


def write_tex(table: Table, path: Path) -> None:
    """Write the table as a LaTeX document's part: a float, or a long table over pages."""
    path.write_text(tex(table), "utf-8")


def tex(table: Table) -> str:
    """The table in LaTeX: the first of SETTINGS that holds it, the last if none does."""
    notes = Notes()
    rows = [[_cell(table, column, row, notes) for column in table.columns] for row in table.rows]
    lengths = [_letters(table, column) for column in table.columns]
    fitting = (each for each in SETTINGS if _least_mm(table, lengths, each) <= each.room_mm)
    setting = next(fitting, SETTINGS[-1])
    widths = _widths(table, lengths, setting)
    layout = "".join(map(_alignment, table.columns, widths))
    wide = sum(w or setting.width_mm(n) for w, n in zip(widths, lengths, strict=True))
    wide += setting.gap_mm * len(lengths)
    body = [" & ".join(cells) + r" \\" for cells in rows] or [
        rf"\multicolumn{{{len(table.columns)}}}{{l}}{{none}} \\"
    ]
    turned = setting.room_mm == TURNED_MM
    long = len(rows) > (TURNED_ROWS_MAX if turned else FLOAT_ROWS_MAX)
    needs = ["array", "booktabs", "longtable" if long else "threeparttable"]
    needs += ["pdflscape" if long else "rotating"] if turned else []
    said = "; one column a page" if long else ""
    if long:
        frame = ["landscape"] if turned else []
    else:
        frame = ["sidewaystable*" if turned else "table*" if wide > COLUMN_MM else "table"]
    parts = (_long if long else _float)(table, layout, _head(table), body, notes, setting.letters)
    begins = [rf"\begin{{{name}}}" for name in frame]
    ends = [rf"\end{{{name}}}" for name in frame]
    return "\n".join([f"% needs: {', '.join(needs)}{said}", *begins, *parts, *ends]) + "\n"


def _cell(table: Table, column: Column, row: dict[str, Any], notes: Notes) -> str:
    if table.muted(column, row):
        reason = str(row[column.key])
        if len(table.text(column, row)) >= REASON_LETTERS_MIN:
            return rf"--\textsuperscript{{{notes.mark(reason)}}}"
    text = escaped(table.text(column, row))
    # After a line's end a bracket would be taken for that line's extra space.
    return f"{{{text}}}" if text.startswith(("[", "*")) else text


def _letters(table: Table, column: Column) -> int:
    """How many letters the widest line of a column has."""
    cells = [table.text(column, row) for row in table.rows if not table.muted(column, row)]
    unit = f"({column.unit})" if column.unit else ""
    return max(len(text) for text in (*_folded(column.title), unit, *cells, ""))


def _folded(title: str) -> list[str]:
    """A heading in two lines where one would make its column wider than it must be."""
    words = title.split()
    if len(title) <= 12 or len(words) < 2:
        return [title]
    splits = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    return list(min(splits, key=lambda two: max(map(len, two))))


def _is_long(column: Column, letters: int, setting: Setting) -> bool:
    """Whether a column's words may be broken over lines."""
    return column.kind == "text" and setting.width_mm(letters) > WORDS_MM_MIN


def _least_mm(table: Table, lengths: Sequence[int], setting: Setting) -> float:
    """The width a table needs with its words broken as much as they can be."""
    each = [
        WORDS_MM_MIN if _is_long(column, letters, setting) else setting.width_mm(letters)
        for column, letters in zip(table.columns, lengths, strict=True)
    ]
    return sum(each) + setting.gap_mm * len(each)


def _widths(table: Table, lengths: Sequence[int], setting: Setting) -> list[float | None]:
    """A width in mm for columns of words that would not fit as they are; None for the others."""
    natural = [setting.width_mm(letters) for letters in lengths]
    room = setting.room_mm - setting.gap_mm * len(natural)
    if sum(natural) <= room:
        return [None] * len(natural)
    long = [_is_long(c, n, setting) for c, n in zip(table.columns, lengths, strict=True)]
    fixed = sum(mm for mm, broken in zip(natural, long, strict=True) if not broken)
    total = sum(mm for mm, broken in zip(natural, long, strict=True) if broken)
    return [
        max(WORDS_MM_MIN, (room - fixed) * mm / total) if broken else None
        for mm, broken in zip(natural, long, strict=True)
    ]


def _alignment(column: Column, width_mm: float | None) -> str:
    if width_mm is not None:
        return rf">{{\raggedright\arraybackslash}}p{{{width_mm:.0f}mm}}"
    return "r" if column.numeric else "l"


def _head(table: Table) -> list[str]:
    """The lines of headings: groups, titles in as many lines as they need, units."""
    if not table.headed:
        return [r"\toprule"]
    lines = [r"\toprule"]
    if table.groups:
        lines.append(
            " & ".join(rf"\multicolumn{{{n}}}{{c}}{{{escaped(t)}}}" for t, n in table.groups)
            + r" \\"
        )
    titles = [_folded(column.title) for column in table.columns]
    for at in range(max(len(each) for each in titles)):
        cells = [each[at] if at < len(each) else "" for each in titles]
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


def _float(
    table: Table, layout: str, head: Sequence[str], body: Sequence[str], notes: Notes, letters: str
) -> list[str]:
    told = [
        rf"\item[{mark}] {escaped(text)}" if mark else rf"\item {escaped(text)}"
        for mark, text in _note_lines(table, notes)
    ]
    below = [r"\begin{tablenotes}", *told, r"\end{tablenotes}"] if told else []
    return [
        rf"\centering{letters}",
        r"\begin{threeparttable}",
        _caption(table),
        rf"\begin{{tabular}}{{{layout}}}",
        *head,
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *below,
        r"\end{threeparttable}",
    ]


def _long(
    table: Table, layout: str, head: Sequence[str], body: Sequence[str], notes: Notes, letters: str
) -> list[str]:
    told = [
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
        *(rf"\noindent {text}\par" for text in told),
        "}",
    ]
