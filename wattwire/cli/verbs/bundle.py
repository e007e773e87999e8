"""Implement `bundle`, which archives a campaign without the names of people and machines."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wattwire import __version__
from wattwire.cli.quantities import size_words
from wattwire.cli.verbs import add_verb
from wattwire.cli.verbs.report import stamps_of
from wattwire.model.errors import EXIT_OK, UsageError
from wattwire.model.words import listed_first, plural
from wattwire.store import open_campaign
from wattwire.store.bundle import COMMANDS, Bundled, bundle
from wattwire.store.imported import DOCUMENT as IMPORT_DOCUMENT
from wattwire.store.redact import Names, Redactor, names_here, names_noted

COMMANDS_MAX = 40
"""Maximum number of command lines that are printed; commands.txt in the archive has all."""
PLACES_MAX = 4
"""Maximum number of files that the warning names for each secret."""


def add_to(verbs: Any) -> None:
    """Register the command and its options."""
    verb = add_verb(
        verbs,
        "bundle",
        description="Writes a ZIP archive of a campaign's data, study, machine and logs with "
        "checksums and a guide. It removes host names, users, home folders and "
        "hardware addresses of this machine and of the measuring machine, and omits "
        "private keys. --redact removes further words. It warns of texts that look like "
        "secrets, but does not remove them.",
    )
    verb.add_argument("campaign", metavar="DIR", help="a campaign")
    verb.add_argument("-o", "--out", metavar="FILE", help="the archive (default: DIR.zip)")
    verb.add_argument(
        "--without-messages", action="store_true", help="leave out the tables of messages"
    )
    verb.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="WORD",
        help="an additional word to redact in all files (repeatable)",
    )
    verb.add_argument(
        "--author",
        action="append",
        default=[],
        metavar="NAME",
        dest="authors",
        help='author of the data for CITATION.cff, as "Family, Given" (repeatable)',
    )
    verb.set_defaults(call=write_bundle)


def write_bundle(options: argparse.Namespace) -> int:
    """Write the archive, and print its contents and the omitted files.

    Raises UsageError if the campaign's folder does not exist.
    """
    folder = Path(options.campaign)
    if not folder.is_dir():
        raise UsageError(f"{folder}: this folder does not exist")
    default_target = folder.resolve().with_name(folder.resolve().name + ".zip")
    target = Path(options.out) if options.out else default_target
    noted_names = names_noted(folder)
    redactor = Redactor(names_here(options.redact).and_those(noted_names or Names()))
    texts, warnings, notes = _print_texts(folder, options.authors, redactor)
    with_messages = not options.without_messages
    bundled = bundle(folder, target, redactor, __version__, with_messages, texts, warnings)
    print(f"{bundled.files} files in {size_words(bundled.bytes)}: {bundled.path}")
    replacements = ", ".join(f"{kind} {count}×" for kind, count in sorted(bundled.redacted.items()))
    print(f"Redacted: {replacements or 'nothing'}.")
    for name in bundled.left_out:
        print(f"Omitted: {name}")
    if noted_names is None and not (folder / IMPORT_DOCUMENT).exists():
        print(
            "The data do not name the measuring machine, so only the names of this machine were "
            "redacted. Use --redact to redact others."
        )
    for line in command_lines(bundled):
        print(line)
    for line in secret_lines(redactor, folder):
        print(line)
    for note in [*warnings, *notes]:
        print(note)
    return EXIT_OK


def command_lines(bundled: Bundled) -> Iterator[str]:
    """Yield the command lines in the archive, because no pattern recognizes every secret."""
    lines = sorted(bundled.commands.items())
    if not lines:
        return
    yield (
        f"Command lines in the archive ({plural(len(lines), 'line')}, in {COMMANDS}, with the "
        "number of runs). If one contains a secret, write the archive again with --redact SECRET:"
    )
    for line, count in lines[:COMMANDS_MAX]:
        yield f"  {count}× {line}"
    if len(lines) > COMMANDS_MAX:
        yield f"  and {len(lines) - COMMANDS_MAX} more in {COMMANDS}"


def secret_lines(redactor: Redactor, folder: Path) -> Iterator[str]:
    """Yield a warning of the texts in the archive that look like secrets."""
    if redactor.secrets:
        listed = "; ".join(
            f"{text} ({count}×, {listed_first(redactor.secret_places[text], PLACES_MAX)})"
            for text, count in redactor.secrets.items()
        )
        yield (
            f"Warning: the archive contains texts that look like secrets: {listed}. Command lines "
            f"and environments are data: wattwire show {shlex.quote(str(folder))} RUN --commands "
            "prints those of a run. Write the archive again with --redact SECRET for each."
        )


def _print_texts(
    folder: Path, authors: Sequence[str], redactor: Redactor
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return texts to archive with the data, warnings about the data, and notes."""
    from wattwire.model.words import edited_words  # noqa: PLC0415 - as above
    from wattwire.report.print import publish  # noqa: PLC0415 - statistics are slow to import

    for author in authors:
        publish.parse_author(author)  # reject a malformed name before the campaign is read
    if not (folder / "plan.json").is_file():
        return {}, [], []
    campaign = open_campaign(folder)
    try:
        journal = getattr(campaign, "journal", None)
        identity = (journal.get("identity") or {}) if journal else {}
        study = str(identity.get("study", ""))
        texts = publish.documents(campaign, authors, study, redactor.text)
        edited = edited_words(getattr(campaign, "edited", ()))
    finally:
        campaign.close()
    warnings = [*([edited] if edited else []), *_judged_again(folder)]
    return texts, warnings, [] if authors else [f"{publish.UNSIGNED}."]


def _judged_again(folder: Path) -> list[str]:
    """Return a warning if the campaign's page and the archived files have different verdicts."""
    from wattwire.report.topic_page import Sentences  # noqa: PLC0415 - slow to import

    judged_again = Sentences("validity").judged_again()
    stamps = stamps_of(folder / "report" / "index.html").splitlines()
    return [
        f"The page of these data states: “{stamp}” This bundle and its texts use the verdicts as "
        "measured. To write that page from the unpacked folder, use `wattwire report` with the "
        "same --validity."
        for stamp in stamps
        if stamp.startswith(judged_again)
    ]
