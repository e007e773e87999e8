"""Tests of the documents for published data, which state only recorded facts."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
import yaml

from wattwire.analysis.dataset import gather
from wattwire.analysis.document import document
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.findings.datagrams import DropRun, Drops
from wattwire.analysis.topics.findings.fragments.numbers import Discards, Fragments
from wattwire.analysis.topics.findings.numbers import Detection, Findings
from wattwire.model.errors import UsageError
from wattwire.report.page_parts import PageData
from wattwire.report.print import publish
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.store import Campaign
from wattwire.store.redact import Names, Redactor

SMALL = {"patterns": ("topic",), "clients": (1,), "duration_s": 2.0}
NASTY = r"50 % of {A_1} & B\C #3 ~ $x^2$ <i> |y| – 3 × 10⁻² µs … ∞ \input{secret} 漢"


def documents(folder: Any, *authors: str, **shape: Any) -> dict[str, str]:
    campaign = Campaign(write_campaign(folder, Shape(**{**SMALL, **shape})))
    return publish.documents(campaign, authors, "0123abcd")


def problems_in(tex: str) -> list[str]:
    """Return the unbalanced braces and unescaped characters of `tex`, which would stop LaTeX."""
    body = "\n".join(line for line in tex.splitlines() if not line.startswith("%"))
    bare = re.sub(r"\\[\\{}$&#_%]", "", body)
    found = re.findall(r"[&#_%~^<>|\"](?![^$]*\$(?:[^$]*\$[^$]*\$)*[^$]*$)", bare)
    depth = 0
    for mark in bare:
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            found.append("}")
    return [*found, *(["{"] if depth else []), *(["$"] if bare.count("$") % 2 else [])]


def test_nothing_of_an_edited_study_is_called_frozen_or_stated_before(tmp_path):
    limit = {"response": "latency_p50", "max": 5000.0}
    shape = Shape(**SMALL, blocks=3, study={"limit": [limit]})
    campaign = Campaign(write_campaign(tmp_path / "c", shape))
    before = publish.documents(campaign, (), "")["methods.tex"]
    assert "Limit stated before the runs: " in before and "frozen in the study" in before
    campaign.freeze("study.json", campaign.study_document)
    campaign.write_json("study.json", {**campaign.study_document, "title": "Another"})
    assert campaign.edited == ("study.json",)
    after = publish.documents(campaign, ("Lovelace, Ada",), "")
    for name in ("methods.tex", "threats.md", "CITATION.cff"):
        assert "Exploratory: study.json was edited after this campaign began." in after[name]
    assert "Limit of the edited study: " in after["methods.tex"]
    assert "before the runs" not in after["methods.tex"] and "frozen" not in after["methods.tex"]


def test_a_citation_names_those_who_are_given_and_nobody_else(tmp_path):
    found = documents(tmp_path / "c", "Lovelace, Ada", 'O"Brien & Søn: A, Ünal #2')
    cited = yaml.safe_load(found["CITATION.cff"])
    assert cited["cff-version"] == "1.2.0" and cited["type"] == "dataset"
    assert cited["authors"] == [
        {"family-names": "Lovelace", "given-names": "Ada"},
        {"family-names": 'O"Brien & Søn: A', "given-names": "Ünal #2"},
    ]
    assert cited["title"] == "What a message costs, made up <for tests>"
    assert str(cited["date-released"]) == "2023-11-14" and cited["version"] == "0123abcd"
    assert set(cited) >= {"message", "abstract"}
    assert "CITATION.cff" not in documents(tmp_path / "d")


@pytest.mark.parametrize("name", ["Ada Lovelace", "", "Lovelace,", ", Ada", "A, B, C", "A,\nB"])
def test_an_author_is_family_comma_given(name):
    with pytest.raises(UsageError, match='allowed: "Family, Given"'):
        publish.parse_author(name)


def test_the_methods_paragraph_is_latex_whatever_names_hold(tmp_path):
    study = {"title": NASTY, "fixed": {"middleware": "a_b", "payload_bytes": NASTY}}
    tex = documents(tmp_path / "c", study=study)["methods.tex"]
    assert not problems_in(tex), tex
    assert r"\textbackslash{}input\{secret\}" in tex and r"a\_b" in tex
    assert problems_in("50 % of {a_b") == ["%", "_", "{"], "the check itself sees faults"


def test_words_are_redacted_before_they_are_escaped(tmp_path):
    campaign = Campaign(write_campaign(tmp_path / "c", Shape(study={"title": "my_key 5²"})))
    redactor = Redactor(Names(words=("my_key", "5²")))
    tex = publish.documents(campaign, (), "", redactor.text)["methods.tex"]
    assert "[redacted] [redacted]" in tex and r"my\_key" not in tex


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_sets_the_paragraph(tmp_path):
    study = {"title": NASTY, "fixed": {"middleware": "a_b", "payload_bytes": NASTY}}
    (tmp_path / "methods.tex").write_text(documents(tmp_path / "c", study=study)["methods.tex"])
    (tmp_path / "page.tex").write_text(
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{textcomp}\n"
        "\\begin{document}\\input{methods.tex}\\end{document}\n"
    )
    argv = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_threats_are_a_page_of_four_kinds(tmp_path):
    page = documents(tmp_path / "c", blocks=3)["threats.md"]
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert [head.split()[1] for head in heads] == [
        "Construct:",
        "Internal:",
        "Conclusion:",
        "External:",
    ]
    assert all(line.endswith(".") for line in page.splitlines() if line.startswith("- "))


def test_what_the_page_warns_of_elsewhere_is_among_the_threats(tmp_path):
    folder = write_campaign(tmp_path / "c", Shape(**SMALL, blocks=6, died_runs=(3,)))
    at = folder / "runs" / "b02-p001-1" / "summary.json"
    frame = row_of(at)
    frame.with_columns(pl.col("cpu_us_per_message") * 9.0).pipe(put_row, at)
    page = publish.documents(Campaign(folder), (), "")["threats.md"]
    chance = page.partition("## Conclusion")[2].partition("## External")[0]
    assert "- 1 valid run ended with the outcome “died”.\n" in chance
    assert "- Outliers: b02-p001 in CPU time per message," in chance


def test_findings_on_causes_are_threats(tmp_path):
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape(**SMALL))))
    results = document(evidence, series=all_series(evidence))
    discards = Discards(
        Drops(3, (DropRun(("one",) * len(evidence.varied), "b", 12.0, 9.0),), {}, {})
    )
    detection = Detection("findings/fragments", Fragments((discards,), 3))
    found = {"findings": Findings(True, True, (detection,))}
    data = PageData(replace(results, results={**results.results, **found}))
    causes = [text for text in publish.threats_texts(data) if text.key == "findings.threat"]
    assert [text.value for text in causes] == ["findings/fragments"]
    assert causes[0].paragraph == "internal" and " (suspected). " in causes[0].words


def test_methods_join_the_sentences_of_other_topics_by_place(tmp_path):
    lines = documents(tmp_path / "c")["methods.tex"].splitlines()
    of_machine = [at for at, line in enumerate(lines) if line.startswith("All runs used wattwire")]
    of_design = [at for at, line in enumerate(lines) if line.startswith("The factors were ")]
    assert len(of_machine) == 1 and of_machine[0] + 1 == of_design[0]
