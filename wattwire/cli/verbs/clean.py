"""clean: what killed runs left behind, and old builds in the cache; listed before it goes."""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.cli.quantities import size_words
from wattwire.model.errors import EXIT_OK, UsageError
from wattwire.model.words import plural
from wattwire.rig import AgentClient, cache

WIDTH = 80
DAYS_DEFAULT = 30.0


def add_to(verbs: Any) -> None:
    """Register the verb."""
    verb = verbs.add_parser(
        "clean",
        help="remove what killed runs left, and old builds",
        description="List what runs left whose agent is gone (processes, cgroups, shared memory) "
        "and remove it after a yes. What belongs to a running campaign is never touched.",
    )
    verb.add_argument("--yes", action="store_true", help="remove without asking")
    verb.add_argument(
        "--cache",
        nargs="?",
        type=float,
        const=DAYS_DEFAULT,
        metavar="DAYS",
        help=f"also builds that nobody used for DAYS ({DAYS_DEFAULT:g}; 0: all of them)",
    )
    verb.set_defaults(call=clean)


def clean(options: argparse.Namespace) -> int:
    """Look, list, ask, remove, in this order."""
    place = cache.folder()
    old = _old(place, options.cache)
    with tempfile.TemporaryDirectory(prefix="wattwire-clean-") as state:
        agent = AgentClient(Path(state))
        try:
            found = agent.request("clean", run="", look=True)
            _list(found, old, place)
            if (found["killed"] or found["removed"] or old) and _agreed(options.yes):
                if old:
                    _refuse_used(place, agent.pid)
                done = agent.request("clean", run="")
                _tell(done, _remove(old))
        finally:
            agent.close()
    return EXIT_OK


def _old(place: Path, days: float | None) -> list[cache.Entry]:
    """Builds and blobs to be thrown away; none where --cache was not said."""
    if days is None:
        return []
    if days < 0:
        raise UsageError(f"--cache: found {days:g}; allowed: 0 days or more")
    return [entry for entry in cache.entries(place) if entry.age_days >= days]


def _list(found: Mapping[str, Any], old: list[cache.Entry], place: Path) -> None:
    processes, paths = found["killed"], found["removed"]
    if processes or paths:
        live = plural(len(processes), "process", "processes")
        files = plural(len(paths), "file or cgroup", "files and cgroups")
        print(f"Left behind by runs whose agent is gone: {live} and {files}.")
    else:
        print("Nothing is left behind by any run.")
    for pid in processes:
        print(textwrap.shorten(f"  process {pid}: {_command(pid)}", WIDTH, placeholder=" …"))
    for path in paths:
        print(f"  {path}")
    every = cache.entries(place)
    total = sum(entry.size_bytes for entry in every)
    builds = sum(entry.path.parent.name == "builds" for entry in every)
    print(f"The cache holds {plural(builds, 'build')}, {size_words(total)}: {place}")
    if old:
        size = size_words(sum(entry.size_bytes for entry in old))
        builds = sum(entry.path.parent.name == "builds" for entry in old)
        print(f"  to be thrown away: {plural(builds, 'build')} and their sources, {size}")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return "(gone meanwhile)"


def _agreed(yes: bool) -> bool:
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("Nothing was removed. To remove it: the same with --yes")
        return False
    if input("Remove it? [y/N] ").strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was removed.")
    return False


def _refuse_used(place: Path, own_pid: int) -> None:
    """A build that runs may need must stay: no cache is emptied while an agent uses it."""
    users = [pid for pid in cache.agents_using(place) if pid != own_pid]
    if users:
        raise UsageError(
            f"{place}: agents are using this cache (process {', '.join(map(str, users))}); their "
            "runs may need what would be thrown away. Nothing was removed; wait until they are "
            "done (`wattwire status DIR`)"
        )


def _remove(old: list[cache.Entry]) -> int:
    removed = 0
    for entry in old:
        if cache.remove(entry):
            removed += entry.size_bytes
    return removed


def _tell(done: Mapping[str, Any], freed_bytes: int) -> None:
    killed = plural(len(done["killed"]), "process", "processes")
    removed = plural(len(done["removed"]), "file or cgroup", "files and cgroups")
    print(f"Ended {killed}, removed {removed}, freed {size_words(freed_bytes)} of the cache.")
