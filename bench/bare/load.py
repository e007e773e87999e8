"""A load generator with the arguments CLASS SHARE.

It works for SHARE of every 10 ms; a SHARE of 1 is continuous work. It stops itself (SIGSTOP) before
it begins, so that its parent controls when it works.
"""

import ctypes
import os
import signal
import sys
import time

PERIOD_S = 0.01
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Work until this process or its parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    kind, share = sys.argv[1], float(sys.argv[2])
    if kind == "SCHED_IDLE":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif kind == "nice 19":
        os.nice(19)
    os.kill(os.getpid(), signal.SIGSTOP)
    due_s = time.monotonic()
    while True:
        until_s = time.thread_time() + share * PERIOD_S
        while time.thread_time() < until_s:
            pass
        if share < 1:
            due_s = max(due_s + PERIOD_S, time.monotonic() - PERIOD_S)
            time.sleep(max(0.0, due_s - time.monotonic()))


main()
