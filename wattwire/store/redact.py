"""Redact names of people and machines: host names, user names, home folders, addresses."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wattwire.model.errors import UsageError
from wattwire.store.files import regular, write_atomically

NOTE = "redact.json"
"""The campaign's file of names that a bundle must not contain; the file itself is omitted, too."""
SYSTEM_FOLDERS = frozenset(
    {"", "/usr", "/usr/local", "/usr/bin", "/opt", "/tmp", "/var", "/var/tmp", "/etc", "/home"}
)
"""Folders that exist on every machine and so do not identify a person or machine."""

IMPERSONAL = frozenset({"root", "localhost", "nobody", "user", "host", "localdomain", ""})
"""Names that do not identify a person or machine, and whose redaction would damage ordinary text.
"""

# Six pairs of hexadecimal digits. A longer chain of pairs is a hash or a key.
_PAIR = "[0-9A-Fa-f]{2}"
_MAC = re.compile(rf"(?<![0-9A-Fa-f:-]){_PAIR}([:-])(?:{_PAIR}\1){{4}}{_PAIR}(?![0-9A-Fa-f:-])")
_MAC_BYTES = re.compile(rb"(?<![0-9A-Fa-f:-])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![0-9A-Fa-f:-])")
# Without privacy extensions, a link-local address contains the MAC address.
_LINK_LOCAL = re.compile(r"(?i)\bfe80::[0-9a-f:]+(?:%[\w.-]+)?")
_HOMES = re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s\"'<>:,;)\]}]+")

REDACTED = "[redacted]"
_SECRET_WORD = (
    r"(?:passw(?:or)?d|passphrase|(?<![A-Za-z])pass(?![A-Za-z])|secret|token"
    r"|(?:api|access|private)[-_]?key|credential)"
)
SECRET_NAME = re.compile(rf"-{{0,2}}[\w-]*{_SECRET_WORD}[\w-]*", re.IGNORECASE)
"""Names of options and variables whose values are probably secrets."""
_SECRETS = re.compile(
    rf"(?P<name>[\w-]*{_SECRET_WORD}[\w-]*)=([^\s\"'&]{{4,}})|\w://[^/\s:@\"']+:([^/\s@\"']+)@"
    r"|\b(?:bearer|authorization:\s*basic)\s+([\w.~+/=-]{8,})"
    rf"|(?P<option>--?[\w-]*{_SECRET_WORD}[\w-]*)\s+([^\s\"'&-][^\s\"'&]{{3,}})"
    r"|(?<!\S)(?:-u|--user)[\s=][^\s:\"']+:([^\s\"']+)"
    r"|\b((?:AKIA[0-9A-Z]{12}|gh[pousr]_\w{16}|sk-[\w-]{16}|xox[abp]-[\w-]{10})[\w-]*)",
    re.IGNORECASE,
)
_RUN_TOKEN = re.compile(r"ww[0-9a-f]{10}\w*")
SHOWN = 3
"""Number of characters of a suspected secret that a warning shows."""


@dataclass(frozen=True)
class Names:
    """The names that a bundle must not contain."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Further words that the user wants redacted."""
    places: tuple[tuple[str, str], ...] = ()
    """Folders of the measuring machine, each with its replacement."""
    meters: tuple[str, ...] = ()
    """Addresses of meters outside the machine, and their parts, as whole words."""
    boots: tuple[str, ...] = ()
    """Identifiers of its boots; each is replaced by a digest, so that boots remain distinct."""

    def and_those(self, other: Names) -> Names:
        """Return the union of these names and `other`."""
        union = {
            member.name: tuple(
                dict.fromkeys(getattr(self, member.name) + getattr(other, member.name))
            )
            for member in fields(self)
        }
        return Names(**union)


def names_here(words: Iterable[str] = ()) -> Names:
    """Return the names of this machine and its user, and the words that the user added."""
    host = socket.gethostname()
    hosts = {host, host.split(".")[0]}
    users, homes = set(), {os.environ.get("HOME", ""), str(Path.home())}
    for variable in ("USER", "LOGNAME", "SUDO_USER"):
        users.add(os.environ.get(variable, ""))
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        pass  # the user of a container may have no name
    else:
        users |= {entry.pw_name, entry.pw_gecos.split(",")[0]}
        homes.add(entry.pw_dir)
    return Names(
        tuple(sorted(hosts - IMPERSONAL)),
        tuple(sorted(users - IMPERSONAL)),
        tuple(sorted(homes - {"", "/"}, key=len, reverse=True)),
        tuple(sorted(set(words) - {""})),
    )


