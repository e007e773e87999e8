"""Time the results of one run in the tree that is first in PYTHONPATH: `row_timer.py STUDY DIR`.

The program measures the study into the campaign DIR. When wattwire computes the results of the
first run, the program prints a line. Then it reads a line for each request, computes the results
again, and prints the CPU time (s) of all its threads. The package of the tree may be of any commit
since 45e1d68.
"""

import contextlib
import os
import sys
import time
from typing import Any

try:
    from wattwire.run.results.summary import Collected
except ImportError:  # commits before the folder results/
    from wattwire.run.summary import Collected  # type: ignore[import-not-found, no-redef]
from wattwire.cli.main import main

compute = Collected.__init__


def answer(collected: Collected, *arguments: Any) -> None:
    """Compute the results of a run, and answer requests until the end of input."""
    compute(collected, *arguments)
    print("ready", file=sys.__stderr__, flush=True)
    for _ in sys.stdin:
        begin_s = time.process_time()
        again = Collected.__new__(Collected)
        compute(again, *arguments)
        messages: Any = again.messages
        if hasattr(messages, "write_parquet"):  # commits that write the messages later
            messages.write_parquet(again.folder / "messages.parquet")
        print(time.process_time() - begin_s, file=sys.__stderr__, flush=True)
    os._exit(0)  # the campaign is not completed; the agent ends with its controller


if __name__ == "__main__":
    Collected.__init__ = answer  # type: ignore[method-assign, assignment]
    study, campaign = sys.argv[1:]
    sys.argv = ["wattwire", "run", study, "--campaign", campaign, "--plain", "--no-report"]
    with contextlib.redirect_stderr(sys.stdout):
        main()
