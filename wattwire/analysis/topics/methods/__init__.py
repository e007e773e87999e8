"""Methods section of a paper; `bundle` prints it, and no page."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.methods.numbers import methods

TOPIC = Topic(
    methods, place=0, section="methods.tex", is_for_page=True,
    uses=("contrasts", "comparison", "design"),
)  # fmt: skip
