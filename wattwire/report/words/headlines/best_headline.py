"""The first sentence of the page if the study ranks alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE, has_few_degrees
from wattwire.analysis.best_alternative import Choice, mean_shares
from wattwire.analysis.dataset import Evidence, held_levels
from wattwire.analysis.flows.growth import Growth, growths
from wattwire.analysis.responses import Response
from wattwire.report.words.best_alternative import (
    NAMES_MAX,
    extreme_of,
    first_names,
    reversal_phrases,
    value_with_unit,
    worse_word,
)
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "best_headline",
    {
        # The first sentence of the page.
        "headline": (
            "{conditions}of {alternatives:plural alternative}, {no_winner}{leaders:listed}{growth}."
        ),
        "no_winner": "none is the best in all {responses:plural response}: ",
        "no_winner_at_all_levels": "none is the best at all levels of the other factors: ",
        "unranked_response": "no ranking by {response} ({reason})",
        "shares": (
            "the lowest mean {response} is {lowest:percent} ({titles:listed}) and the highest "
            "{highest:percent} ({title})"
        ),
        "and_growth": "; {growth}",
        "growth": (
            "with {added:listed} also sent, the {response} changed by a factor of {ratios:listed}"
        ),
        "no_growth": (
            "with {added:listed} also sent, no change of the {response} is decided ({outcome})"
        ),
        "growth_ratio": (
            "{interval:estimate} ({family}{confidence:confidence} CI {interval:limits})"
        ),
        "growth_exploratory": "{ratios:listed} (exploratory {confidence:confidence} CI)",
        "growth_at": "{interval:interval} at {level}",
        "simultaneous": "simultaneous ",
        "no_difference": "no difference detected",
        "too_few": "too few repetitions to tell",
        "within_noise": "not larger than the A/A noise",
        "depends": "no common answer",
        "with_conditions": "With {conditions:listed}, ",
        "in_these_runs": "In these runs, ",
        "literal": "“{literal}”",
        "leader": "{leader} had the {extreme} {response} ({comparison})",
        "same_leader": "the {extreme} {response} ({comparison})",
        "mean_value": "{value} on average over {treatments:plural treatment}",
        "equal": "equivalent within {margin:percent}: {titles:listed}",
        "none_equal": "equivalent within {margin:percent}: none",
        "not_higher": "not significantly {worse}: {titles:listed}",
        "times": "{worse} by a factor of: {alternatives:listed}",
        "ratio_of": "{title} {ratio:number}",
        "every_other": "all others: {worse} by a factor of {ratios}",
        "others_higher": "{alternatives} others: {worse} by a factor of {ratios}",
        "ratio": "{ratio:number}",
        "not_best_at": "but {levels:listed}",
    },
)

EQUAL_SHARES = 0.001
"""Smallest difference of two mean shares that decides between alternatives."""
BEST_GROUPS = ("lowest", "equal")
NAMES_MAX_EACH = 3
"""Maximum number of alternatives that the sentence names in each of several responses."""
CONDITIONS = ("payload_bytes", "literal", "clients", "rate_hz", "interval_s")


def headline(evidence: Evidence, choices: Sequence[Choice], growth: str = "") -> Phrase:
    """Return a sentence on all responses, or "" if no response can be compared.

    A ranking whose error has few degrees of freedom is in the table only.

    `growth` is a clause on the growth of latency, with which the sentence ends.
    """
    choices = [choice for choice in choices if not has_few_degrees(choice.degrees)]
    compared = [choice for choice in choices if choice.placed]
    if not compared:
        return Phrase()
    most = NAMES_MAX if len(choices) == 1 else NAMES_MAX_EACH
    clauses = []
    previous = ""
    for choice in compared:
        leader, response = choice.placed[0].title, choice.response
        extreme, title = extreme_of(response), response.title
        comparison = _comparison_with_best(evidence, choice, most)
        clauses.append(
            PHRASES("same_leader", extreme=extreme, response=title, comparison=comparison)
            if leader == previous
            else PHRASES(
                "leader", leader=leader, extreme=extreme, response=title, comparison=comparison
            )
        )
        previous = leader
    clauses += [
        PHRASES("unranked_response", response=choice.response.title, reason=choice.why_not)
        for choice in choices
        if not choice.placed
    ]
    shares = mean_shares(evidence)
    share_clauses = [clause for item in shares.items() if (clause := _shares_clause(*item))]
    clauses += share_clauses
    has_winner = len(choices) == len(compared) and _wins_all(compared, shares)
    no_winner = Phrase()
    if not has_winner:
        no_winner = PHRASES("no_winner", responses=len(choices) + len(share_clauses))
    elif any(choice.reversals for choice in compared):
        no_winner = PHRASES("no_winner_at_all_levels")
    return PHRASES(
        "headline",
        conditions=_conditions(evidence),
        alternatives=len(compared[0].placed),
        no_winner=no_winner,
        leaders=clauses,
        growth=PHRASES("and_growth", growth=growth) if growth else "",
    )


def _wins_all(compared: Sequence[Choice], shares: Mapping[Response, Mapping[str, float]]) -> bool:
    """Return whether one alternative is the best in each ranked response and in each share.

    An alternative that is equivalent to the best counts as the best, but it must lead somewhere.
    """
    leaders = {choice.placed[0].title for choice in compared}
    for choice in compared:
        leaders &= {placed.title for placed in choice.placed if placed.group in BEST_GROUPS}
    return any(
        all(
            leader in means and means[leader] - min(means.values()) < EQUAL_SHARES
            for means in shares.values()
        )
        for leader in leaders
    )


def _shares_clause(response: Response, means: Mapping[str, float]) -> Phrase:
    """Return the alternatives with the lowest and with the highest share; "" if all are equal."""
    lowest, highest = min(means.values()), max(means.values())
    if highest - lowest < EQUAL_SHARES:
        return Phrase()
    titles = [title for title, mean in means.items() if mean - lowest < EQUAL_SHARES]
    return PHRASES(
        "shares",
        response=response.title,
        lowest=lowest,
        titles=first_names(titles),
        highest=highest,
        title=max(means, key=lambda title: means[title]),
    )


def growth(evidence: Evidence, answers: Answers) -> Phrase:
    """Return the growth of each flow's median latency; "" for a study that asks for none."""
    texts = []
    for item in growths(evidence, answers):
        ratios, response = _growth_ratios(answers, item), item.answer.response.title
        texts.append(
            PHRASES("growth", added=item.added, response=response, ratios=ratios)
            if ratios
            else PHRASES(
                "no_growth",
                added=item.added,
                response=response,
                outcome=_growth_outcome(answers, item.answer),
            )
        )
    return joined(texts, "; ")


