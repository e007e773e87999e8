"""Start programs in anonymous network namespaces, which vanish with their last process."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from wattwire.model.errors import MissingError, WattwireError
from wattwire.rig.children import START_TIMEOUT_S, first_line, kill, last_words

END_TIMEOUT_S = 30.0
RESULT_BYTES_MAX = 256 << 20


def require_namespaces() -> None:
    """Raise MissingError with the remedy if this user cannot create network namespaces."""
    if os.geteuid() != 0:
        raise MissingError(
            "network namespaces need CAP_SYS_ADMIN and CAP_NET_ADMIN; found user "
            f"{os.geteuid()}; run this command as root (sudo)"
        )
    if shutil.which("unshare") is None:
        raise MissingError("network namespaces need the program unshare (Debian: util-linux)")
    if not Path("/dev/net/tun").exists():
        raise MissingError("TAP devices need /dev/net/tun: modprobe tun")


class Script:
    """A Python script with one plan as input and one line of output.

    With `isolated`, it runs in a network namespace of its own.
    """

    def __init__(self, script: Path, isolated: bool) -> None:
        self._script = script
        prefix = ["unshare", "--net"] if isolated else []
        self._process = subprocess.Popen(
            [*prefix, sys.executable, str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self._line(START_TIMEOUT_S) != "ready":
            raise WattwireError(self._last_words())

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: str) -> None:
        """Send a line. A script that has ended reports its error in `result`."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def result(self) -> str:
        """End the script and return its line of output. Raises WattwireError if it failed."""
        self.send("end")
        line = self._line(END_TIMEOUT_S)
        if not line:
            raise WattwireError(self._last_words())
        self._process.wait(END_TIMEOUT_S)
        return line

    def _line(self, timeout_s: float) -> str:
        try:
            return first_line(self._process, timeout_s, RESULT_BYTES_MAX)
        except TimeoutError:
            self.kill()
            raise WattwireError(f"{self._script}: no line within {timeout_s:g} s") from None

    def kill(self) -> None:
        kill(self._process)

    def _last_words(self) -> str:
        words = last_words(self._process)[1].splitlines()
        return f"{self._script}: {words[-1] if words else 'it ended without a message'}"