def note_names(folder: Path, places: Mapping[str, str], meters: Iterable[str] = ()) -> None:
    """Store the names of this machine in a campaign, which may be bundled on another machine.

    `places` maps folders of this machine to their replacements. `meters` are addresses and
    their parts. Names that earlier machines stored are preserved. The file itself is never bundled.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    boots = (boot.read_text().strip(),) if boot.is_file() else ()
    words_by_path = {str(place).rstrip("/"): word for place, word in places.items()}
    names = replace(
        names_here(),
        meters=tuple(meters),
        places=tuple((p, w) for p, w in words_by_path.items() if p not in SYSTEM_FOLDERS),
        boots=boots,
    )
    names = (names_noted(folder) or Names()).and_those(names)
    write_atomically(folder / NOTE, json.dumps(asdict(names), indent=1).encode())


def names_noted(folder: Path) -> Names | None:
    """Return the names that were stored when the campaign was measured; None without names."""
    try:
        document = json.loads(regular(folder / NOTE).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{folder / NOTE}: damaged, not valid JSON ({error})") from error
    names: dict[str, tuple[Any, ...]] = {}
    for member in fields(Names):
        values = document.get(member.name, []) if isinstance(document, dict) else [None]
        if member.name == "places" and isinstance(values, list):
            values = [tuple(pair) if isinstance(pair, list) else pair for pair in values]
            valid = all(
                isinstance(p, tuple) and len(p) == 2 and all(map(_is_name, p)) for p in values
            )
        else:
            valid = isinstance(values, list) and all(map(_is_name, values))
        if not valid:
            raise UsageError(f"{folder / NOTE}: {member.name}: damaged; found {values!r}")
        names[member.name] = tuple(values)
    return Names(**names)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


@dataclass
class Redactor:
    """Replaces names in texts and counts the replacements."""

    names: Names
    replacements: dict[str, int] = field(default_factory=dict)
    secrets: dict[str, int] = field(default_factory=dict)
    """Texts that look like secrets, shortened, with their numbers. They are not replaced."""
    secret_places: dict[str, list[str]] = field(default_factory=dict)
    """The names of the files with each of these texts."""
    place: str = ""
    """The name of the file whose texts are redacted now."""

    def __post_init__(self) -> None:
        rules: list[tuple[str, re.Pattern[str], str]] = []
        folders = [("place", place, word) for place, word in self.names.places]
        folders += [("home", home, "~") for home in self.names.homes]
        for kind, folder, word in sorted(folders, key=lambda rule: -len(rule[1])):
            rules.append((kind, _path(folder), word))  # a home may be inside a place or contain it
        rules += [("boot", re.compile(re.escape(b), re.I), _boot_word(b)) for b in self.names.boots]
        rules.append(("home", _HOMES, "~"))
        words = dict.fromkeys(form for word in self.names.words for form in _forms(word))
        rules += [("word", re.compile(re.escape(word)), REDACTED) for word in words]
        of_meters = dict.fromkeys(form for at in self.names.meters for form in _forms(at))
        rules += [("word", _whole(at), REDACTED) for at in of_meters]
        rules += [
            ("host", _word(host), "[host]") for host in sorted(self.names.hosts, key=len)[::-1]
        ]
        rules += [("user", _word(user), "[user]") for user in self.names.users]
        rules += [("address", _MAC, "[mac]"), ("address", _LINK_LOCAL, "[link-local]")]
        self._rules = rules

    def text(self, text: str) -> str:
        """Return the text with all names replaced."""
        for kind, pattern, replacement in self._rules:
            text, count = pattern.subn(replacement, text)
            if count:
                self.replacements[kind] = self.replacements.get(kind, 0) + count
        for match in _SECRETS.finditer(text):
            name = match["name"] or match["option"] or ""
            values = (value for value in match.groups() if value and value != name)
            self.suspect(name, next(values, match[0]))
        return text

    def suspect(self, name: str, value: str) -> None:
        """Count a value that looks like a secret by its form or by its name, such as PASSWORD."""
        is_run_token = _RUN_TOKEN.fullmatch(value) is not None
        if value and value != REDACTED and not is_run_token:
            shown = f"{name}={value[:SHOWN]}…" if name else f"{value[:SHOWN]}…"
            self.secrets[shown] = self.secrets.get(shown, 0) + 1
            places = self.secret_places.setdefault(shown, [])
            if self.place and self.place not in places:
                places.append(self.place)

    def is_in(self, data: bytes) -> bool:
        """Return whether binary data contain one of the names."""
        names = (*self.names.homes, *self.names.hosts, *self.names.users, *self.names.words)
        names += self.names.meters
        names += (*(place for place, _ in self.names.places), *self.names.boots)
        # Sequences of three letters occur by chance in compressed data.
        long = [name.encode() for name in names if len(name) > 3]
        return any(name in data for name in long) or _MAC_BYTES.search(data) is not None


def _forms(word: str) -> list[str]:
    """Return the word as it appears in plain text, JSON, TOML, a shell command or a URL.

    The longest form comes first, because one form can be part of another.
    """
    quoted = {json.dumps(word, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    shell = word.replace("'", "'\"'\"'")
    return sorted({word, shell, quote(word), quote(word, safe=""), *quoted}, key=len)[::-1]


def _boot_word(boot: str) -> str:
    return f"boot-{hashlib.sha256(boot.encode()).hexdigest()[:12]}"


def _word(name: str) -> re.Pattern[str]:
    """Return a pattern for a name as a whole word: `pi` does not match `pipeline` or `pi_2`."""
    return re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])", re.IGNORECASE)


def _whole(word: str) -> re.Pattern[str]:
    """Return a pattern for a whole word: `lab` does not match `collaborate`.

    A word that begins or ends with another character, such as a path, has no boundary there.
    """
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!\w)" if re.search(r"\w$", word) else ""
    return re.compile(before + re.escape(word) + after)


def _path(home: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(home.rstrip('/'))}(?![\w.-])")
