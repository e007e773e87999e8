"""Build the section with the answers to the study's questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers, Result
from wattwire.analysis.answering.baselines import baseline_of, planned_baseline
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.comparing.common import judges_variants
from wattwire.analysis.dataset import Evidence, same_level
from wattwire.analysis.responses import Response, question_responses
from wattwire.model import words
from wattwire.model.questions import Question, factors_without_question
from wattwire.model.variants import FACTOR
from wattwire.report import figures
from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart
from wattwire.report.parts import Column, Figure, Fold, Section, Table, Text
from wattwire.report.tables import differences, sensitivity, short_answers
from wattwire.report.topic_page import Place, Placed
from wattwire.report.words import correlation, missing_values, not_compared, unanswered
from wattwire.report.words.answers import claim, few_degrees, nothing_to_compare, sentence_of_all
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "answers",
    {
        "title": "Answers",
        "one_block_one_factor": "One block cannot separate drift from the effects.",
        "one_block": (
            "One block gives no interval per treatment and cannot separate drift from the effects. "
            "The ratios below are main effects of the factorial design: runs at different levels "
            "of the other factors serve as replicates, and interactions with these factors are "
            "part of the error."
        ),
        "baseline_without_run": (
            "{planned} has no valid run, so the baseline is {baseline}, the first level with a "
            "valid run."
        ),
        "baseline_without_value": (
            "Some runs of {planned} have no comparable {response}, so the baseline is "
            "{baseline}, the first level without such runs."
        ),
        "question": "{id}  {text}",
        "not_answered": (
            "Not answered, because all runs of this campaign have the same level of the question's "
            "factors."
        ),
        "averaged": (
            "No question names {factor} ({names:listed 6}), so an answer is an average over the "
            "levels at which both of its sides were measured."
        ),
        "variants_only": "The section “Variants” has the verdict on each treatment.",
        "as_sentences": "The answers of the table in {sentences:plural sentence}",
        "level": "{claim}: {outcome}.",
        "other_levels": (
            "For the other {levels:plural level} of {factor}, the {response} is {lowest:number} to "
            "{highest:number}{unit} at the baseline: {outcomes:listed} (see the table “{table}”). "
            "The baseline is {baseline}{default}."
        ),
        "times": " times the value",
        "above": "{unit} above the value",
        "outcome_count": "{levels} {outcome}",
        "default_baseline": (
            ", the first level, because the study names no baseline (answers.baseline)"
        ),
        "no_number": "{response:capital}: {reason}.",
        "more_without_number": (
            "{more:plural more answer has/more answers have} no number; see the table."
        ),
        # The figure of ratios.
        "figure": "Ratios with their intervals",
        "caption": (
            "Points are ratios of geometric means. Bars are {confidence:confidence} intervals that "
            "are simultaneous over a family of {family:plural answer}.{margin}"
        ),
        "caption_margin": " The grey band is the study's margin of ± {margin:percent}.",
        # The table of all answers.
        "table": "All answers",
        "table_of_differences": "Answers as differences",
        "share": "a share; shares are compared by their difference (see below)",
        "no_logarithm": (
            "no ratio, because the value of at least one run has no logarithm; see the differences "
            "below"
        ),
        "note": (
            "Family: {family} ({intervals:plural interval}, simultaneous at "
            "{confidence:confidence}, Bonferroni). {registration}. Estimand: the ratio of "
            "geometric means within blocks, averaged with equal weight over the combinations of "
            "the other factors' levels. “Different”: the interval excludes 1. “Equivalent”: the "
            "interval is inside the study's margin. “Not larger than the A/A noise”: the interval "
            "excludes 1, but the results of one treatment under two labels may differ by as much "
            "(the far end of the interval of B / A; see the control runs). “No difference "
            "detected”: every other result; it does not show that there is no difference."
        ),
        "whole_family": "all answers below",
        "elsewhere": (
            "“With the excluded runs” omits {runs:plural run} whose messages another network "
            "carried or that bypassed the bridge: they did not measure the study's conditions."
        ),
        "registered": "The study registered these questions",
        "exploratory_import": (
            "These questions were chosen after the data were recorded, so they are exploratory"
        ),
        "exploratory_edit": (
            "These answers are exploratory because of changes after the measurement ("
            "{edits:listed})"
        ),
        "edited": "{files:listed} edited",
        "limits_changed": "validity limits changed",
    },
)

QUESTIONS = 30
"""Place of the questions in the section: the question n has the place 30.n."""
RANK_BLOCKS_MIN = 6
OPEN_SENTENCES_MAX = 4
"""With more sentences, a question has them folded, because they repeat the summary of answers."""
SENTENCES_MAX, LOWEST_LISTED, HIGHEST_LISTED = 8, 3, 2
"""With more than SENTENCES_MAX answers for a factor, only the lowest and the highest answers have
sentences. LOWEST_LISTED and HIGHEST_LISTED are their numbers.
"""


def section(
    evidence: Evidence,
    answers: Answers,
    document: Mapping[str, Any] | None = None,
    joining: Sequence[Placed] = (),
) -> Section:
    """Return the section that answers each question with simultaneous intervals.

    It begins with a short table of all answers in `document` (report/analysis.json). The parts of
    topics join it at their places if any question has an answer.
    """
    summary = short_answers.table(document) if document else None
    parts: list[Placed] = [((0,), summary)] if summary else []
    if not answers.items:
        reason = PHRASES("variants_only") if judges_variants(evidence) else None
        parts.append(((5,), Text(reason or nothing_to_compare(evidence))))
    else:
        parts += [*_cautions(evidence, answers), *joining]
        for number, question in enumerate(evidence.study.questions, 1):
            parts += _question(evidence, answers, question, (QUESTIONS, number))
        parts += _tables(evidence, answers)
    parts.sort(key=itemgetter(0))
    return Section("answers", PHRASES("title"), [placed for _, placed in parts])


def _cautions(evidence: Evidence, answers: Answers) -> Iterator[Placed]:
    """Yield the warnings that precede the questions."""
    if answers.block_count == 1:
        several = len(evidence.varied) > 1
        warning = PHRASES("one_block") if several else PHRASES("one_block_one_factor")
        yield (5,), Text(warning, "warning")
    degrees_warning = few_degrees(evidence, answers)
    if degrees_warning:
        yield (20,), Text(degrees_warning, "warning")
    for text in _substituted_baselines(evidence, answers):
        yield (22,), Text(text, "warning")
    gap_sentences = missing_values.sentences(evidence, answers)
    if gap_sentences:
        yield (24,), Text(joined(gap_sentences), "warning")
    for text in _averaged(evidence):
        yield (26,), Text(text, "warning")


def _question(
    evidence: Evidence,
    answers: Answers,
    question: Question,
    place: Place,
) -> Iterator[Placed]:
    """Yield the title of a question at `place`, and its answers after it."""
    question_answers = [answer for answer in answers.items if answer.question == question.id]
    yield place, Text(PHRASES("question", id=question.id, text=question.text), "question")
    if judges_variants(evidence) and FACTOR in question.factors:
        yield (*place, 20), Text(PHRASES("variants_only"))
    elif question_answers or not question.beside:
        for text in _question_words(evidence, question_answers, answers):
            yield (*place, 20), text
    for correlated in correlation.sentences(evidence, question):
        yield (*place, 30), correlated


def _tables(evidence: Evidence, answers: Answers) -> Iterator[Placed]:
    """Yield the figure and the tables."""
    computed = answers.computed()
    if computed:
        yield (50,), _ratio_figure(evidence, computed, answers)
    yield (60,), _answer_table(evidence, answers)
    if answers.differences():
        yield (62,), differences.table(evidence, answers)
    for sensitive in sensitivity.parts(evidence, answers):
        yield (70,), sensitive


def _averaged(evidence: Evidence) -> list[Phrase]:
    """Return a sentence for each varied factor that no question names."""
    study = evidence.study
    averaged = factors_without_question(evidence.varied, study.questions, study.answers.best_of)
    return [
        PHRASES(
            "averaged",
            factor=words.factor_title(name),
            names=[evidence.title(name, level) for level in evidence.factors[name]],
        )
        for name in averaged
    ]


def _substituted_baselines(evidence: Evidence, answers: Answers) -> list[Phrase]:
    """Return a sentence for each replaced baseline, with the reason and the replacement."""
    sentences = []
    for factor in dict.fromkeys(item.factor for item in answers.items):
        planned, used = planned_baseline(evidence, factor), baseline_of(evidence, factor)
        if not same_level(planned, used):
            sentences.append(
                PHRASES(
                    "baseline_without_run",
                    planned=evidence.title(factor, planned),
                    baseline=evidence.title(factor, used),
                )
            )
    for answer in answers.items:
        common = baseline_of(evidence, answer.factor)
        if not same_level(common, answer.baseline):
            sentences.append(
                PHRASES(
                    "baseline_without_value",
                    response=answer.response.title,
                    planned=evidence.title(answer.factor, common),
                    baseline=evidence.title(answer.factor, answer.baseline),
                )
            )
    return list(dict.fromkeys(sentences))


def _question_words(
    evidence: Evidence, question_answers: Sequence[Answer], answers: Answers
) -> list[Text | Fold]:
    if not question_answers:
        return [Text(PHRASES("not_answered"))]
    numbers = [answer for answer in question_answers if isinstance(answer.result, NUMBER)]
    uncomputed = [answer for answer in question_answers if not isinstance(answer.result, NUMBER)]
    difference_responses = [
        answer.response
        for answer in question_answers
        if isinstance(answer.result, stats.Difference)
    ]
    sentences: list[str] = [
        differences.why(evidence, response) for response in dict.fromkeys(difference_responses)
    ]
    groups: dict[tuple[Response, str], list[Answer]] = {}
    for answer in numbers:
        groups.setdefault((answer.response, answer.factor), []).append(answer)
    levels = [text for group in groups.values()
              for text in _level_sentences(evidence, group, answers)]  # fmt: skip
    folded = len(levels) > OPEN_SENTENCES_MAX
    sentences += [] if folded else levels
    # Answers whose numbers are missing for the same reason share a sentence.
    reasons = dict.fromkeys((answer.response.title, str(answer.result)) for answer in uncomputed)
    reason_sentences = [
        PHRASES("no_number", response=title, reason=reason) for title, reason in reasons
    ]
    sentences += reason_sentences[:SENTENCES_MAX]
    omitted_count = len(reason_sentences) - SENTENCES_MAX
    if omitted_count > 0:
        sentences.append(PHRASES("more_without_number", more=omitted_count))
    if evidence.excluded.height:
        sentences += filter(
            None, (sentence_of_all(evidence, answer, answers) for answer in uncomputed)
        )
    items = [Text(text, "item") for text in levels] if folded else []
    fold = [Fold(PHRASES("as_sentences", sentences=len(items)), items)] if items else []
    return [*(Text(text, "item") for text in sentences), *fold]


def _level_sentences(evidence: Evidence, group: Sequence[Answer], answers: Answers) -> list[Phrase]:
    """Return the sentences on the levels of a factor for a response.

    With more than SENTENCES_MAX levels, only the lowest and highest levels have sentences, and
    another sentence summarises the rest.
    """
    shown = list(group)
    ranked = sorted(group, key=lambda answer: answer.interval.estimate)
    if len(group) > SENTENCES_MAX:
        shown = [*ranked[:LOWEST_LISTED], *ranked[-HIGHEST_LISTED:]]
    sentences = [
        PHRASES(
            "level",
            claim=claim(evidence, answer, answers.family),
            outcome=words.OUTCOMES[answers.outcome(answer)],
        )
        for answer in shown
    ]
    if len(group) > len(shown):
        rest = ranked[LOWEST_LISTED:-HIGHEST_LISTED]
        sentences.append(_other_levels(evidence, rest, answers))
    return sentences


def _other_levels(evidence: Evidence, rest: Sequence[Answer], answers: Answers) -> Phrase:
    """Return a sentence that summarises the answers between the extremes."""
    first, response = rest[0], rest[0].response
    is_ratio = isinstance(first.result, stats.Ratio)
    outcomes = Counter(words.OUTCOMES[answers.outcome(answer)] for answer in rest)
    is_named = first.factor in evidence.study.answers.baseline
    return PHRASES(
        "other_levels",
        levels=len(rest),
        factor=words.factor_title(first.factor),
        response=response.title,
        lowest=first.interval.estimate,
        highest=rest[-1].interval.estimate,
        unit=PHRASES("times") if is_ratio else PHRASES("above", unit=f" {response.unit}".rstrip()),
        outcomes=[
            PHRASES("outcome_count", levels=count, outcome=outcome)
            for outcome, count in outcomes.most_common()
        ],
        table=PHRASES("table" if is_ratio else "table_of_differences"),
        baseline=evidence.title(first.factor, first.baseline),
        default="" if is_named else PHRASES("default_baseline"),
    )


def _ratio_figure(evidence: Evidence, computed: Sequence[Answer], answers: Answers) -> Figure:
    points: list[dict[str, Any]] = []
    for answer in _distinct(computed):
        interval = answer.interval
        first = all(p["response"] != answer.response.title for p in points)
        point: dict[str, Any] = {
            "name": _sides(evidence, answer),
            "response": answer.response.title,
            "one": 1 if first else None,
            "ratio": figures.rounded(interval.estimate),
            "low": figures.rounded(interval.low),
            "high": figures.rounded(interval.high),
        }
        if answers.margin is not None and first:
            point |= {"margin_low": 1 / (1 + answers.margin), "margin_high": 1 + answers.margin}
        points.append(point)
    has_margin = answers.margin is not None
    margin = PHRASES("caption_margin", margin=answers.margin) if has_margin else ""
    return Figure(
        "ratios",
        PHRASES("figure"),
        PHRASES("caption", confidence=CONFIDENCE, family=answers.family, margin=margin),
        figures.ratios_chart(points, answers.margin),
    )


def _sides(evidence: Evidence, answer: Answer) -> str:
    level = evidence.title(answer.factor, answer.level)
    return f"{level} / {evidence.title(answer.factor, answer.baseline)}"


def _distinct(items: Sequence[Answer]) -> list[Answer]:
    seen: dict[tuple[str, str, str], Answer] = {}
    for item in items:
        seen.setdefault((item.response.column, item.factor, str(item.level)), item)
    return sorted(seen.values(), key=lambda answer: answer.response.title)


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
            "ratio": _ratio_of(result, answer.response.share),
        }
        if isinstance(result, stats.Ratio):
            row |= {
                "outcome": words.OUTCOMES[answers.outcome(answer)],
                "level_exact": words.confidence(result.interval.level),
                "model": result.kind,
                "degrees": round(result.interval.degrees or 0),
                "runs": result.run_count,
                "blocks": result.block_count,
            }
        if answers.block_count >= RANK_BLOCKS_MIN and not isinstance(result, stats.Difference):
            row["by_ranks"] = answer.by_ranks
            if isinstance(answer.by_ranks, stats.Interval):
                row["rank_level"] = words.confidence(answer.by_ranks.level)
        if evidence.excluded.height:
            with_all = answer.with_all
            row["with_all"] = _ratio_of(with_all, answer.response.share)
        rows.append(row)
    columns = [
        Column("question", ""),
        Column("response", "response"),
        Column("factor", "factor"),
        Column("level", "level"),
        Column("baseline", "against"),
        Column("ratio", "ratio [interval]", "measured"),
        Column("outcome", "outcome"),
        Column("level_exact", "exact level"),
        Column("model", "model"),
        Column("degrees", "df", "measured"),
        Column("runs", "runs", "measured"),
        Column("blocks", "blocks", "measured"),
    ]
    if answers.block_count >= RANK_BLOCKS_MIN:
        columns.append(Column("by_ranks", "Hodges–Lehmann by ranks", "measured"))
        columns.append(Column("rank_level", "exact confidence level"))
    if evidence.excluded.height:
        columns.append(Column("with_all", "with the excluded runs", "measured"))
    note = PHRASES(
        "note",
        family=evidence.study.answers.family or PHRASES("whole_family"),
        intervals=answers.family,
        confidence=CONFIDENCE,
        registration=_registration(evidence),
    )
    elsewhere = int(evidence.went_another_way.sum())
    if elsewhere:
        note = joined([note, PHRASES("elsewhere", runs=elsewhere)])
    return Table("answers", PHRASES("table"), columns, rows, note)


def _registration(evidence: Evidence) -> Phrase:
    """Return a phrase that states whether the questions were registered before the data."""
    edits = [PHRASES("edited", files=evidence.edited)] if evidence.edited else []
    edits += [PHRASES("limits_changed")] if evidence.validity_changed else []
    if edits:
        return PHRASES("exploratory_edit", edits=edits)
    return PHRASES("exploratory_import" if evidence.imported else "registered")


def _ratio_of(result: Result, is_share: bool) -> Any:
    """Return the interval of the ratio, or the reason for a missing ratio.

    Differences have a separate table.
    """
    if isinstance(result, stats.Difference):
        return stats.NotComputable(PHRASES("share" if is_share else "no_logarithm"))
    return result.interval if isinstance(result, stats.Ratio) else result


def _head(data: PageData) -> list[HeadLine]:
    gap_sentences = unanswered.questions(data.evidence, data.answers)
    lines = [
        HeadLine(TITLE, unanswered.headline(data.evidence, data.answers)),
        HeadLine(30, " ".join(gap_sentences), page_only=True),
    ]
    if data.evidence.study.flows:  # the title has room only for what arrives and for the best
        responses = question_responses(data.evidence)
        lines.append(HeadLine(25, not_compared.headline(data.evidence, responses)))
        lines.append(HeadLine(26, not_compared.cautions(data.evidence, responses)))
    return lines


PART = PagePart(
    10,
    lambda data: [
        section(data.evidence, data.answers, data.document.values, data.joining("answers"))
    ],
    _head,
    of_messages=True,
)
