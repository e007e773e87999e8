"""Datagrams that the kernel dropped because the buffer of their socket was full."""

from __future__ import annotations

from wattwire.analysis.topics.findings.detector import Detector
from wattwire.analysis.topics.findings.socket_buffers.numbers import socket_buffers

DETECTOR = Detector(socket_buffers, place=39)
