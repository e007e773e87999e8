"""Remarks of a study's reader on imported data."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.data_remarks.numbers import data_remarks

TOPIC = Topic(data_remarks, place=61, is_for_page=True)
