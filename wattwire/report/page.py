"""The page: sections in order, one self-contained file, figures and tables beside it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from threadpoolctl import threadpool_limits

from wattwire.analysis import validity
from wattwire.analysis.contrasts import Answers, answer_all
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.document import document
from wattwire.analysis.latency import Series, all_series
from wattwire.model.errors import UsageError
from wattwire.report import findings
from wattwire.report.figures.downsample import Thinner
from wattwire.report.html.columnar_json import packed_charts, script_json
from wattwire.report.parts import Section, Table, figures_of, tables_of, write_csv
from wattwire.report.print import render
from wattwire.report.print.latex import write_tex
from wattwire.report.sections import (
    audit,
    controls,
    costs,
    counts,
    design,
    explore,
    harness,
    latency,
    limits,
    paper_path,
    proportion,
    published,
    replication,
    requested_tables,
    settings,
    syscalls,
    threats,
    variants,
)
from wattwire.report.sections.answers import section as answers_section
from wattwire.report.sections.findings import section as findings_section
from wattwire.report.tables import steady_state
from wattwire.report.words import concurrency, unanswered
from wattwire.store import open_campaign
from wattwire.store.files import refuse_links


def build_report(campaign: Path | CampaignReader, printed: bool = False) -> Path:
    """Write the report of a campaign and return the path of its page.

    Takes the campaign's folder, or its opened reader. Writes report/index.html and
    report/tables/*.csv inside the campaign's folder, where `printed` is asked for
    report/figures/*.svg and *.pdf and report/tables/*.tex too, and
    the page's headline in report/answer.txt, with a line for each question that has no number, and
    in report/validity.txt what the page says of a look or of changed limits, and all numbers of the
    answers in report/analysis.json; an older report there is replaced. A campaign without a usable
    run gets a page that says so.
    """
    if isinstance(campaign, (str, Path)):
        campaign = open_campaign(Path(campaign))
    if not (campaign.path / "plan.json").is_file():
        raise UsageError(
            f"{campaign.path}: this campaign was ended before its plan was written, so there is "
            "nothing to report. Run the study anew."
        )
    folder = campaign.path / "report"
    refuse_links(campaign.path)
    # Matrices here are small: threads for them only take the core from the drawing beside.
    figures = folder / "figures"
    drawing_of = render.Drawer if printed else render.Undrawn
    with drawing_of(figures) as drawer, threadpool_limits(1, user_api="blas"):
        evidence = gather(campaign)
        answers = answer_all(evidence)
        numbers = document(evidence, answers)
        series = all_series(evidence)
        found = findings.look(evidence, series)
        sections, thinner = [], Thinner()
        for made in _sections(evidence, (answers, numbers), series, found):
            if made is not None:
                section = bounded(made, thinner)
                sections.append(section)
                drawer.begin(figures_of(section.parts))
        tables = tables_of([p for s in sections for p in s.parts])
        _write_tables(tables, folder / "tables", printed)
        third = replication.in_short(evidence) or found.in_short
        moving = steady_state.told_unsettled(evidence, series)
        idle = concurrency.sentence(evidence)
        answer = unanswered.headline(evidence, answers)
        first = " ".join(filter(None, (answer, variants.headline(evidence), moving, idle)))
        stamps, gaps = validity.stamps(evidence), unanswered.questions(evidence, answers)
        told = (first, *stamps, " ".join(gaps), design.second_line(evidence), third)
        (folder / "answer.txt").write_text("\n".join([first, *gaps, ""]), "utf-8")
        (folder / "validity.txt").write_text("".join(f"{stamp}\n" for stamp in stamps), "utf-8")
        text = json.dumps(numbers, indent=1, allow_nan=False)
        (folder / "analysis.json").write_text(f"{text}\n", "utf-8")
        page = folder / "index.html"
        page.write_text(_render(evidence, told, sections, drawer, printed), "utf-8")
    return page


def bounded(section: Section, thinner: Thinner) -> Section:
    """The section with no more points in a figure than a page can hold."""
    return replace(section, parts=thinner.parts(section.parts))


def _sections(
    evidence: Evidence,
    answered: tuple[Answers, Mapping[str, Any]],
    series: Mapping[str, Series],
    found: findings.Findings,
) -> Iterator[Section | None]:
    """The parts of the page in order, one at a time: figures are drawn while the next is made.

    `answered` are the answers, and what report/analysis.json holds of them.
    """
    answers, numbers = answered
    yield answers_section(evidence, answers, numbers)
    yield variants.section(evidence)
    yield limits.section(evidence)
    yield requested_tables.section(evidence)
    yield design.section(evidence)
    yield from replication.sections(evidence)
    if evidence.imported:
        yield explore.section(evidence)
    else:
        yield findings_section(found)
        yield from _measured_here(evidence, series)
    yield proportion.section(evidence)
    yield paper_path.section(evidence)
    yield threats.section(evidence, answers)
    yield audit.trail(evidence)


def _measured_here(evidence: Evidence, series: Mapping[str, Series]) -> Iterator[Section | None]:
    """The parts that need messages, meters and nodes of ours."""
    made = latency.section(evidence, series)
    settled = steady_state.fold(evidence, series)
    if settled is not None:
        made.parts.append(settled)
    yield made
    yield costs.section(evidence)
    yield syscalls.section(evidence)
    yield explore.section(evidence)
    yield published.section(evidence)
    yield counts.section(evidence)
    yield controls.section(evidence)
    yield harness.section(evidence)
    yield settings.section(evidence)


def _write_tables(tables: Sequence[Table], folder: Path, printed: bool) -> None:
    _fresh(folder, ("*.csv", "*.tex"))
    for table in tables:
        write_csv(table, folder / f"{table.id}.csv")
        if printed:
            write_tex(table, folder / f"{table.id}.tex")


def _fresh(folder: Path, patterns: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        for old in folder.glob(pattern):
            old.unlink()


def _render(
    evidence: Evidence,
    told: tuple[str, ...],
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
    failed = drawer.failed  # complete once the pictures are there
    charts = packed_charts({one.id: one.spec for one in drawn if one.id not in failed})
    return environment.get_template("page.html").render(
        title=evidence.study.get("title") or evidence.study.get("name") or "Campaign",
        first=told[0],
        others=[one for one in told[1:] if one],
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
