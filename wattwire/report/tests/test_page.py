"""Tests of the statements, omissions and files of the page of a simulated campaign."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics import topics
from wattwire.report import page_parts
from wattwire.report.page import build_report
from wattwire.report.parts import tables_of
from wattwire.report.tests.answered import answered_study, section
from wattwire.report.tests.synthetic import (
    CPU_RATIO,
    FAST,
    LATENCY_RATIO,
    Shape,
    add_attempt,
    unpacked,
    write_campaign,
)
from wattwire.store import Campaign


class Words(HTMLParser):
    """Collects the visible text of the page by element, without scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.heading = ""
        self.words: list[str] = []
        self.folded: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "link"):
            self.stack.append(tag)

    def handle_endtag(self, tag) -> None:
        while self.stack and self.stack.pop() != tag:
            continue

    def handle_data(self, data) -> None:
        if {"script", "style"} & set(self.stack):
            return
        if "h1" in self.stack:
            self.heading += data
        (self.folded if "details" in self.stack else self.words).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def built(folder: Path, shape: Shape | None = None) -> tuple[Words, Path]:
    page = build_report(Campaign(write_campaign(folder, shape)), printed=True)
    return Words(page.read_text("utf-8")), page


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory) -> tuple[Words, Path]:
    shape = Shape(
        unknown_runs=(6,),
        loss_share=0.002,
        skip={"pattern": "action", "language": FAST, "clients": 2},
    )
    return built(tmp_path_factory.mktemp("ordinary") / "campaign", shape)


def table(page: Path, name: str) -> list[dict[str, str]]:
    with (page.parent / "tables" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_first_sentence_answers_with_ratio_interval_blocks_and_runs(ordinary) -> None:
    words, _ = ordinary
    found = re.fullmatch(
        r"Swift is better than Python in 2 of 4 responses \(no result: memory.* and energy.*\)\. "
        r"Python used ([\d.]+) times the CPU time per message of Swift \(simultaneous 95 % "
        r"interval ([\d.]+) to ([\d.]+), 3 blocks, 65 runs\), on average over the levels of "
        r"pattern, interval and clients\. Skipped Swift, action, .*: the "
        r"cell has no such capability\.",
        words.heading.strip(),
    )
    assert found, words.heading
    ratio, low, high = (float(part) for part in found.groups())
    assert low < 1 / CPU_RATIO < high
    assert low < ratio < high


def test_the_planted_ratios_stand_in_the_answers_with_their_exact_level(ordinary) -> None:
    _, page = ordinary
    rows = {(r["response"], r["level"]): r for r in table(page, "answers")}
    latency = rows["median latency", "Swift"]
    assert float(latency["ratio_low"]) < LATENCY_RATIO < float(latency["ratio_high"])
    # Four answers have a number (a response without scatter has none), so Bonferroni uses four.
    assert {r["level_exact"] for r in rows.values() if r["ratio"]} == {"98.75 %"}
    assert rows["median latency", "2 clients"]["outcome"] in (
        "equivalent",
        "no difference detected",
    )


def test_answers_stand_with_and_without_the_runs_set_aside(ordinary) -> None:
    _, page = ordinary
    row = next(r for r in table(page, "answers") if r["response"] == "CPU time per message")
    # The disturbed Python run costs five times as much, so the ratio is lower if it is included.
    assert float(row["with_all"]) < float(row["ratio"])


def test_energy_that_no_meter_measured_is_no_answer_and_no_number(ordinary) -> None:
    words, page = ordinary
    assert "Energy per message: not available, because no meter measured energy." in words.text
    rows = [r for r in table(page, "answers") if r["response"] == "energy per message"]
    assert rows and all(r["ratio"] == "" and "no meter" in r["ratio_note"] for r in rows)


def test_the_estimate_is_closed_away_and_called_an_estimate_in_every_column(ordinary) -> None:
    words, page = ordinary
    assert not any(tag == "details" and "open" in attrs for tag, attrs in words.tags)
    assert "estimate" not in words.heading
    folded = " ".join(words.folded)
    assert "No test, ranking or answer" in folded
    header = (page.parent / "tables" / "energy-estimate.csv").read_text("utf-8").splitlines()[0]
    quantities = [name for name in header.split(",") if "_j" in name or "_w" in name]
    assert quantities and all("estimate" in name for name in quantities)


def test_the_page_needs_nothing_from_anywhere(ordinary) -> None:
    words, page = ordinary
    for tag, attributes in words.tags:
        for name in ("src", "href"):
            address = attributes.get(name) or ""
            assert not re.match(r"(https?:)?//", address), (tag, address)
    assert "connect-src 'none'" in page.read_text("utf-8")


def test_every_link_on_the_page_leads_to_a_file_beside_it_or_a_part_of_it(ordinary) -> None:
    words, page = ordinary
    parts = {attributes.get("id") for _, attributes in words.tags}
    links = [attributes["href"] for tag, attributes in words.tags if tag == "a"]
    assert len(links) > 20
    for link in links:
        assert link is not None
        if link.startswith("#"):
            assert link[1:] in parts
        else:
            assert (page.parent / link).stat().st_size > 0


def test_every_figure_is_there_as_svg_and_pdf(ordinary) -> None:
    words, page = ordinary
    charts = [a["data-chart"] for _, a in words.tags if "data-chart" in a]
    assert {"ratios", "latency-ecdf", "order"} <= set(charts)
    for chart in charts:
        assert "<svg" in (page.parent / "figures" / f"{chart}.svg").read_text("utf-8")[:500]
        assert (page.parent / "figures" / f"{chart}.pdf").read_bytes()[:5] == b"%PDF-"


def test_the_drawn_specs_are_the_ones_on_the_page_and_thinned(ordinary) -> None:
    _, page = ordinary
    text = page.read_text("utf-8")
    held = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S).group(1))
    place = held["charts"]["latency-ecdf"]["datasets"]["points"]
    curves: dict[tuple[str, ...], int] = {}
    for point in unpacked(held["points"][place]):
        key = (point["colour"], point["panel"])
        curves[key] = curves.get(key, 0) + 1
    assert len(curves) == 12
    assert max(curves.values()) <= 400
    assert "downsampled to at most 400 exact points" in text


