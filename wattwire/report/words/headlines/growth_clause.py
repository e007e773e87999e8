"""The growth of the latency of a flow when other flows are sent, at the end of the headline."""

from __future__ import annotations

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE, has_few_degrees
from wattwire.analysis.flows.growth import Growth, growths
from wattwire.analysis.topics.interactions.numbers import Interactions
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "growth",
    {
        "growth": (
            "with {added:listed} also sent, the {response} changed by a factor of {ratios:listed}"
        ),
        "no_growth": (
            "with {added:listed} also sent, no change of the {response} is decided ({outcome})"
        ),
        "ratio": "{interval:estimate} ({family}{confidence:confidence} CI {interval:limits})",
        "exploratory": "{ratios:listed} (exploratory {confidence:confidence} CI)",
        "at": "{interval:interval} at {level}",
        "simultaneous": "simultaneous ",
        "no_difference": "no difference detected",
        "too_few": "too few repetitions to tell",
        "within_noise": "not larger than the A/A noise",
        "depends": "no common answer",
    },
)


def growth(answers: Answers, interactions: Interactions) -> Phrase:
    """Return the growth of each flow's median latency; "" for a study that asks for none."""
    texts = []
    for item in growths(answers, interactions):
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
        at_levels = [PHRASES("at", interval=at.interval, level=at.title) for at in of_change]
        return [PHRASES("exploratory", ratios=at_levels, confidence=CONFIDENCE)]
    if not isinstance(item.answer.result, stats.Ratio):
        return []
    if answers.outcome(item.answer) not in ("different", "equivalent"):
        return []
    if has_few_degrees(item.answer.interval.degrees):
        return []
    family = PHRASES("simultaneous") if answers.family > 1 else ""
    interval = item.answer.interval
    return [PHRASES("ratio", interval=interval, confidence=CONFIDENCE, family=family)]


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
