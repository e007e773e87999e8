"""Compare two levels in all responses: whether one is better in all, or in which ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.dataset import same_level

LEVEL, BASELINE = "level", "baseline"
HIGHER_SIDES = {"higher level": LEVEL, "higher baseline": BASELINE}
"""Group of the responses that are higher on one side, and that side."""
GROUPS = (
    LEVEL, BASELINE, *HIGHER_SIDES, "equivalent", "undecided", "within noise", "depends", "never",
    "unknown",
)  # fmt: skip
"""Groups of responses in the order of the headline."""


@dataclass(frozen=True)
class ResponseGroup:
    """The responses of a group. `side` is the level that is better or higher in them, or ""."""

    group: str
    responses: tuple[str, ...]
    side: str = ""


@dataclass(frozen=True)
class Winner:
    """The comparison of two levels in `responses` responses, by groups.

    `winner` is the level that is better in `better` of them, and `loser` the other. They are "" if
    each level is better in one, if none is, or if the better direction of a response is unknown.
    """

    level_title: str
    baseline_title: str
    responses: int
    groups: tuple[ResponseGroup, ...]
    winner: str = ""
    loser: str = ""
    better: int = 0

    @property
    def has_direction(self) -> bool:
        """Whether the better direction of each response is known."""
        return not any(item.group in HIGHER_SIDES for item in self.groups)

    @property
    def has_better(self) -> bool:
        """Whether a level is better in any response."""
        return any(item.group in (LEVEL, BASELINE) for item in self.groups)


@dataclass(frozen=True)
class ExactShare:
    """A share that differs without scatter between blocks, with its values as a reason."""

    response_title: str
    reason: str


def _same_pair(answers: Answers, first: Answer) -> list[Answer]:
    """Return one answer per response, in the study's order, on the two levels of `first`."""
    by_response = {
        item.response: item
        for item in reversed(answers.items)
        if item.factor == first.factor
        and same_level(item.level, first.level)
        and same_level(item.baseline, first.baseline)
    }
    in_order = dict.fromkeys(item.response for item in answers.items)
    return [by_response[response] for response in in_order if response in by_response]


def winner_of(answers: Answers, first: Answer) -> Winner | None:
    """Return the comparison of the two levels of `first` in all responses.

    The result is None if they are compared in one response only.
    """
    items = _same_pair(answers, first)
    if len(items) < 2:
        return None
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(_group(answers, item), []).append(item.response.title)
    titles = {LEVEL: first.level_title, BASELINE: first.baseline_title}
    both = (first.level_title, first.baseline_title)
    if any(side in groups for side in HIGHER_SIDES):
        # Without the better direction of a response, no level is better in all responses.
        return Winner(*both, len(items), _response_groups(groups, titles))
    responses = len(items) - len(groups.get("never", ()))  # what never occurred has no better side
    if responses < 2:
        return None
    sides = [side for side in titles if side in groups]
    if len(sides) != 1:
        return Winner(*both, responses, _response_groups(groups, titles))
    (side,) = sides
    better = len(groups.pop(side))
    loser = titles[BASELINE if side == LEVEL else LEVEL]
    others = _response_groups(groups, titles)
    return Winner(*both, responses, others, titles[side], loser, better)


def _response_groups(
    groups: Mapping[str, Sequence[str]], titles: Mapping[str, str]
) -> tuple[ResponseGroup, ...]:
    """Return the groups in order, with the title of the better or the higher level."""
    return tuple(
        ResponseGroup(group, tuple(groups[group]), titles.get(HIGHER_SIDES.get(group, group), ""))
        for group in GROUPS
        if group in groups
    )


def _group(answers: Answers, item: Answer) -> str:
    """Return LEVEL or BASELINE for the better side, or why neither is better.

    If the better direction is unknown, the result is the key of the higher side in HIGHER_SIDES.
    """
    result = item.result
    if isinstance(result, stats.Exact):
        if result.level == result.baseline:
            return "equivalent"
        is_higher = result.level > result.baseline
    elif isinstance(result, stats.Never):
        return "never"
    elif not isinstance(result, NUMBER):
        return "unknown"
    else:
        outcome = answers.outcome(item)
        if outcome != "different":
            return outcome
        is_higher = result.interval.estimate > (1 if isinstance(result, stats.Ratio) else 0)
    if not item.response.direction:
        return "higher level" if is_higher else "higher baseline"
    return LEVEL if is_higher == item.response.more_is_better else BASELINE


def exact_shares(answers: Answers, first: Answer) -> Iterator[ExactShare]:
    """Yield each share of this pair of levels that differs without scatter between blocks.

    Such a share has no interval, but the loss of every run precedes the times of what arrived.
    """
    for item in _same_pair(answers, first):
        if isinstance(item.result, stats.Exact) and item.result.level != item.result.baseline:
            yield ExactShare(item.response.title, str(item.result))
