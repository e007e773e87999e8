"""Write the citation, the methods and the threats to validity for published data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.document import document
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.findings.numbers import findings
from wattwire.model.errors import UsageError
from wattwire.report.print.latex import escaped
from wattwire.report.words.headline import headline
from wattwire.report.words.methods import measured_on, methods
from wattwire.report.words.threats import KINDS, TITLES, Threat, seen, threats

CFF_VERSION = "1.2.0"
UNSIGNED = (
    "CITATION.cff is not written, because the authors of the data are unknown; name each author "
    'in order with --author "Family, Given"'
)
_AUTHOR = re.compile(r" *(?P<family>[^,\s][^,\n]*?) *, *(?P<given>[^,\s][^,\n]*?) *")


def parse_author(text: str) -> tuple[str, str]:
    """Parse an author `Family, Given`. Raises UsageError for other text."""
    match = _AUTHOR.fullmatch(text)
    if match is None:
        raise UsageError(
            f'--author: found {text!r}; allowed: "Family, Given"; repeat the option for each author'
        )
    return match["family"], match["given"]


def documents(
    reader: CampaignReader,
    authors: Sequence[str],
    identity: str,
    redacted: Callable[[str], str] = str,
) -> dict[str, str]:
    """Return the documents that accompany the data (file name → text).

    Without authors, CITATION.cff is omitted. `identity` is the digest of the study. `redacted`
    removes words from a text. It runs before LaTeX is escaped, which changes words such as my_key.
    """
    evidence = gather(reader)
    answers = answer_all(evidence)
    abstract = headline(evidence, document(evidence, answers))
    sentences = list(map(redacted, methods(evidence, answers)))
    texts = {
        "methods.tex": methods_tex(redacted(_title(evidence)), sentences),
        "threats.md": threats_markdown(
            _title(evidence), [*threats(evidence, answers), *_observed_threats(evidence, answers)]
        ),
    }
    if authors:
        people = [parse_author(author) for author in authors]
        texts["CITATION.cff"] = citation(evidence, people, abstract, identity)
    return texts


def _observed_threats(evidence: Evidence, answers: Answers) -> list[Threat]:
    return seen(evidence, answers, findings(evidence, all_series(evidence)))


def _title(evidence: Evidence) -> str:
    return evidence.study.heading


def methods_tex(title: str, sentences: Sequence[str]) -> str:
    r"""Return a paragraph for `\input{methods.tex}` in a paper, with one sentence per line."""
    head = [
        "% The measurement of these data, generated from the campaign's records only.",
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{textcomp}",
        rf"\paragraph{{Measurement: {escaped(title)}.}}",
    ]
    return "\n".join([*head, *(escaped(sentence) for sentence in sentences)]) + "\n"


def threats_markdown(title: str, items: Sequence[tuple[str, str]]) -> str:
    """Return the threats to validity as Markdown lists with a heading per kind."""
    lines = [f"# Threats to validity: {title}"]
    for kind in KINDS:
        sentences = [sentence for item_kind, sentence in items if item_kind == kind]
        if sentences:
            lines += ["", f"## {kind.capitalize()}: {TITLES[kind].lower()}", ""]
            lines += [f"- {sentence}" for sentence in sentences]
    return "\n".join(lines) + "\n"


def citation(
    evidence: Evidence, authors: Sequence[tuple[str, str]], abstract: str, identity: str
) -> str:
    """Return CITATION.cff, format 1.2.0. Its strings are quoted as JSON, which is valid YAML."""
    day = measured_on(evidence)
    lines = [
        f"cff-version: {CFF_VERSION}",
        'message: "If you use these data, please cite them as below."',
        "type: dataset",
        f"title: {_quoted(_title(evidence))}",
        "authors:",
    ]
    for family, given in authors:
        lines += [f"  - family-names: {_quoted(family)}", f"    given-names: {_quoted(given)}"]
    if identity:
        lines.append(f"version: {_quoted(identity)}")
    if day is not None:
        lines.append(f"date-released: {day.isoformat()}")
    lines.append(f"abstract: {_quoted(abstract)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
