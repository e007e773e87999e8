"""Write the report: a self-contained page, and files with its tables and figures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup
from threadpoolctl import threadpool_limits

from wattwire.analysis.dataset import CampaignReader
from wattwire.analysis.document import Document, page_document
from wattwire.analysis.topics.validity.numbers import Validity
from wattwire.model.errors import UsageError
from wattwire.report.figures.downsample import Thinner
from wattwire.report.headline import page_headline, questions_without_answer, split
from wattwire.report.html.columnar_json import packed_charts, script_json
from wattwire.report.page_parts import TITLE, HeadLine, PageData
from wattwire.report.parts import Section, Table, figures_of, tables_of, write_csv
from wattwire.report.print import render
from wattwire.report.print.latex import write_tex
from wattwire.report.stored_document import read_document, write_document
from wattwire.report.topic_page import Sentences
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
    - report/results.json and report/series/*.parquet: the results of all topics

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
    # The matrices are small, so BLAS threads would only compete with the drawing process.
    with _drawer(folder, printed) as drawer, threadpool_limits(1, user_api="blas"):
        data = PageData(page_document(campaign))
        page = print_page(data, folder, drawer, printed)
        write_document(data.document, folder)
    return page, data.document


def write_stored(stored: Path, folder: Path, printed: bool = False) -> tuple[Path, Document]:
    """Write the report whose analysis.json is `stored` to a new folder, without its campaign.

    The files are those of `write_report`. Return the path of the page, and the results on it.
    Raises UsageError if the folder exists, and if the document cannot be read.
    """
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder}: found an existing file or folder; name a new folder.")
    document = read_document(stored)
    with _drawer(folder, printed) as drawer:
        page = print_page(PageData(document), folder, drawer, printed)
        write_document(document, folder)
    return page, document


def print_page(
    data: PageData,
    folder: Path,
    drawer: render.Drawer | render.Undrawn,
    printed: bool = False,
) -> Path:
    """Print a page to a folder, with its tables and figures.

    Return the path of the page. With `printed`, the folder also has files for print.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sections, thinner = [], Thinner()
    for built in data.sections():
        section = bounded(built, thinner)
        sections.append(section)
        drawer.begin(figures_of(section.parts))
    tables = tables_of([part for section in sections for part in section.parts])
    _write_tables(tables, folder / "tables", printed)
    notices = [VALIDITY.sentence(notice) for notice in data.document.result(Validity).notices]
    title, rest, lines = _head(data)
    answer = [title, rest, *(line.text for line in lines if not line.page_only)]
    answer = [text for text in (*answer, *questions_without_answer(data.document)) if text]
    (folder / "answer.txt").write_text("".join(f"{line}\n" for line in answer), "utf-8")
    (folder / "validity.txt").write_text("".join(f"{line}\n" for line in notices), "utf-8")
    page = folder / "index.html"
    head_lines = (title, rest, *(line.text for line in lines))
    heading = data.document.header.heading
    page.write_text(_render(heading, head_lines, sections, drawer, printed), "utf-8")
    return page


def _drawer(folder: Path, printed: bool) -> render.Drawer | render.Undrawn:
    """Return what draws the figures: their files if they are `printed`, else nothing."""
    drawing_of = render.Drawer if printed else render.Undrawn
    return drawing_of(folder / "figures")


def bounded(section: Section, thinner: Thinner) -> Section:
    """Return the section with downsampled figures."""
    return replace(section, parts=thinner.parts(section.parts))


def _head(data: PageData) -> tuple[str, str, list[HeadLine]]:
    """Return the title of the page, its sentences that found no room, and the lines by place."""
    head_lines: list[HeadLine] = []
    stated = [sentence for topic in data.topics.values() for sentence in topic.sentences]
    for topic in data.topics.values():
        head_lines += [HeadLine(at[0], text, True, at[1:]) for at, text in topic.lines]
        head_lines += [HeadLine(at[0], text, False, at[1:]) for at, text in topic.terminal_lines]
    head_lines.sort(key=lambda line: (line.place, line.within))
    titles = page_headline(data.document, stated)
    titles += [line.text for line in head_lines if line.place == TITLE and line.text]
    title, rest = split(titles, TITLE_MAX)
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
    heading: str,
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
        title=heading,
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
