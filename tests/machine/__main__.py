"""Run steps in a test machine by hand: `python -m tests.machine STEP … [--members NAME …]`.

The results stay in the folder (build/machine by default), whose content is replaced.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.machine.boot import MEMBERS, ROOT, boot
from tests.machine.parts import MissingPartsError


def main() -> int:
    """Return 0 if all steps succeeded, 1 if one failed, and 2 if there was no machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.machine", description=__doc__)
    parser.add_argument("steps", nargs="+", metavar="STEP", help="see tests/machine/suite")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "machine")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds (1800)")
    parser.add_argument("--members", nargs="+", default=MEMBERS, help="middleware in the machine")
    parser.add_argument("--peer", nargs="+", default=[], help="steps of a second machine")
    options = parser.parse_args()
    try:
        ended = boot(
            options.folder.absolute(), options.steps, options.limit, options.members, options.peer
        )
    except (MissingPartsError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 2
    print(ended.log if ended.status is not None else ended.console)
    print(f"results: {ended.out}")
    return 1 if ended.status is None else min(ended.status, 1)


if __name__ == "__main__":
    sys.exit(main())