def test_a_percentage_is_written_in_a_figure_as_it_is_in_the_text(ordinary) -> None:
    _, page = ordinary
    drawn = (page.parent / "figures" / "latency-ecdf.svg").read_text("utf-8")
    assert re.search(r">100\s%<", drawn) and ">100%<" not in drawn


def test_a_combination_that_was_not_run_moves_no_curve_under_anothers_heading(tmp_path) -> None:
    # Vega-Lite misplaces panels after a gap in a grid, so panels are wrapped instead.
    shape = Shape(blocks=1, clients=(1,), skip={"pattern": "topic", "interval_s": 0.2})
    _, page = built(tmp_path / "campaign", shape)
    text = page.read_text("utf-8")
    held = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S).group(1))
    for name in ("latency-ecdf", "runs-cpu-us-per-message"):
        facet = held["charts"][name]["facet"]
        assert "row" not in facet and "column" not in facet
        assert facet["sort"] == [
            "topic, 0.05 s", "service, 0.05 s", "action, 0.05 s", "service, 0.2 s", "action, 0.2 s"
        ]  # fmt: skip
        drawn = (page.parent / "figures" / f"{name}.svg").read_text("utf-8")
        places = [drawn.index(f">{panel}<") for panel in facet["sort"]]
        assert places == sorted(places)


def test_words_from_outside_are_escaped(ordinary) -> None:
    _, page = ordinary
    text = page.read_text("utf-8")
    assert "made up &lt;for tests&gt;" in text
    assert "Made-up CPU &lt;4&gt;" in text
    assert "40 % &lt;of&gt; a core" in text


def test_a_script_in_a_name_stays_text(tmp_path) -> None:
    shape = Shape(blocks=1, study={"titles": {"language": {FAST: "</script><b>x"}}})
    words, page = built(tmp_path / "campaign", shape)
    assert "</script><b>x is better than" in words.heading
    assert not any(tag == "b" for tag, _ in words.tags)


