"""Implement `clean`, which removes leftovers of killed runs and old builds in the cache."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.cli.quantities import size_words
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import shortened
from wattwire.model.errors import EXIT_OK, UsageError
from wattwire.model.words import plural
from wattwire.rig import AgentClient, cache

WIDTH = 80
DAYS_DEFAULT = 30.0


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(
        verbs,
        "clean",
        description="List processes, cgroups and shared memory of runs whose agent has ended, "
        "and remove them after confirmation. Running campaigns are not affected.",
    )
    verb.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    verb.add_argument(
        "--cache",
        nargs="?",
        type=float,
        const=DAYS_DEFAULT,
        metavar="DAYS",
        help=f"also remove builds unused for DAYS days ({DAYS_DEFAULT:g}); 0 removes all builds",
    )
    verb.set_defaults(call=clean)


def clean(options: argparse.Namespace) -> int:
    """List the leftovers, request confirmation, and remove them."""
    cache_folder = cache.folder()
    old_entries = _old_entries(cache_folder, options.cache)
    with tempfile.TemporaryDirectory(prefix="wattwire-clean-") as state_folder:
        agent = AgentClient(Path(state_folder))
        try:
            remains = agent.request("clean", run="", look=True)
            _list(remains, old_entries, cache_folder)
            if (remains["killed"] or remains["removed"] or old_entries) and _agreed(options.yes):
                if old_entries:
                    _refuse_used(cache_folder, agent.pid)
                cleaned = agent.request("clean", run="")
                _print_result(cleaned, _remove(old_entries))
        finally:
            agent.close()
    return EXIT_OK


def _old_entries(cache_folder: Path, days: float | None) -> list[cache.Entry]:
    """Return the builds and blobs to remove, or an empty list without --cache.

    Raises UsageError for a negative number of days.
    """
    if days is None:
        return []
    if days < 0:
        raise UsageError(f"--cache: found {days:g}; allowed: 0 days or more")
    return [entry for entry in cache.entries(cache_folder) if entry.age_days >= days]


def _list(remains: Mapping[str, Any], old_entries: list[cache.Entry], cache_folder: Path) -> None:
    processes, paths = remains["killed"], remains["removed"]
    if processes or paths:
        process_words = plural(len(processes), "process", "processes")
        path_words = plural(len(paths), "file or cgroup", "files and cgroups")
        print(f"Leftovers of runs whose agent has ended: {process_words} and {path_words}.")
    else:
        print("No leftovers of runs.")
    for pid in processes:
        print(shortened(f"  process {pid}: {_command(pid)}", WIDTH))
    for path in paths:
        print(f"  {path}")
    entries = cache.entries(cache_folder)
    total = sum(entry.size_bytes for entry in entries)
    builds = sum(entry.path.parent.name == "builds" for entry in entries)
    print(f"The cache holds {plural(builds, 'build')}, {size_words(total)}: {cache_folder}")
    if old_entries:
        size = size_words(sum(entry.size_bytes for entry in old_entries))
        builds = sum(entry.path.parent.name == "builds" for entry in old_entries)
        print(f"  to remove: {plural(builds, 'build')} and their sources, {size}")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return "(ended since)"


def _agreed(yes: bool) -> bool:
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("Nothing was removed. To remove them, repeat the command with --yes.")
        return False
    answer = input("Remove them? [y/N] ")  # waits: the answer of the user
    if answer.strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was removed.")
    return False


def _refuse_used(folder: Path, own_pid: int) -> None:
    """Raise UsageError if other agents use the cache, because their runs may need the builds."""
    users = [pid for pid in cache.agents_using(folder) if pid != own_pid]
    if users:
        raise UsageError(
            f"{folder}: agents are using this cache (process IDs: {', '.join(map(str, users))}), "
            "and their runs may need these builds. Nothing was removed. Wait until these runs have "
            "finished (`wattwire status DIR`)."
        )


def _remove(old_entries: list[cache.Entry]) -> int:
    removed_bytes = 0
    for entry in old_entries:
        if cache.remove(entry):
            removed_bytes += entry.size_bytes
    return removed_bytes


def _print_result(cleaned: Mapping[str, Any], freed_bytes: int) -> None:
    killed = plural(len(cleaned["killed"]), "process", "processes")
    removed = plural(len(cleaned["removed"]), "file or cgroup", "files and cgroups")
    print(f"Ended {killed}, removed {removed}, freed {size_words(freed_bytes)} of the cache.")
