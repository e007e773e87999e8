"""Tests of tables in LaTeX, with escaped characters, complete rows and the texts of the page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattwire import stats
from wattwire.report.page import build_report
from wattwire.report.parts import Column, Table
from wattwire.report.print.latex import escaped, tex
from wattwire.report.tests.synthetic import FAST, Shape, write_campaign
from wattwire.stats import Band
from wattwire.store import Campaign

LATEX = shutil.which("pdflatex")
DOCUMENT = r"""\documentclass{article}
\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}\usepackage{textcomp}
\usepackage{array,booktabs,threeparttable,longtable,rotating,pdflscape}
\usepackage[a4paper,margin=15mm]{geometry}
\begin{document}
%s
\end{document}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    shape = Shape(
        blocks=6,
        duration_s=2.0,
        measured_energy=True,
        loss_share=0.01,
        unknown_runs=(6,),
        died_runs=(2,),
        b_over_a=1.0,
        intervals_s=(0.05, 0.1, 0.2, 0.5),
        skip={"pattern": "action", "language": FAST, "clients": 2},
    )
    campaign = write_campaign(tmp_path_factory.mktemp("latex") / "campaign", shape)
    return build_report(Campaign(campaign), printed=True).parent / "tables"


def problems(text: str) -> list[str]:
    """Return the errors that would stop LaTeX or change the printed table."""
    found = []
    bare = re.sub(r"\\[\\{}$&#_%,]", lambda m: r"\\" if m[0] == r"\\" else "", text)
    bare = re.sub(r"^%.*$", "", bare, flags=re.M)
    if bare.count("{") != bare.count("}"):
        found.append("braces do not match")
    if bare.count("$") % 2:
        found.append("an odd number of dollars")
    opened = [tuple(pair) for pair in re.findall(r"\\(begin|end)\{([\w*]+)\}", bare)]
    stack: list[str] = []
    for kind, name in opened:
        if kind == "begin":
            stack.append(name)
        elif not stack or stack.pop() != name:
            found.append(f"{name} ends where it did not begin")
    found += [f"{name} never ends" for name in stack]
    outside = re.sub(r"\$[^$]*\$|\\[a-z]+\*?", "", bare)
    found += [f"a bare {sign}" for sign in "#_^%" if sign in outside.replace(r"\label", "")]
    layout = re.search(r"\\begin\{(?:tabular|longtable)\}\{(.*)\}\n", bare)
    columns = len(re.sub(r">\{[^{}]*\}|p\{[^{}]*\}", lambda m: "" if m[0][0] == ">" else "l",
                         layout[1])) if layout else 0  # fmt: skip
    for line in bare.splitlines():
        if line.endswith(r"\\") and not line.startswith((r"\caption", r"\multicolumn")):
            cells = line.count("&") + 1
            if cells != columns and "multicolumn" not in line:
                found.append(f"{cells} cells in {columns} columns: {line}")
    return found


def test_every_table_of_a_report_is_there_complete_and_safe(folder) -> None:
    names = {path.stem for path in folder.glob("*.csv")}
    assert {path.stem for path in folder.glob("*.tex")} == names and len(names) > 12
    for path in sorted(folder.glob("*.tex")):
        text = path.read_text("utf-8")
        assert problems(text) == [], path.name
        assert "booktabs" in text.splitlines()[0]
        assert rf"\label{{tab:{path.stem}}}" in text
    percentiles = (folder / "latency-percentiles.tex").read_text("utf-8")
    assert r"(\textmu{}s)" in percentiles and "longtable" in percentiles
    estimate = (folder / "energy-estimate.tex").read_text("utf-8")
    assert "Modelled, not measured" in estimate


@pytest.mark.skipif(LATEX is None, reason="no pdflatex on PATH")
def test_every_table_compiles(folder, tmp_path) -> None:
    tables = [path.read_text("utf-8") for path in sorted(folder.glob("*.tex"))]
    (tmp_path / "all.tex").write_text(DOCUMENT % "\n\\clearpage\n".join(tables), "utf-8")
    done = subprocess.run(
        [str(LATEX), "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1500:]
    overfull = [float(pt) for pt in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout)]
    assert max(overfull, default=0.0) < 30, "a table is wider than a page"


def test_the_checks_of_this_file_bite() -> None:
    good = tex(Table("t", "T", [Column("a", "a_1"), Column("b", "b")], [{"a": "50 %", "b": "x"}]))
    assert problems(good) == []
    assert problems(good.replace("50", "50 & 51"))
    assert problems(good.replace(r"\%", "%"))
    assert problems(good.replace(r"\end{tabular}", ""))
    assert problems(good.replace(r"\midrule", r"\midrule {"))


def test_signs_are_printed_as_they_are_meant() -> None:
    assert escaped("50 % of a_b & {c}") == r"50 \% of a\_b \& \{c\}"
    assert escaped("1.5 × 10⁻⁷ ≤ ω²") == r"1.5 $\times$ 10$^{-7}$ $\leq$ $\omega$$^{2}$"
    assert escaped("1\u202f230 µs – “x”") == r"1\,230 \textmu{}s -- ``x''"
    assert escaped("名") == "[U+540D]"
    assert escaped("C:\\a^b~c<d>") == (
        r"C:\textbackslash{}a\textasciicircum{}b\textasciitilde{}c\textless{}d\textgreater{}"
    )


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_a_table(cell, title) -> None:
    columns = [Column("a", title), Column("b", "b", "measured", "%")]
    assert problems(tex(Table("t", title, columns, [{"a": cell, "b": 1.0}], cell))) == []


def test_a_reason_in_place_of_a_number_becomes_a_note_said_once() -> None:
    columns = [Column("a", "a"), Column("b", "ratio", "measured")]
    reason = stats.NotComputable("not available, because no meter measured energy")
    rows = [{"a": "x", "b": reason}, {"a": "y", "b": reason},
            {"a": "[z]", "b": Band(1.0, 2.0)}]  # fmt: skip
    text = tex(Table("t", "Title", columns, rows, "A note."))
    assert text.count(r"--\textsuperscript{a}") == 2
    assert text.count("no meter measured energy") == 1
    assert r"\item[a] not available" in text and r"\item A note." in text
    assert "{[z]} & 1.00 -- 2.00" in text
