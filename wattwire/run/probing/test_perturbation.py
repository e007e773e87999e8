"""The CPU time of a probe."""

from __future__ import annotations

import os
import subprocess

import pytest

from wattwire.model.errors import WattwireError
from wattwire.run.probing import perturbation


def test_the_cpu_time_of_a_probe_that_has_ended_is_an_error_and_no_traceback() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(WattwireError, match=rf"process {process.pid}\) ended"):
        perturbation._cpu_s(process.pid)
    assert perturbation._cpu_s(os.getpid()) > perturbation._cpu_s(None) == 0.0
