"""Write the report: a self-contained page, and files with its tables and figures."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup
from threadpoolctl import threadpool_limits

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.document import Document, document
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.validity.numbers import Validity
from wattwire.model.errors import UsageError
from wattwire.report.figures.downsample import Thinner
from wattwire.report.html.columnar_json import packed_charts, script_json
from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart, page_parts
from wattwire.report.parts import Section, Table, figures_of, tables_of, write_csv
from wattwire.report.print import render
from wattwire.report.print.latex import write_tex
from wattwire.report.topic_page import Sentences
from wattwire.report.words.headline import questions_without_answer
from wattwire.report.words.phrases import split
from wattwire.store import open_campaign
from wattwire.store.files import refuse_links

VALIDITY = Sentences("validity")
TITLE_MAX = 400
"""Maximum number of characters of the page's title, about three lines."""


def build_report(campaign: Path | CampaignReader, printed: bool = False) -> Path:
    """Write the report of a campaign and return the path of its page, as `write_report` does."""
    return write_report(campaign, printed)[0]


def write_report(campaign: Path | CampaignReader, printed: bool = False) -> tuple[Path, Document]:
    """Write the report of a campaign and return the path of its page, and the results on it.

    `campaign` is a folder or an open reader. The new report replaces an older report. It consists
    of these files in the campaign's folder:

    - report/index.html and report/tables/*.csv
    - with `printed`, report/figures/*.svg and *.pdf, and report/tables/*.tex
    - report/answer.txt: the headline of the page and the lines below it, for the terminal
    - report/validity.txt: the page's notice on a look or on validity limits that were changed later
    - report/analysis.json: all numbers of the answers

    If no run is valid, the page states this. Raises UsageError if the campaign has no plan.
    """
    if isinstance(campaign, (str, Path)):
        campaign = open_campaign(Path(campaign))
    if not (campaign.path / "plan.json").is_file():
        raise UsageError(
            f"{campaign.path}: this campaign ended before its plan was written, so it has no "
            "results. Run the study again."
        )
    folder = campaign.path / "report"
    refuse_links(campaign.path)
    figures = folder / "figures"
    drawing_of = render.Drawer if printed else render.Undrawn
    # The matrices are small, so BLAS threads would only compete with the drawing process.
    with drawing_of(figures) as drawer, threadpool_limits(1, user_api="blas"):
        evidence = gather(campaign)
        answers = answer_all(evidence)
        series = all_series(evidence)
        results = document(evidence, answers, series)
        data = PageData(evidence, answers, results, series)
        parts = [part for part in page_parts() if part.applies(evidence)]
        sections, thinner = [], Thinner()
        for built in _sections(parts, data):
            section = bounded(built, thinner)
            sections.append(section)
            drawer.begin(figures_of(section.parts))
        tables = tables_of([part for section in sections for part in section.parts])
        _write_tables(tables, folder / "tables", printed)
        notices = [VALIDITY.sentence(notice) for notice in results.result(Validity).notices]
        title, rest, lines = _head(parts, data)
        answer = [title, rest, *(line.text for line in lines if not line.page_only)]
        answer = [text for text in (*answer, *questions_without_answer(results)) if text]
        (folder / "answer.txt").write_text("".join(f"{line}\n" for line in answer), "utf-8")
        (folder / "validity.txt").write_text("".join(f"{line}\n" for line in notices), "utf-8")
        text = json.dumps(results.values, indent=1, allow_nan=False)
        (folder / "analysis.json").write_text(f"{text}\n", "utf-8")
        page = folder / "index.html"
        page.write_text(
            _render(
                evidence, (title, rest, *(line.text for line in lines)), sections, drawer, printed
            ),
            "utf-8",
        )
    return page, results


def bounded(section: Section, thinner: Thinner) -> Section:
    """Return the section with downsampled figures."""
    return replace(section, parts=thinner.parts(section.parts))


def _sections(parts: Sequence[PagePart], data: PageData) -> Iterator[Section]:
    """Yield the sections in page order. Figures are drawn while the next section is built."""
    for part in parts:
        yield from (section for section in part.build(data) if section is not None)


def _head(parts: Sequence[PagePart], data: PageData) -> tuple[str, str, list[HeadLine]]:
    """Return the title of the page, its sentences that found no room, and the lines by place."""
    head_lines = [line for part in parts for line in part.head(data)]
    for topic in data.topics.values():
        head_lines += [HeadLine(at[0], text, True, at[1:]) for at, text in topic.lines]
        head_lines += [HeadLine(at[0], text, False, at[1:]) for at, text in topic.terminal_lines]
    head_lines.sort(key=lambda line: (line.place, line.within))
    title, rest = split((line.text for line in head_lines if line.place == TITLE), TITLE_MAX)
    return title, rest, [line for line in head_lines if line.place != TITLE]


def _write_tables(tables: Sequence[Table], folder: Path, printed: bool) -> None:
    _clear_folder(folder, ("*.csv", "*.tex"))
    for table in tables:
        write_csv(table, folder / f"{table.id}.csv")
        if printed:
            write_tex(table, folder / f"{table.id}.tex")


def _clear_folder(folder: Path, patterns: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink()


def _render(
    evidence: Evidence,
    head_lines: Sequence[str],
    sections: Sequence[Section],
    drawer: render.Drawer | render.Undrawn,
    printed: bool,
) -> str:
    folder = resources.files("wattwire.report.html") / "templates"
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
    )
    drawn = [figure for section in sections for figure in figures_of(section.parts)]
    pictures = drawer.pictures()
    failed = drawer.failed  # complete only after `pictures` returns
    charts = packed_charts({figure.id: figure.spec for figure in drawn if figure.id not in failed})
    return environment.get_template("page.html").render(
        title=evidence.study.heading,
        first=head_lines[0],
        others=[line for line in head_lines[1:] if line],
        sections=sections,
        images={name: _data_address(svg) for name, svg in pictures.items()},
        failed=failed,
        printed=printed,
        specs=Markup(script_json(charts)),
        library=Markup(drawer.library()),
        style=Markup((folder / "page.css").read_text("utf-8")),
        script=Markup((folder / "page.js").read_text("utf-8")),
        explorer=Markup((folder / "explore.js").read_text("utf-8")),
    )


def _data_address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
