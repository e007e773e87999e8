"""The page: sections in order, one self-contained file, figures and tables beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import vl_convert
from markupsafe import Markup

from wattwire import stats
from wattwire.report import audit, costs, counts, figures, latency, published, words
from wattwire.report.answers import (
    CONFIDENCE,
    Answer,
    Answers,
    answer_all,
    headline,
    moderated,
    sentence,
)
from wattwire.report.evidence import CampaignReader, Evidence, column, gather
from wattwire.report.parts import (
    Column,
    Figure,
    Section,
    Table,
    Text,
    figures_of,
    tables_of,
    write_csv,
)


def build_report(campaign: Path | CampaignReader) -> Path:
    """Write the report of a campaign and return the path of its page.

    Takes the campaign's folder, or its opened reader. Writes report/index.html,
    report/figures/*.svg and *.pdf, report/tables/*.csv inside the campaign's folder; an older
    report there is replaced. A campaign without a usable run gets a page that says so.
    """
    if isinstance(campaign, (str, Path)):
        from wattwire.store import Campaign  # here, so that a reader of one's own needs no store

        campaign = Campaign(Path(campaign))
    evidence = gather(campaign)
    answers = answer_all(evidence)
    sections = _sections(evidence, answers)
    folder = campaign.path / "report"
    parts = [part for section in sections for part in section.parts]
    drawn = _write_figures(figures_of(parts), folder / "figures")
    _write_tables(tables_of(parts), folder / "tables")
    page = folder / "index.html"
    page.write_text(_render(evidence, headline(evidence, answers), sections, drawn), "utf-8")
    return page


def _sections(evidence: Evidence, answers: Answers) -> list[Section]:
    made = [
        _asked(evidence),
        _answers(evidence, answers),
        latency.section(evidence),
        costs.section(evidence),
        published.section(evidence),
        counts.section(evidence),
        audit.harness(evidence),
        audit.settings(evidence),
        audit.trail(evidence),
    ]
    return [section for section in made if section is not None]


def _asked(evidence: Evidence) -> Section:
    part = Section("asked", "What was asked, what was run")
    goal = evidence.study.get("goal") or {}
    if goal:
        part.parts.append(
            Text(
                f"Analyse {goal.get('object', '')} to {goal.get('purpose', '')}: "
                f"{goal.get('focus', '')}, as {goal.get('viewpoint', '')} would see it, "
                f"{goal.get('context', '')}."
            )
        )
    questions = [
        {"id": str(q.get("id", "")), "text": str(q.get("text", "")),
         "factors": words.listed([words.factor_title(f) for f in q.get("factors", [])]),
         "responses": words.listed([latency_name(r) for r in q.get("responses", [])])}
        for q in evidence.study.get("question", [])
    ]  # fmt: skip
    if questions:
        part.parts.append(
            Table("questions", "Questions and metrics",
                  [Column("id", ""), Column("text", "question"), Column("factors", "factors"),
                   Column("responses", "metrics")], questions)
        )  # fmt: skip
    part.parts.append(_run_table(evidence))
    return part


def latency_name(response: str) -> str:
    """A response of the study in words."""
    from wattwire.report.responses import resolve

    return resolve(response).title


def _run_table(evidence: Evidence) -> Table:
    planned = evidence.planned
    treatments = {json.dumps(e.get("treatment", {}), sort_keys=True) for e in planned}
    skipped = {str(e["skipped"]) for e in evidence.skipped}
    blocks = {e.get("block") for e in planned}
    tried = set(evidence.attempts["run"].to_list()) if evidence.attempts.height else set()
    seconds = sum(
        float(s) for run in evidence.runs.values() for s in (run.get("seconds") or {}).values()
        if isinstance(s, (int, float))
    )  # fmt: skip
    windows = costs.window_seconds(evidence, evidence.usable) if evidence.usable.height else []
    facts: list[tuple[str, str]] = [
        (words.factor_title(name), ", ".join(words.plain(v) for v in levels))
        for name, levels in evidence.factors.items()
    ]
    facts += [
        ("treatments", words.count(len(treatments))),
        ("blocks", words.count(len(blocks))),
        ("runs planned", words.count(len(planned))),
        ("runs usable", words.count(evidence.usable.height)),
        ("runs set aside", words.count(evidence.set_aside.height)),
        ("runs not tried yet", words.count(len({e["run"] for e in planned} - tried))),
        (
            "runs that cannot be run here",
            words.count(len(evidence.skipped)) + (f" ({'; '.join(sorted(skipped))})" if skipped else ""),
        ),
        ("window of a run", words.duration(float(np.nanmedian(windows))) if len(windows) else "–"),
        ("duration of all runs", words.duration(seconds) if seconds else words.MISSING),
        ("machine", machine_line(evidence.reader.machine)),
    ]
    if evidence.study.get("preset"):
        facts.insert(0, ("preset", str(evidence.study["preset"])))
    return Table(
        "what-was-run", "What was run", [Column("what", ""), Column("value", "")],
        [{"what": what, "value": value} for what, value in facts],
    )  # fmt: skip


def machine_line(machine: Mapping[str, Any]) -> str:
    """The hosts in one line: processor, cores, memory, kernel."""
    lines = []
    for known in machine.get("hosts", {}).values():
        facts = {str(f["key"]): f.get("value") for f in known.get("facts", [])}
        told = [str(facts[k]) for k in ("cpu_model", "cpu.model") if facts.get(k)]
        cores = next((facts[k] for k in facts if k.endswith("cores")), None)
        told += [f"{cores} cores"] if cores else []
        memory = next((facts[k] for k in facts if k.startswith("memory") and facts[k]), None)
        if isinstance(memory, (int, float)):
            told.append(f"{words.number(memory / 2**30)} GiB")
        kernel = next((facts[k] for k in facts if k.startswith("kernel")), None)
        told += [f"kernel {kernel}"] if kernel else []
        lines.append(", ".join(told))
    return "; ".join(line for line in lines if line) or words.MISSING


def _answers(evidence: Evidence, answers: Answers) -> Section:
    part = Section("answers", "Answers")
    if not answers.items:
        part.parts.append(Text("The study asks no question that compares levels."))
        return part
    if answers.block_count == 1:
        part.parts.append(
            Text("One block: no interval per treatment; drift cannot be separated. The ratios "
                 "below are main effects over the factorial: the other factors act as "
                 "replication and their interactions stand in the error.", "warning")
        )  # fmt: skip
    for question in evidence.study.get("question", []):
        mine = [a for a in answers.items if a.question == str(question.get("id", ""))]
        part.parts.append(Text(f"{question.get('id', '')}  {question.get('text', '')}", "question"))
        part.parts.extend(_question_words(evidence, mine, answers))
    computed = answers.computed()
    if computed:
        part.parts.append(_ratio_figure(evidence, computed, answers))
    part.parts.append(_answer_table(evidence, answers))
    inner = moderated(evidence, answers)
    if any(isinstance(row[3], stats.Ratio) for row in inner):
        part.parts.append(_moderated_table(evidence, inner))
    elif inner:
        part.parts.append(Text(f"Whether a ratio changes with another factor: {inner[0][3]}."))
    return part


def _question_words(evidence: Evidence, mine: Sequence[Answer], answers: Answers) -> list[Text]:
    if not mine:
        return [Text("Not answered: this campaign holds its factors at one level.")]
    told = []
    for answer in mine:
        words_of_it = sentence(evidence, answer, answers.family)
        if isinstance(answer.result, stats.Ratio):
            outcome = stats.verdict(answer.result.interval, answers.margin)
            words_of_it = words_of_it[:-1] + f": {outcome}."
        told.append(words_of_it)
    # Answers that cannot be given for one and the same reason need one sentence, not twenty.
    kept = [t for t, a in zip(told, mine, strict=True) if isinstance(a.result, stats.Ratio)]
    gaps: dict[tuple[str, str], None] = {}
    for answer in mine:
        if not isinstance(answer.result, stats.Ratio):
            gaps.setdefault((answer.response.title, str(answer.result)))
    kept += [f"{title[:1].upper()}{title[1:]}: {reason}." for title, reason in gaps]
    return [Text(one, "item") for one in kept]


def _ratio_figure(evidence: Evidence, computed: Sequence[Answer], answers: Answers) -> Figure:
    points = []
    for answer in _distinct(computed):
        assert isinstance(answer.result, stats.Ratio)
        interval = answer.result.interval
        point = {
            "name": f"{evidence.title(answer.factor, answer.level)} / "
            f"{evidence.title(answer.factor, answer.baseline)}",
            "response": answer.response.title, "one": 1,
            "ratio": figures.rounded(interval.estimate), "low": figures.rounded(interval.low),
            "high": figures.rounded(interval.high),
        }  # fmt: skip
        if answers.margin is not None:
            point |= {"margin_low": 1 / (1 + answers.margin), "margin_high": 1 + answers.margin}
        points.append(point)
    margin = (
        f" The grey band is the study's margin of ± {words.percent(answers.margin)}."
        if answers.margin is not None
        else ""
    )
    return Figure(
        "ratios", "Ratios with their intervals",
        "Geometric-mean ratios; the bars are simultaneous "
        f"{words.confidence(CONFIDENCE)} intervals over the family of {answers.family}.{margin}",
        figures.ratios_chart(points, answers.margin),
    )  # fmt: skip


def _distinct(items: Sequence[Answer]) -> list[Answer]:
    seen: dict[tuple[str, str, str], Answer] = {}
    for item in items:
        seen.setdefault((item.response.column, item.factor, str(item.level)), item)
    return sorted(seen.values(), key=lambda a: a.response.title)


def _answer_table(evidence: Evidence, answers: Answers) -> Table:
    rows = []
    for answer in answers.items:
        result = answer.result
        row: dict[str, Any] = {
            "question": answer.question,
            "response": answer.response.title,
            "factor": words.factor_title(answer.factor),
            "level": evidence.title(answer.factor, answer.level),
            "baseline": evidence.title(answer.factor, answer.baseline),
            "ratio": result.interval if isinstance(result, stats.Ratio) else result,
        }
        if isinstance(result, stats.Ratio):
            row |= {
                "outcome": stats.verdict(result.interval, answers.margin),
                "level_exact": words.confidence(result.interval.level),
                "model": result.kind, "degrees": int(result.interval.degrees or 0),
                "runs": result.run_count, "blocks": result.block_count,
            }  # fmt: skip
        if evidence.set_aside.height:
            every = answer.with_all
            row["with_all"] = every.interval if isinstance(every, stats.Ratio) else every
        rows.append(row)
    columns = [
        Column("question", ""), Column("response", "response"), Column("factor", "factor"),
        Column("level", "level"), Column("baseline", "against"),
        Column("ratio", "ratio [interval]", "measured"), Column("outcome", "outcome"),
        Column("level_exact", "exact level"), Column("model", "model"),
        Column("degrees", "df", "measured"), Column("runs", "runs", "measured"),
        Column("blocks", "blocks", "measured"),
    ]  # fmt: skip
    if evidence.set_aside.height:
        columns.append(Column("with_all", "with the runs set aside", "measured"))
    family = evidence.study.get("answers", {}).get("family") or "all answers below, together"
    return Table(
        "answers", "All answers", columns, rows,
        f"Family: {family} ({answers.family} intervals hold together at "
        f"{words.confidence(CONFIDENCE)}, Bonferroni). Registered in the study. Estimand: ratio of "
        "geometric means inside blocks, averaged with equal weight over the combinations of the "
        "other factors. “Different” excludes 1, “equivalent” lies inside the study's margin, "
        "anything else is undecided.",
    )  # fmt: skip


def _moderated_table(evidence: Evidence, inner: Sequence[Any]) -> Table:
    rows = []
    for answer, other, level, result in inner:
        rows.append(
            {"response": answer.response.title,
             "contrast": f"{evidence.title(answer.factor, answer.level)} / "
                         f"{evidence.title(answer.factor, answer.baseline)}",
             "at": evidence.title(other, level),
             "ratio": result.interval if isinstance(result, stats.Ratio) else result,
             "strata": result.strata if isinstance(result, stats.Ratio) else None}
        )  # fmt: skip
    return Table(
        "ratios-by-level", "Does the ratio change with the other factors?",
        [Column("response", "response"), Column("contrast", "contrast"), Column("at", "at"),
         Column("ratio", "ratio [interval]", "measured"),
         Column("strata", "combinations", "measured")],
        rows,
        f"Exploratory: each interval stands alone at {words.confidence(CONFIDENCE)}.",
    )  # fmt: skip


def _write_figures(drawn: Sequence[Figure], folder: Path) -> dict[str, str]:
    """Write every figure as SVG and PDF; return the SVG by figure id."""
    _fresh(folder, ("*.svg", "*.pdf"))
    found = {}
    for figure in drawn:
        # The page's own spec, at a fixed library version: page, SVG and PDF cannot differ.
        vega = vl_convert.vegalite_to_vega(figure.spec)
        svg = vl_convert.vega_to_svg(vega)
        (folder / f"{figure.id}.svg").write_text(svg, "utf-8")
        (folder / f"{figure.id}.pdf").write_bytes(vl_convert.vega_to_pdf(vega))
        found[figure.id] = svg
    return found


def _write_tables(tables: Sequence[Table], folder: Path) -> None:
    _fresh(folder, ("*.csv",))
    for table in tables:
        write_csv(table, folder / f"{table.id}.csv")


def _fresh(folder: Path, patterns: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        for old in folder.glob(pattern):
            old.unlink()


@lru_cache(maxsize=1)
def _library() -> str:
    """The drawing library for the page, safe inside a script element."""
    return vl_convert.javascript_bundle().replace("</script", "<\\/script")


def _render(
    evidence: Evidence, first: str, sections: Sequence[Section], drawn: Mapping[str, str]
) -> str:
    folder = resources.files("wattwire.report") / "templates"
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
    )  # fmt: skip
    specs = {
        figure.id: figure.spec
        for section in sections
        for figure in figures_of(section.parts)
    }
    # "<" inside a script element could end it; as \u003c it is the same JSON.
    specs_json = json.dumps(specs, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return environment.get_template("page.html").render(
        title=evidence.study.get("title") or evidence.study.get("name") or "Campaign",
        first=first,
        sections=sections,
        images={name: _data_address(svg) for name, svg in drawn.items()},
        specs=Markup(specs_json),
        library=Markup(_library()),
        style=Markup((folder / "page.css").read_text("utf-8")),
        script=Markup((folder / "page.js").read_text("utf-8")),
        confidence=CONFIDENCE,
    )


def _data_address(svg: str) -> str:
    import base64

    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