def test_what_was_set_aside_skipped_and_absent_is_listed_with_its_reason(ordinary) -> None:
    words, page = ordinary
    verdicts = table(page, "verdicts")
    assert len(verdicts) == 1
    assert verdicts[0]["verdict"] == "invalid"
    assert "40 % <of> a core" in verdicts[0]["reasons"]
    assert {r["because"] for r in table(page, "skipped")} == {"the cell has no such capability"}
    meters = {r["meter"]: r for r in table(page, "meters")}
    assert meters["wall_meter"]["state"] == "absent"
    assert meters["wall_meter"]["grant"] == "plug one in"
    assert "Fisher's exact test" in words.text


def test_counts_add_up_and_say_so(ordinary) -> None:
    _, page = ordinary
    rows = table(page, "counts")
    assert {r["check"] for r in rows} == {"correct"}
    assert sum(int(r["lost"]) for r in rows) > 0


def test_percentiles_that_the_data_do_not_carry_are_words(ordinary) -> None:
    _, page = ordinary
    rows = table(page, "latency-percentiles")
    assert len(rows) == 22
    for row in rows:
        if row["p99.9_us"] == "inf":  # more than 0.1 % of the messages are lost
            assert int(row["lost"]) > 0.001 * int(row["messages"])
            assert int(row["lost"]) + int(row["latencies"]) == int(row["messages"])
        else:
            assert row["p99.9_us"].startswith("there are only")
        assert float(row["p50_us_low"]) <= float(row["p50_us"]) <= float(row["p50_us_high"])
    fast = [float(r["p50_us"]) for r in rows if r["language"] == FAST]
    slow = [float(r["p50_us"]) for r in rows if r["language"] != FAST]
    assert max(fast) < min(slow)


def test_one_block_has_main_effects_and_no_interval_per_treatment(tmp_path) -> None:
    words, page = built(tmp_path / "campaign", Shape(blocks=1))
    assert words.heading.startswith("Swift is better than Python")
    assert "One block gives no interval per treatment" in words.text
    row = next(r for r in table(page, "answers") if r["response"] == "CPU time per message")
    assert row["model"] == "main effects"
    assert float(row["ratio_low"]) < CPU_RATIO < float(row["ratio_high"])


def test_measured_energy_is_paired_in_blocks_and_keeps_its_three_parts(tmp_path) -> None:
    shape = Shape(measured_energy=True, blocks=4, patterns=("topic",), intervals_s=(0.05,))
    words, page = built(tmp_path / "campaign", shape)
    rows = table(page, "energy-measured")
    assert len(rows) == 4
    for row in rows:
        # 0.4 W above silent power at 20 messages per second.
        assert float(row["j_per_sent_low"]) < 0.02 < float(row["j_per_sent_high"])
        assert float(row["energy_standing_j"]) == pytest.approx(4.0)
    assert "no meter measured" not in words.text
    assert not words.heading.startswith("Swift used 1")


def test_a_campaign_without_a_run_still_has_a_page_that_says_so_first(tmp_path) -> None:
    words, _ = built(tmp_path / "campaign", Shape(drop_runs=tuple(range(1000))))
    assert words.heading.startswith("No results yet: 0 of 72 planned runs were tried.")


def test_a_campaign_of_set_aside_runs_names_the_reason_and_then_counts_them(tmp_path) -> None:
    shape = Shape(blocks=2, patterns=("topic",), unknown_runs=tuple(range(1, 100)))
    words, _ = built(tmp_path / "campaign", shape)
    assert words.heading.startswith(
        "The answers exclude 15 of 16 runs (other load), and the remaining runs give no result. "
        "With the excluded runs: Python used "
    )
    assert "2 blocks, 16 runs)" in words.heading


def test_no_answer_includes_excluded_runs_that_another_network_carried(tmp_path) -> None:
    shape = Shape(blocks=3, patterns=("topic",), unknown_runs=(0, 1))
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    before = answer_all(evidence)
    for run in evidence.excluded["run"]:
        evidence.runs[run]["reasons"] = [{"code": "other_interface", "detail": "by eth1"}]
    evidence.fits.clear()
    after = answer_all(evidence)
    pairs = list(zip(before.computed(), after.computed(), strict=True))
    assert all(item.with_all == item.result for _, item in pairs)
    assert any(item.with_all != item.result for item, _ in pairs)
    assert answered_study(evidence, after).elsewhere == 2
    (table,) = (one for one in tables_of(section(evidence, after).parts) if one.id == "answers")
    assert "“With the excluded runs” omits 2 runs whose messages another network" in table.note


