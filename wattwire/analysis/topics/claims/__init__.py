"""Claims of a publication, which the campaign's runs show, refute or leave open."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.claims.numbers import claims, stored

TOPIC = Topic(claims, place=12, stored=stored, uses=("contrasts",))
