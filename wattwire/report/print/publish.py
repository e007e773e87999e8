"""Write the citation, the methods and the threats to validity for published data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from wattwire.analysis.dataset import CampaignReader
from wattwire.analysis.document import page_document
from wattwire.analysis.topics.environment.numbers import Environment
from wattwire.model.errors import UsageError
from wattwire.report.headline import headline
from wattwire.report.page_parts import PageData
from wattwire.report.parts import Text
from wattwire.report.print.latex import escaped
from wattwire.report.topic_page import Placed

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
    results = page_document(reader)
    data, title = PageData(results), results.header.heading
    sentences = [redacted(text.words) for text in _texts(data.joining("methods.tex"))]
    texts = {
        "methods.tex": methods_tex(redacted(title), sentences),
        "threats.md": threats_markdown(title, threats_texts(data)),
    }
    if authors:
        people = [parse_author(author) for author in authors]
        ended_on = results.result(Environment).ended_on
        stated = [sentence for page in data.topics.values() for sentence in page.sentences]
        abstract = headline(results, stated)
        texts["CITATION.cff"] = citation(title, people, abstract, identity, ended_on)
    return texts


def threats_texts(data: PageData) -> list[Text]:
    """Return the threats to validity, with what other sections of the page warn of."""
    joining = [*data.joining("threats"), *data.joining("threats.md")]
    return _texts([*data.topics["threats"].parts, *joining])


def _texts(placed: Iterable[Placed]) -> list[Text]:
    """Return the texts among the parts, by place."""
    return [part for _, part in sorted(placed, key=itemgetter(0)) if isinstance(part, Text)]


def methods_tex(title: str, sentences: Sequence[str]) -> str:
    r"""Return a paragraph for `\input{methods.tex}` in a paper, with one sentence per line."""
    head = [
        "% The measurement of these data, generated from the campaign's records only.",
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{textcomp}",
        rf"\paragraph{{Measurement: {escaped(title)}.}}",
    ]
    return "\n".join([*head, *(escaped(sentence) for sentence in sentences)]) + "\n"


def threats_markdown(title: str, texts: Sequence[Text]) -> str:
    """Return the threats to validity as Markdown lists with a heading per paragraph of the page."""
    lines = [f"# Threats to validity: {title}"]
    for kind, of_kind in groupby(texts, lambda text: text.paragraph):
        question, *threats = (text.words for text in of_kind)
        if threats:
            lines += ["", f"## {kind.capitalize()}: {question.lower()}", ""]
            lines += [f"- {threat}" for threat in threats]
    return "\n".join(lines) + "\n"


def citation(
    title: str, authors: Sequence[tuple[str, str]], abstract: str, identity: str, ended_on: str
) -> str:
    """Return CITATION.cff, format 1.2.0. Its strings are quoted as JSON, which is valid YAML.

    `ended_on` is the date of the last run, "" if it is unknown.
    """
    lines = [
        f"cff-version: {CFF_VERSION}",
        'message: "If you use these data, please cite them as below."',
        "type: dataset",
        f"title: {_quoted(title)}",
        "authors:",
    ]
    for family, given in authors:
        lines += [f"  - family-names: {_quoted(family)}", f"    given-names: {_quoted(given)}"]
    if identity:
        lines.append(f"version: {_quoted(identity)}")
    if ended_on:
        lines.append(f"date-released: {ended_on}")
    lines.append(f"abstract: {_quoted(abstract)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