def test_a_campaign_without_one_usable_run_names_the_reason_first(tmp_path) -> None:
    shape = Shape(blocks=1, patterns=("topic",), unknown_runs=tuple(range(100)))
    words, _ = built(tmp_path / "campaign", shape)
    assert "8 of 8 planned runs were tried, but none is valid (other load)." in words.heading
    assert "With the excluded runs: Python used " in words.text


def test_an_incomplete_campaign_says_so_first_and_answers_from_what_is_there(tmp_path) -> None:
    words, _ = built(tmp_path / "campaign", Shape(drop_runs=tuple(range(50, 72))))
    assert words.heading.startswith(
        "Incomplete: the campaign has 50 of 72 runs of the design so far. Swift is better than "
    )


def test_a_run_that_died_is_a_result_and_its_absence_from_a_ratio_is_said(tmp_path) -> None:
    shape = Shape(blocks=2, patterns=("topic",), died_runs=(2,))
    words, page = built(tmp_path / "campaign", shape)
    assert "1 valid run ended with the outcome “died”." in words.text
    assert "The ratios of CPU time per message omit 1 valid run without a value." in words.text
    assert "15 runs)" in words.heading
    verdicts = table(page, "verdicts")
    assert [(r["outcome"], r["verdict"], r["reasons"]) for r in verdicts] == [
        ("died", "valid", "client-0: killed by signal 9")
    ]


def test_a_second_report_replaces_the_first(tmp_path) -> None:
    folder = write_campaign(tmp_path / "campaign", Shape(blocks=1, patterns=("topic",)))
    page = build_report(Campaign(folder))
    stale = page.parent / "tables" / "stale.csv"
    stale.write_text("old\n")
    first = page.read_text("utf-8")
    assert build_report(Campaign(folder)).read_text("utf-8") == first
    assert not stale.exists()
    assert not list(page.parent.glob("*/*.tex")) and "SVG" in first  # the footer offers SVG files
    printed = build_report(Campaign(folder), printed=True)
    figures = page.parent / "figures"
    assert list(figures.glob("*.svg")) and list(page.parent.glob("tables/*.tex"))
    assert "figures/latency-ecdf.svg" in printed.read_text("utf-8")
    assert build_report(Campaign(folder)).read_text("utf-8") == first
    assert not list(figures.glob("*.*")), "figures of an older report would show other numbers"


def test_a_run_that_was_tried_again_counts_once(tmp_path) -> None:
    folder = write_campaign(tmp_path / "campaign", Shape(blocks=2, patterns=("topic",)))
    reader = Campaign(folder)
    run = reader.summary()["run"][0]
    gone = [{"code": "agent", "detail": "gone"}]
    failed = {"verdict": "failed"}
    add_attempt(folder, f"{run}-1", run, failed, {**failed, "reasons": gone})
    page = build_report(Campaign(folder))
    assert "16 runs)" in Words(page.read_text("utf-8")).heading
    rows = table(page, "verdicts")
    assert [(r["run"], r["attempt"], r["counts"]) for r in rows] == [
        (run, "2", "no, replaced by another attempt")
    ]
    assert rows[0]["reasons"] == "agent: gone"


def test_the_page_finds_its_sections_and_refuses_two_of_one_place(monkeypatch):
    found = page_parts.topics_with_section()
    places = [topics()[name].place for name in found]
    assert len(places) > 15 and places == sorted(places)
    assert {"limits", "requested"} <= set(found) and "services" not in found
    limits = topics()["limits"]
    monkeypatch.setattr(page_parts, "topics", lambda: {"limits": limits, "other": limits})
    with pytest.raises(ValueError, match=f"limits and other: both have place {limits.place}"):
        page_parts.topics_with_section.__wrapped__()
