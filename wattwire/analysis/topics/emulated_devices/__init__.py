"""Devices that an emulator executed, which no other section compares."""

from __future__ import annotations

from wattwire.analysis.topics import Topic
from wattwire.analysis.topics.emulated_devices.numbers import emulated_devices

TOPIC = Topic(emulated_devices, place=105, is_for_page=True)
