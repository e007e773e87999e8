"""What goes beside published data: who made it, how it was measured, what threatens it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from wattwire.analysis.contrasts import Answers, answer_all
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.latency import all_series
from wattwire.model.errors import UsageError
from wattwire.report import findings
from wattwire.report.print.latex import escaped
from wattwire.report.sections.threats import KINDS, TITLES, Threat, seen, threats
from wattwire.report.words.answers import headline
from wattwire.report.words.methods import measured_on, methods

CFF_VERSION = "1.2.0"
UNSIGNED = (
    "CITATION.cff is left out, because a citation names who made the data and nothing here knows: "
    'give --author "Family, Given" for each of them, in their order'
)
_AUTHOR = re.compile(r" *(?P<family>[^,\s][^,\n]*?) *, *(?P<given>[^,\s][^,\n]*?) *")


def parse_author(text: str) -> tuple[str, str]:
    """`Family, Given` as (family, given). Raises UsageError for anything else."""
    match = _AUTHOR.fullmatch(text)
    if match is None:
        raise UsageError(f'--author {text!r}: allowed: "Family, Given", one option for each author')
    return match["family"], match["given"]


def documents(reader: CampaignReader, authors: Sequence[str], identity: str) -> dict[str, str]:
    """File name → text of everything that goes beside the data.

    Without authors there is no CITATION.cff: none is made up. `identity` is the study's digest.
    """
    evidence = gather(reader)
    answers = answer_all(evidence)
    first = headline(evidence, answers)
    told = methods(evidence, answers)
    found = {
        "methods.tex": methods_tex(_title(evidence), told),
        "threats.md": threats_markdown(
            _title(evidence), [*threats(evidence, answers), *_seen(evidence, answers)]
        ),
    }
    if authors:
        people = [parse_author(author) for author in authors]
        found["CITATION.cff"] = citation(evidence, people, first, identity)
    return found


def _seen(evidence: Evidence, answers: Answers) -> list[Threat]:
    found = findings.look(evidence, all_series(evidence))
    return seen(evidence, answers, found)


def _title(evidence: Evidence) -> str:
    return str(evidence.study.get("title") or evidence.study.get("name") or "Campaign")


def methods_tex(title: str, sentences: Sequence[str]) -> str:
    r"""A paragraph to be read into a paper by `\input{methods.tex}`, one sentence a line."""
    head = [
        "% How these data were measured: made from the campaign's own record, nothing else.",
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{textcomp}",
        rf"\paragraph{{Measurement: {escaped(title)}.}}",
    ]
    return "\n".join([*head, *(escaped(sentence) for sentence in sentences)]) + "\n"


def threats_markdown(title: str, found: Sequence[tuple[str, str]]) -> str:
    """The threats to validity as a list under four headings."""
    lines = [f"# Threats to validity: {title}"]
    for kind in KINDS:
        told = [sentence for one, sentence in found if one == kind]
        if told:
            lines += ["", f"## {kind.capitalize()}: {TITLES[kind].lower()}", ""]
            lines += [f"- {sentence}" for sentence in told]
    return "\n".join(lines) + "\n"


def citation(
    evidence: Evidence, authors: Sequence[tuple[str, str]], abstract: str, identity: str
) -> str:
    """CITATION.cff of format 1.2.0: strings are quoted as JSON does, which YAML reads alike."""
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
