"""Taking out of text what names a person or a machine: host name, user name, homes, addresses."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

IMPERSONAL = frozenset({"root", "localhost", "nobody", "user", "host", "localdomain", ""})
"""Names that tell nothing, and that would tear holes into ordinary text."""

# Six pairs of hexadecimal digits; a longer chain of pairs is a hash or a key, not an address.
_PAIR = "[0-9A-Fa-f]{2}"
_MAC = re.compile(rf"(?<![0-9A-Fa-f:-]){_PAIR}([:-])(?:{_PAIR}\1){{4}}{_PAIR}(?![0-9A-Fa-f:-])")
_MAC_BYTES = re.compile(rb"(?<![0-9A-Fa-f:-])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![0-9A-Fa-f:-])")
# A link-local address is made from the MAC address unless privacy extensions are on.
_LINK_LOCAL = re.compile(r"(?i)\bfe80::[0-9a-f:]+(?:%[\w.-]+)?")
_HOMES = re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s\"'<>:,;)\]}]+")


@dataclass(frozen=True)
class Names:
    """What must not be left in a bundle."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Anything else that the user asked to be taken out."""


def names_here(words: Iterable[str] = ()) -> Names:
    """The names of this machine and of who uses it, with what the user adds."""
    host = socket.gethostname()
    hosts = {host, host.split(".")[0]}
    users, homes = set(), {os.environ.get("HOME", ""), str(Path.home())}
    for variable in ("USER", "LOGNAME", "SUDO_USER"):
        users.add(os.environ.get(variable, ""))
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        pass  # a container's user may have no name
    else:
        users |= {entry.pw_name, entry.pw_gecos.split(",")[0]}
        homes.add(entry.pw_dir)
    return Names(
        tuple(sorted(hosts - IMPERSONAL)),
        tuple(sorted(users - IMPERSONAL)),
        tuple(sorted(homes - {"", "/"}, key=len, reverse=True)),
        tuple(sorted(set(words) - {""})),
    )


@dataclass
class Redactor:
    """Replaces names in text and counts what it found."""

    names: Names
    found: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rules: list[tuple[str, re.Pattern[str], str]] = []
        rules += [("home", _path(home), "~") for home in self.names.homes]
        rules.append(("home", _HOMES, "~"))
        rules += [("word", re.compile(re.escape(word)), "[redacted]") for word in self.names.words]
        rules += [
            ("host", _word(host), "[host]") for host in sorted(self.names.hosts, key=len)[::-1]
        ]
        rules += [("user", _word(user), "[user]") for user in self.names.users]
        rules += [("address", _MAC, "[mac]"), ("address", _LINK_LOCAL, "[link-local]")]
        self._rules = rules

    def text(self, text: str) -> str:
        """The text without names."""
        for kind, pattern, instead in self._rules:
            text, count = pattern.subn(instead, text)
            if count:
                self.found[kind] = self.found.get(kind, 0) + count
        return text

    def is_in(self, data: bytes) -> bool:
        """Whether bytes that are no text hold one of the names."""
        names = (*self.names.homes, *self.names.hosts, *self.names.users, *self.names.words)
        # Three letters turn up in any compressed data by chance.
        long = [name.encode() for name in names if len(name) > 3]
        return any(name in data for name in long) or _MAC_BYTES.search(data) is not None


def _word(name: str) -> re.Pattern[str]:
    """A name as a word of its own: `pi` is not taken out of `pipeline` or `pi_2`."""
    return re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])", re.IGNORECASE)


def _path(home: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(home.rstrip('/'))}(?![\w.-])")
