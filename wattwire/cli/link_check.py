"""Check links and print the results."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from wattwire.catalog import Catalog
from wattwire.catalog.links import links_like
from wattwire.cli.wrap import searchable
from wattwire.links.findings import Finding
from wattwire.links.law_check import LawCheck
from wattwire.links.statistics import FAMILYWISE
from wattwire.links.wire import check_wire
from wattwire.model.words import plural
from wattwire.rig.namespaces import require_namespaces


def check_links(names: Sequence[str]) -> int:
    """Check the law of links in logical time and return the number of failed tests.

    Without names, check all links. Raises UsageError for an unknown or invalid link, and
    MissingError without the emulator.
    """
    links = links_like(Catalog().links, names)
    check = LawCheck(links)
    frames = {link.name: check.frames(link) for link in links}
    all_frames = sum(frames.values())
    print(
        searchable(
            f"{plural(len(links), 'link')}, {check.effort.seeds} seeds, "
            f"{all_frames / 1e6:.0f} million frames in logical time; "
            f"{plural(check.test_count, 'statistical test')} with a familywise error of "
            f"{FAMILYWISE:.0%}, so each interval covers {check.z:.2f} standard errors",
            sys.stdout,
        ),
        flush=True,
    )
    failed = finished = 0
    for link in links:
        began = time.monotonic()
        findings = list(check.findings(link))
        finished += frames[link.name]
        failures = [finding for finding in findings if not finding.passed]
        failed += len(failures)
        _print_failures(failures)
        print(
            f"{link.name}: {len(findings) - len(failures)} passed, {len(failures)} failed, "
            f"{frames[link.name] / 1e6:.0f} million frames, {time.monotonic() - began:.0f} s "
            f"({finished / all_frames:.0%} of all frames)",
            flush=True,
        )
    print(f"{plural(failed, 'test')} failed" if failed else "all tests passed")
    return failed


def check_wires(names: Sequence[str]) -> int:
    """Check the emulator between two network namespaces; return the number of failed tests.

    Without names, check all links. Raises MissingError without permission or emulator.
    """
    links = links_like(Catalog().links, names)
    require_namespaces()
    failed = 0
    for link in links:
        for result in check_wire(link):
            failures = [finding for finding in result.findings if not finding.passed]
            failed += len(failures)
            _print_failures(failures)
            print(searchable(result.words(), sys.stdout), flush=True)
    print(f"{plural(failed, 'test')} failed" if failed else "all tests passed")
    return failed


def _print_failures(failures: Sequence[Finding]) -> None:
    for finding in failures:
        print(searchable(f"failed  {finding.words()}", sys.stdout, "  ", " " * 10))
