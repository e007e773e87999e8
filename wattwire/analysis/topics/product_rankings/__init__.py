"""Rankings of treatments by the product of two responses, such as energy and delay."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.product_rankings.numbers import product_rankings

TOPIC = Topic(product_rankings, place=5, section="requested-tables", is_for_page=True)
