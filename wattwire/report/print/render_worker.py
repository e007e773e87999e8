"""Draw charts in a separate process, as SVG for page and print, and as PDF.

The drawing library holds the interpreter lock for most of its work, so threads would not draw in
parallel. Requests and replies are JSON lines. Each request has one reply. The process exits when
its input ends, which also happens when its parent exits. It starts quickly, because it imports no
other part of the report. `shared` returns the Pen of the calling process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.model.errors import WattwireError

COLUMN_MM = (84.0, 174.0)
"""Printed widths in mm of one column, and of two columns including the gap."""
SINGLE_MAX_PX = 400
"""Maximum width of a figure in one printed column, in px. Its smallest font is then 7.1 pt."""
REPEATED_MIN = 8
POINTS_PER_MM = 72 / 25.4
SERVE = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from wattwire.report.print import render_worker; render_worker.serve()"
)
"""Program of the drawing process. It receives this process's module path, because -m would search
the user's folder first.
"""
NOTHING = {"data": {"values": []}, "mark": "point"}
PRINTED = re.compile(
    r'<svg ([^>]*?)width="[\d.]+mm" height="[\d.]+mm" viewBox="0 0 ([\d.]+) ([\d.]+)"'
)
GRADIENT = re.compile(r"gradient_\d+")
SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
MARK = re.compile(r'<path (?:aria-[a-z]+="[^"]*" )*transform="translate\(([^)]*)\)" ([^>]*)/>')


END_WAIT_S = 5.0


class Pen:
    """A process that draws one chart at a time. Several threads can share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", SERVE, *sys.path], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def draw(self, spec: Mapping[str, Any], svg: Path, pdf: Path, mark: str) -> str:
        """Draw a Vega-Lite `spec` to two files, append `mark` to the SVG, and return the SVG.

        Raises OSError if a file cannot be written, ValueError for an invalid spec, and
        WattwireError if the process ends.
        """
        # The process does not follow changes of the working directory, so paths are absolute.
        files = {"svg": str(svg.absolute()), "pdf": str(pdf.absolute())}
        request = {"spec": spec, **files, "mark": mark}
        with self._lock:
            answer = self._answer_of(json.dumps(request), svg)
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"], answer["file"])
        if "error" in answer:
            raise ValueError(f"{svg.stem}: {answer['error']}")
        return str(answer["drawn"])

    def _answer_of(self, request: str, svg: Path) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
            # A large figure may take minutes. Ctrl-C ends the drawing process, too.
            line = self._process.stdout.readline()  # waits: the end of the drawing process
        except BrokenPipeError:
            line = ""
        if not line.endswith("\n"):
            raise WattwireError(
                f"{svg}: the process that draws figures ended (exit code {self._exit_code()}) "
                "before this figure was complete. The runs are unchanged; repeat the same command."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _exit_code(self) -> int | None:
        """Return the exit code of the ending process, whose pipes close before it can be reaped."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(END_WAIT_S)
        return None


_pens: list[Pen] = []
_starting = threading.Lock()


def shared() -> Pen:
    """Return the Pen of this process, started on first use because its engine starts slowly."""
    with _starting:
        if not _pens or not _pens[-1].is_alive:
            _pens[:] = [Pen()]
        return _pens[-1]


def size_px(svg: str) -> tuple[float, float]:
    """Return the width and the height of an SVG in px. Raises ValueError if they are missing."""
    match = SIZE.search(svg)
    if match is None:
        raise ValueError("svg: the first element has no width and height")
    return float(match[2]), float(match[3])


def width_mm(svg: str) -> float:
    """Return the printed width of an SVG in mm, either one or two columns."""
    return COLUMN_MM[0] if size_px(svg)[0] <= SINGLE_MAX_PX else COLUMN_MM[1]


def sized(svg: str, unit: str = "mm", per_mm: float = 1.0) -> str:
    """Return the SVG scaled to its printed width."""
    width, height = size_px(svg)
    wide = width_mm(svg) * per_mm
    high = wide * height / width
    size = f'width="{wide:.2f}{unit}" height="{high:.2f}{unit}"'
    return SIZE.sub(rf"<svg \1{size}", svg, count=1)


def unsized(svg: str) -> str:
    """Restore the original size of an SVG that `sized` scaled."""
    return PRINTED.sub(r'<svg \1width="\2" height="\3" viewBox="0 0 \2 \3"', svg, count=1)


def small(svg: str) -> str:
    """Return the SVG with repeated marks replaced by references to a definition.

    A thousand dots repeat the same path. References need a tenth of the bytes.
    """
    counts = Counter(match[2] for match in MARK.finditer(svg))
    names = {
        body: f"m{number}"
        for number, body in enumerate(
            body for body, count in counts.items() if count >= REPEATED_MIN
        )
    }
    if not names:
        return svg

    def reference(match: re.Match[str]) -> str:
        name = names.get(match[2])
        if name is None:
            return match[0]
        x, y = match[1].split(",")
        return f'<use href="#{name}" x="{x}" y="{y}"/>'

    definitions = "".join(f'<path id="{name}" {body}/>' for body, name in names.items())
    end = svg.index(">") + 1
    return f"{svg[:end]}<defs>{definitions}</defs>{MARK.sub(reference, svg[end:])}"


def renumbered(svg: str) -> str:
    """Return the SVG with the names of its own gradients counted from 0.

    The library counts gradients over all figures of a process, so the same figure would differ
    between two reports.
    """
    numbers: dict[str, int] = {}
    return GRADIENT.sub(lambda match: f"gradient_{numbers.setdefault(match[0], len(numbers))}", svg)


# -- in the drawing process --------------------------------------------------------------------


def serve() -> None:
    """Answer requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    # Output of the library must not mix with the replies.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _svg_of(NOTHING)  # starts the engine of the library before the first request
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"drawn": _draw_files(json.loads(line))}
        except OSError as error:
            answer = {"errno": error.errno, "error": error.strerror, "file": error.filename}
        except Exception as error:  # noqa: BLE001 - errors of the library are sent to the parent
            answer = {"error": f"{type(error).__name__}: {error}"}
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        except BrokenPipeError:  # the parent has exited
            os._exit(1)


def _draw_files(request: Mapping[str, Any]) -> str:
    import vl_convert  # noqa: PLC0415 - only this process loads it

    svg = small(renumbered(_svg_of(request["spec"])))
    Path(request["svg"]).write_text(sized(svg) + request["mark"], "utf-8")
    # The library interprets the size of an SVG as points and ignores its unit.
    data = vl_convert.svg_to_pdf(sized(svg, "", POINTS_PER_MM))
    # A rename prevents an incomplete file from being reused as a current figure.
    pdf = Path(request["pdf"])
    partial = pdf.with_suffix(".pdf.partial")
    partial.write_bytes(data)
    partial.replace(pdf)
    return svg


def _svg_of(spec: Mapping[str, Any]) -> str:
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.vega_to_svg(vl_convert.vegalite_to_vega(dict(spec))))
