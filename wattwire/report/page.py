"""The page: sections in order, one self-contained file, figures and tables beside it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path

import jinja2
import vl_convert
from markupsafe import Markup

from wattwire.model.errors import UsageError
from wattwire.report import (
    answered,
    asked,
    audit,
    conditions,
    controls,
    costs,
    counts,
    drawing,
    explore,
    findings,
    latency,
    limits,
    paper_path,
    proportion,
    published,
    reproduced,
    threats,
)
from wattwire.report.answers import Answers, answer_all, headline
from wattwire.report.evidence import CampaignReader, Evidence, gather
from wattwire.report.latex import write_tex
from wattwire.report.packing import packed_spec, script_json
from wattwire.report.parts import Section, Table, figures_of, tables_of, write_csv
from wattwire.store import open_campaign


def build_report(campaign: Path | CampaignReader) -> Path:
    """Write the report of a campaign and return the path of its page.

    Takes the campaign's folder, or its opened reader. Writes report/index.html,
    report/figures/*.svg and *.pdf, report/tables/*.csv and *.tex inside the campaign's folder; an
    older report there is replaced. A campaign without a usable run gets a page that says so.
    """
    if isinstance(campaign, (str, Path)):
        campaign = open_campaign(Path(campaign))
    if not (campaign.path / "plan.json").is_file():
        raise UsageError(
            f"{campaign.path}: this campaign was ended before its plan was written, so there is "
            "nothing to report. Run the study anew."
        )
    evidence = gather(campaign)
    answers = answer_all(evidence)
    series = latency.all_series(evidence)
    found = findings.look(evidence, series)
    sections = _sections(evidence, answers, series, found)
    folder = campaign.path / "report"
    parts = [part for section in sections for part in section.parts]
    _fresh(folder / "figures", ("*.svg", "*.pdf"))
    drawn = drawing.draw(figures_of(parts), folder / "figures")
    _write_tables(tables_of(parts), folder / "tables")
    page = folder / "index.html"
    told = (headline(evidence, answers), asked.second_line(evidence), found.in_short)
    page.write_text(_render(evidence, told, sections, drawn), "utf-8")
    return page


def _sections(
    evidence: Evidence,
    answers: Answers,
    series: Mapping[str, latency.Series],
    found: findings.Findings,
) -> list[Section]:
    made = [
        asked.section(evidence),
        answered.section(evidence, answers),
        limits.section(evidence),
        *reproduced.sections(evidence),
        explore.section(evidence) if evidence.imported else findings.section(found),
        *([] if evidence.imported else _measured_here(evidence, series)),
        proportion.section(evidence),
        paper_path.section(evidence),
        threats.section(evidence, answers),
        audit.trail(evidence),
    ]
    return [section for section in made if section is not None]


def _measured_here(
    evidence: Evidence, series: Mapping[str, latency.Series]
) -> list[Section | None]:
    """The parts that need messages, meters and nodes of ours."""
    return [
        latency.section(evidence, series),
        costs.section(evidence),
        explore.section(evidence),
        published.section(evidence),
        counts.section(evidence),
        controls.section(evidence),
        conditions.harness(evidence),
        conditions.settings(evidence),
    ]


def _write_tables(tables: Sequence[Table], folder: Path) -> None:
    _fresh(folder, ("*.csv", "*.tex"))
    for table in tables:
        write_csv(table, folder / f"{table.id}.csv")
        write_tex(table, folder / f"{table.id}.tex")


def _fresh(folder: Path, patterns: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        for old in folder.glob(pattern):
            old.unlink()


@lru_cache(maxsize=1)
def _library() -> str:
    """The drawing library for the page, safe inside a script element."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def _render(
    evidence: Evidence,
    told: tuple[str, ...],
    sections: Sequence[Section],
    drawn: Mapping[str, str],
) -> str:
    folder = resources.files("wattwire.report") / "templates"
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
    )
    specs = {
        figure.id: packed_spec(figure.spec)
        for section in sections
        for figure in figures_of(section.parts)
    }
    return environment.get_template("page.html").render(
        title=evidence.study.get("title") or evidence.study.get("name") or "Campaign",
        first=told[0],
        others=[one for one in told[1:] if one],
        sections=sections,
        images={name: _data_address(svg) for name, svg in drawn.items()},
        specs=Markup(script_json(specs)),
        library=Markup(_library()),
        style=Markup((folder / "page.css").read_text("utf-8")),
        script=Markup((folder / "page.js").read_text("utf-8")),
        explorer=Markup((folder / "explore.js").read_text("utf-8")),
    )


def _data_address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
