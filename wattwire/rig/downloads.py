"""Recognise builds that failed because the network or a registry of packages did not answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LOG = re.compile(r"; the end of (?P<path>[^\n]+):\n(?P<text>.*)", re.DOTALL)
"""What the agent appends to the message of a failed build."""
COMMAND = re.compile(r"^(?:\[\d+/\d+\]|\$) (?P<command>\S.*)$", re.MULTILINE)
"""A line of the log with a command: one of the manifest, or one that a script of it starts."""
NO_ANSWER = re.compile(
    r"Temporary failure in name resolution|Name or service not known|EAI_AGAIN|ENOTFOUND"
    r"|no such host|Unknown ?host\w*|Could not resolve host(?:name)?|Network is unreachable"
    r"|No route to host|i/o timeout|Connection timed out|(?:Read|Connect)TimeoutError|ETIMEDOUT"
    r"|ECONNREFUSED|Connection refused",
    re.IGNORECASE,
)
"""The words of pip, Cargo, npm, Go, Maven, RubyGems, Git and curl without a network."""
COMMAND_LENGTH_MAX = 100


@dataclass(frozen=True)
class UnansweredDownload:
    """The command that got no answer, with file names instead of paths, and its words for it."""

    command: str
    reason: str
    log: str


def unanswered_download(message: str) -> UnansweredDownload | None:
    """Return the download without an answer that the message of a failed build shows, or None.

    Only the output of the last command counts, because the commands before it succeeded.
    """
    log = LOG.search(message)
    if log is None:
        return None
    commands = list(COMMAND.finditer(log["text"]))
    reason = NO_ANSWER.search(log["text"], commands[-1].end() if commands else 0)
    if reason is None:
        return None
    words = commands[-1]["command"].split() if commands else ["the build"]
    command = " ".join(Path(word).name if word.startswith("/") else word for word in words)
    if len(command) > COMMAND_LENGTH_MAX:
        command = f"{command[:COMMAND_LENGTH_MAX].rpartition(' ')[0]} …"
    return UnansweredDownload(command, reason[0], log["path"])
