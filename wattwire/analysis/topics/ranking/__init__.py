"""Best alternative of the study in each response, and the order of all alternatives."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.ranking.numbers import ranking, stored

TOPIC = Topic(ranking, place=40, section="answers", stored=stored, uses=("contrasts",))
