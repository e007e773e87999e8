"""Tests of the documents for published data, which state only recorded facts."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
import yaml

from wattwire import imports
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.findings.datagrams import DropRun, Drops
from wattwire.analysis.topics.findings.fragments.numbers import Discards, Fragments
from wattwire.analysis.topics.findings.numbers import Detection, Findings
from wattwire.imports import Remark
from wattwire.imports.tests.test_writing import ABOUT, tiny
from wattwire.model.errors import UsageError
from wattwire.report.print import publish
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.report.words.methods import methods
from wattwire.report.words.threats import seen, threats
from wattwire.store import Campaign
from wattwire.store.redact import Names, Redactor

SMALL = {"patterns": ("topic",), "clients": (1,), "duration_s": 2.0}
NASTY = r"50 % of {A_1} & B\C #3 ~ $x^2$ <i> |y| – 3 × 10⁻² µs … ∞ \input{secret} 漢"


def told(folder: Any, **shape: Any) -> tuple[str, list[tuple[str, str]]]:
    evidence = gather(Campaign(write_campaign(folder, Shape(**{**SMALL, **shape}))))
    answers = answer_all(evidence)
    return "\n".join(methods(evidence, answers)), threats(evidence, answers)


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


def test_methods_name_the_machine_of_each_host(tmp_path):
    write_campaign(tmp_path / "c", Shape(**SMALL))
    path = tmp_path / "c" / "machine.json"
    machine = json.loads(path.read_text())
    local = machine["hosts"]["local"] = {**machine["hosts"]["local"], "boot": "1"}
    arm = {"key": "cpu_name", "value": "Made-up Arm", "unit": "", "check": "equal"}
    for host, boot, facts in (("robot", "2", [arm]), ("edge", "1", local["facts"])):
        machine["hosts"][host] = {**local, "boot": boot, "facts": facts}
    path.write_text(json.dumps(machine))
    evidence = gather(Campaign(tmp_path / "c"))
    text = "\n".join(methods(evidence, answer_all(evidence)))
    assert "on 2 machines (local and edge: Made-up CPU <4>, 4 logical CPUs" in text
    assert "kernel 6.1.0; robot: Made-up Arm)" in text


def test_methods_tell_machine_design_seed_verdicts_and_statistics(tmp_path):
    words, _ = told(tmp_path / "c", blocks=4, unknown_runs=(1, 2), b_over_a=1.0)
    for part in (
        "Made-up CPU <4>, 4 logical CPUs", "kernel 6.1.0", "wattwire 0.1.0 on one machine",
        "Each of 4 blocks contained each of 4 treatments once", "seed 7", "16 runs",
        "degrees of freedom by Welch", "also measured under two labels",
        "14 of 16 runs are used (excluded for: other load 2×)", "0 attempts were repeats",
        "simultaneous at 95 % over a family of", "a margin of 5 % frozen in the study",
        "made-up 1.2.3", "other_load_max = 0.25",
    ):  # fmt: skip
        assert part in words, part
    whole = told(tmp_path / "d", skip={"language": "swift", "interval_s": 0.2})[0]
    assert "could not be run (the cell has no such capability)" in whole


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


def test_threats_follow_what_happened(tmp_path):
    def sentences(name: str, **shape: Any) -> str:
        return "\n".join(sentence for _, sentence in told(tmp_path / name, **shape)[1])

    plain = sentences("plain", blocks=6)
    assert "No energy counter was readable" in plain and "marked as estimates" in plain
    assert "There are no A/A control runs" in plain and "excluded" not in plain
    assert "one machine, " in plain and "With only" not in plain
    other = sentences("other", blocks=3, measured_energy=True, b_over_a=1.4, unknown_runs=(0,))
    assert "No energy counter" not in other and "attributed by CPU time" in other
    assert "With only 3 blocks" in other and "1 of 12 runs was excluded" in other
    assert "under two labels may differ by up to" in other
    one = sentences("one", blocks=1)
    assert "One block gives no interval per treatment" in one
    opened = sentences("open", study={"validity": {"other_load_max": 1.1}})
    assert "The limit on load of other programs was disabled" in opened
    assert "1.0 % of all cores" in opened


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


def test_processes_that_no_meter_sees_are_among_the_threats(tmp_path):
    folder = write_campaign(tmp_path / "c", Shape(**SMALL))

    def sentences():
        evidence = gather(Campaign(folder))
        every = threats(evidence, answer_all(evidence))
        return [text for _, text in every if "cannot read some processes" in text]

    assert sentences() == []
    machine = json.loads((folder / "machine.json").read_text())
    (host,) = machine["hosts"].values()
    host["meters"].append({"name": "any", "info": {"unseen": "those of other users"}})
    (folder / "machine.json").write_text(json.dumps(machine))
    (sentence,) = sentences()
    assert "(those of other users)" in sentence


def test_other_load_that_nothing_read_is_among_the_threats(tmp_path):
    folder = write_campaign(tmp_path / "c", Shape(**SMALL))
    evidence = gather(Campaign(folder))
    unread = replace(evidence, attempts=evidence.attempts.drop("other_load_share"))

    def told(one):
        every = threats(one, answer_all(one))
        return [text for _, text in every if "so this load excluded no run" in text]

    assert told(evidence) == []
    assert len(told(unread)) == 1


def test_a_cell_whose_settling_runs_say_nothing_is_among_the_threats(tmp_path):
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape(**SMALL))))
    silent = {"cell": "made/up", "calls": None, "settled": False, "known": False}
    evidence = replace(evidence, warm_up={"calls": 50, "cells": [silent], "words": ""})
    told = " ".join(text for _, text in threats(evidence, answer_all(evidence)))
    assert "The settling runs of made/up have too few answered calls" in told


def test_what_the_page_warns_of_elsewhere_is_among_the_threats(tmp_path):
    folder = write_campaign(tmp_path / "c", Shape(**SMALL, blocks=6, died_runs=(3,)))
    at = folder / "runs" / "b02-p001-1" / "summary.json"
    frame = row_of(at)
    frame.with_columns(pl.col("cpu_us_per_message") * 9.0).pipe(put_row, at)
    page = publish.documents(Campaign(folder), (), "")["threats.md"]
    chance = page.partition("## Conclusion")[2].partition("## External")[0]
    assert "- 1 valid run ended with the outcome “died”.\n" in chance
    assert "- Outliers: b02-p001 in CPU time per message," in chance


def test_findings_on_causes_and_on_imported_data_are_threats(tmp_path):
    own = gather(Campaign(write_campaign(tmp_path / "c", Shape(**SMALL))))
    discards = Discards(Drops(3, (DropRun((), "b", 12.0, 9.0),), {}, {}))
    detection = Detection("findings/fragments", Fragments(3, (discards,)))
    told = seen(own, answer_all(own), Findings(True, True, (detection,)))
    of_causes = [text for kind, text in told if kind == "internal" and " (suspected). " in text]
    assert len(of_causes) == 1 and of_causes[0].startswith("Datagrams discarded during reassembly")
    copied = Remark("Files that are copies", "They count twice.", ({"file": "a"},))
    imported = dataclasses.replace(tiny(), remarks=(copied,))
    theirs = gather(imports.write(imported, tmp_path / "i", ABOUT, {}))
    told = seen(theirs, answer_all(theirs), Findings())
    assert (
        "internal",
        "Remark about the data (1 row in remarks.json): Files that are copies. They count twice.",
    ) in told