def _growth_ratios(answers: Answers, item: Growth) -> list[Phrase]:
    """Return the ratios at the levels that change the growth, or the decided ratio over them."""
    of_change = item.change.levels if item.change else ()
    if any(has_few_degrees(at.interval.degrees) for at in of_change):
        return []
    if item.change is not None:
        at_levels = [PHRASES("growth_at", interval=at.interval, level=at.title) for at in of_change]
        return [PHRASES("growth_exploratory", ratios=at_levels, confidence=CONFIDENCE)]
    if not isinstance(item.answer.result, stats.Ratio):
        return []
    if answers.outcome(item.answer) not in ("different", "equivalent"):
        return []
    if has_few_degrees(item.answer.interval.degrees):
        return []
    family = PHRASES("simultaneous") if answers.family > 1 else ""
    interval = item.answer.interval
    return [PHRASES("growth_ratio", interval=interval, confidence=CONFIDENCE, family=family)]


def _growth_outcome(answers: Answers, answer: Answer) -> str:
    """Return the outcome in the words of the table, or the reason for the lack of a number."""
    if not isinstance(answer.result, NUMBER):
        return str(answer.result)
    if has_few_degrees(answer.interval.degrees):
        return PHRASES("too_few")
    outcome = answers.outcome(answer)
    if outcome == "depends":
        return PHRASES("depends")
    return PHRASES("within_noise") if outcome == "within noise" else PHRASES("no_difference")


def _conditions(evidence: Evidence) -> Phrase:
    """Describe the main fixed conditions, such as payload, clients and rate."""
    held = held_levels(evidence)
    conditions = []
    for name in CONDITIONS:
        hidden = name == "payload_bytes" and held.get("literal")
        if name in evidence.varied or held.get(name) in (None, "") or hidden:
            continue
        value = held[name]
        conditions.append(
            PHRASES("literal", literal=value) if name == "literal" else evidence.title(name, value)
        )
    if not conditions:
        return PHRASES("in_these_runs")
    return PHRASES("with_conditions", conditions=conditions)


def _comparison_with_best(evidence: Evidence, choice: Choice, most: int) -> Phrase:
    lowest, worse = choice.placed[0], worse_word(choice.response)
    value = value_with_unit(choice.response, lowest.typical)
    # No single treatment has the mean of several.
    averaged = PHRASES("mean_value", value=value, treatments=lowest.treatments)
    texts = [averaged if lowest.treatments > 1 else value]
    margin = evidence.study.answers.margin
    if margin is not None:
        equal = first_names(choice.titles("equal"), most)
        texts.append(
            PHRASES("equal", margin=margin, titles=equal)
            if equal
            else PHRASES("none_equal", margin=margin)
        )
    if choice.titles("open"):
        open_titles = first_names(choice.titles("open"), most)
        texts.append(PHRASES("not_higher", titles=open_titles, worse=worse))
    higher_placed = [placed for placed in choice.placed if placed.group == "higher"]
    ratios = [placed.over_lowest for placed in higher_placed]
    if 0 < len(ratios) <= most:
        alternatives = [
            PHRASES("ratio_of", title=placed.title, ratio=placed.over_lowest)
            for placed in higher_placed
        ]
        texts.append(PHRASES("times", alternatives=alternatives, worse=worse))
    elif ratios:
        extremes = joined(
            dict.fromkeys(PHRASES("ratio", ratio=ratio) for ratio in (min(ratios), max(ratios))),
            " to ",
        )
        texts.append(
            PHRASES("every_other", ratios=extremes, worse=worse)
            if len(texts) == 1
            else PHRASES("others_higher", alternatives=len(ratios), ratios=extremes, worse=worse)
        )
    if choice.reversals:
        texts.append(PHRASES("not_best_at", levels=reversal_phrases(evidence, choice)))
    return joined(texts, "; ")
