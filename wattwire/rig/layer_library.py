"""Build the library that records the layers of a message, and check that a program can load it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from wattwire.catalog.home import home
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.layers import POINTS, SLEEP, SPANS, Wrapper
from wattwire.model.paths import cache_folder
from wattwire.rig.cache import MARKER, require_own

LIBRARY = "liblayerprof.so"
FOLDER_VARIABLE, SIZE_VARIABLE = "WATTWIRE_LAYERS_DIR", "WATTWIRE_LAYERS_MIB"
SOURCES = ("recorder.c", "tracepoints.c")
COMPILE = (
    "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", "-fexceptions", "-fvisibility=hidden",
    "-Wall", "-Wno-builtin-declaration-mismatch", "-Wl,-z,now",
)  # fmt: skip
BUILD_S_MAX = 120.0
SHEBANG_DEPTH_MAX = 4
PT_INTERP = 3
SECURE_MODES = 0o6000
CAPABILITIES = "security.capability"


def layer_library(wrappers: Sequence[Wrapper]) -> Path:
    """Return the path of the library with these wrappers, which is built if the cache lacks it.

    A build is for one machine type, C library and compiler, because hosts can share a cache. Raises
    MissingError without a C compiler, and UsageError if the wrappers do not compile.
    """
    compiler = _compiler()
    sources = home() / "layerprof"
    texts = {"points.h": points_header(), "wrappers.c": wrappers_code(wrappers)}
    target = platform.machine(), platform.libc_ver(), _identity(compiler)
    digest = hashlib.sha256(repr((COMPILE, sorted(texts.items()), target)).encode())
    for path in sorted(sources.glob("*.[ch]")):
        digest.update(path.read_bytes())
    place = cache_folder()
    require_own(place)
    folder = place / "builds" / digest.hexdigest()[:24]
    if set(str(folder)) & set(" :"):
        raise UsageError(
            f"--layers: {folder}: LD_PRELOAD cannot contain a path with a space or a colon; export "
            "WATTWIRE_CACHE=FOLDER, a folder without them"
        )
    if (folder / MARKER).exists():
        os.utime(folder / MARKER)
        return folder / LIBRARY
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="layerprof-", dir=folder.parent) as name:
        build = Path(name)
        for file_name, text in texts.items():
            (build / file_name).write_text(text, encoding="utf-8")
        inputs = [*(str(sources / file) for file in SOURCES), "wrappers.c"]
        command = [*compiler, *COMPILE, "-I.", f"-I{sources}", "-o", LIBRARY, *inputs, "-ldl"]
        try:
            result = subprocess.run(
                command, cwd=build, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise UsageError(
                f"--layers: {shlex.join(compiler)} did not build the library that records the "
                f"layers in {BUILD_S_MAX:g} s; export CC=COMPILER, a working C compiler"
            ) from error
        if result.returncode != 0:
            tables = ", ".join(dict.fromkeys(w.table for w in wrappers))
            raise UsageError(
                f"--layers: the wrappers of {tables} do not compile:\n{result.stderr[-2000:]}"
            )
        (build / MARKER).touch()
        _move(build, folder)
    return folder / LIBRARY


def _compiler() -> list[str]:
    """Return the words of the C compiler's command, for example of `ccache gcc`."""
    text = os.environ.get("CC") or "cc"
    with contextlib.suppress(ValueError):  # an open quotation mark
        words = shlex.split(text)
        if words and (path := shutil.which(words[0])):
            return [path, *words[1:]]
    raise MissingError(
        f"--layers: found no C compiler {text!r} (CC or cc); it builds the library that records "
        "the layers. Install gcc or clang, in Debian with `apt-get install gcc libc6-dev`."
    )


def _identity(compiler: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return each word of a command, with the size and time of the program that it names."""
    identity = []
    for word in compiler:
        path = shutil.which(word)
        status = os.stat(path) if path else None
        size_bytes, changed_ns = (status.st_size, status.st_mtime_ns) if status else (0, 0)
        identity.append((word, size_bytes, changed_ns))
    return identity


def _move(build: Path, folder: Path) -> None:
    """Move a build to its place in the cache, unless another process put the same one there."""
    for is_last in (False, True):
        try:
            build.rename(folder)
        except OSError as error:
            if (folder / MARKER).exists():
                return
            if is_last:
                raise UsageError(
                    f"--layers: {folder}: the build cannot be stored ({error.strerror}); remove "
                    "this path, or export WATTWIRE_CACHE=FOLDER, a folder of this user"
                ) from error
            shutil.rmtree(folder, ignore_errors=True)  # a build that was removed in part
        else:
            build.mkdir()  # for the removal of the temporary folder
            return


def preload(library: Path, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the variables of a process that records its layers into `folder`.

    The user's own libraries remain, after this one: a library of a middleware that the user
    preloads must not answer the calls that the wrappers record.
    """
    libraries = [str(library), *environment.get("LD_PRELOAD", "").replace(":", " ").split()]
    size = {SIZE_VARIABLE: environment[SIZE_VARIABLE]} if SIZE_VARIABLE in environment else {}
    return {"LD_PRELOAD": ":".join(libraries), FOLDER_VARIABLE: str(folder.resolve()), **size}


def points_header() -> str:
    """Return the header with the code of each point."""
    lines = [f"#define POINT_{name.upper()} {code}" for code, name in enumerate(POINTS)]
    return "\n".join([*lines, ""])


def wrappers_code(wrappers: Sequence[Wrapper]) -> str:
    """Return the C code of the wrappers and of their table."""
    parts = ['#include "points.h"', '#include "recorder.h"', ""]
    parts += [_function(index, wrapper) for index, wrapper in enumerate(wrappers)]
    entries = ",\n".join(map(_entry, wrappers)) or '{"", "", {0}, {{0}}, 0}'
    parts.append(f"struct layerprof_wrapper layerprof_wrappers[] = {{\n{entries}}};")
    parts.append(f"const unsigned layerprof_wrapper_count = {len(wrappers)};\n")
    binds = [f"  real_{index} = layerprof_next({index});" for index in range(len(wrappers))]
    parts.append("__attribute__((constructor)) static void bind_at_start(void) {")
    parts += [*binds, "}", ""]
    return "\n".join(parts)


def _entry(wrapper: Wrapper) -> str:
    callers = ", ".join(f'"{caller}"' for caller in wrapper.callers) or "0"
    return (
        f'  {{"{wrapper.symbol}", "{wrapper.library}", {{{callers}}}, {{{{0}}}}, '
        f"(void *)&{wrapper.symbol}}}"
    )


def _function(index: int, wrapper: Wrapper) -> str:
    """Return the wrapper of one function.

    All arguments are passed on as words of the machine, which the calling conventions of x86-64 and
    AArch64 permit for integers, pointers and references.
    """
    names = [f"a{number}" for number in range(wrapper.arguments)]
    types = ", ".join("long" for _ in names)
    call = f"real_{index}({', '.join(names)})"
    code = f"POINT_{wrapper.point.upper()}"
    is_recorded = (
        f"layerprof_is_caller(&layerprof_wrappers[{index}], __builtin_return_address(0))"
        if wrapper.callers
        else "1"
    )
    lines = [
        f"static long (*real_{index})({types});",
        f"LAYERPROF_PUBLIC long {wrapper.symbol}({', '.join(f'long {name}' for name in names)}) {{",
        f"  if (__builtin_expect(!real_{index}, 0)) real_{index} = layerprof_bind({index});",
    ]
    if wrapper.point in SPANS:
        counts = wrapper.point == "wait"
        lines += [
            f"  if (!{is_recorded}) return {call};",
            "  uint64_t begin_ns = layerprof_now_ns();",
            *["  layerprof_waits++;"] * counts,
            f"  long result = {call};",
            *["  layerprof_waits--;"] * counts,
            f"  layerprof_record({code}, layerprof_now_ns(), begin_ns, (uint64_t)a0, 0);",
            "  return result;",
        ]
    else:
        within_wait = "layerprof_waits && " if wrapper.point == SLEEP else ""
        lines += [
            f"  if ({within_wait}{is_recorded})",
            f"    layerprof_record({code}, layerprof_now_ns(), (uint64_t)a0, 0, 0);",
            f"  return {call};",
        ]
    return "\n".join([*lines, "}", ""])


# -- programs that cannot load it ----------------------------------------------------------


def check_loadable(program: str, cwd: str = ".") -> None:
    """Raise UsageError if a program ignores preloaded libraries, as static and setuid programs do.

    The interpreter of a script is checked in its place.
    """
    for path in _interpreters(program, Path(cwd)):
        status = path.stat()
        has_capabilities = False
        with contextlib.suppress(OSError):
            has_capabilities = CAPABILITIES in os.listxattr(path)
        if status.st_mode & SECURE_MODES or has_capabilities:
            raise UsageError(
                f"--layers: {path} is setuid, setgid or has file capabilities, so the loader "
                "ignores preloaded libraries in it; start the program inside it directly, as this "
                "user"
            )
        if _is_static(path):
            raise UsageError(
                f"--layers: {path} is a static program, which loads no library; build it with "
                "shared libraries, or measure it without --layers"
            )


def _interpreters(program: str, cwd: Path) -> Iterator[Path]:
    """Yield the file of a program, and the file of its interpreter if it is a script."""
    path = Path(cwd, program) if os.sep in program else Path(shutil.which(program) or program)
    for _ in range(SHEBANG_DEPTH_MAX):
        if not path.is_file():
            return
        yield path
        line = b""
        with contextlib.suppress(PermissionError), open(path, "rb") as file:
            line = file.readline(256)
        if not line.startswith(b"#!"):
            return
        words = line[2:].decode(errors="replace").split()
        if words and Path(words[0]).name == "env":
            words = [shutil.which(word) or word for word in words[1:] if not word.startswith("-")]
        if not words:
            return
        path = Path(words[0])


def _is_static(path: Path) -> bool:
    """Return whether a file is an ELF program without a loader.

    A file that this user can execute but not read, or that is damaged, is not judged.
    """
    try:
        with open(path, "rb") as file:
            header = file.read(64)
            if header[:4] != b"\x7fELF" or header[4:5] != b"\x02":
                return False
            (offset,) = struct.unpack_from("<Q", header, 32)
            size, count = struct.unpack_from("<HH", header, 54)
            file.seek(offset)
            segments = file.read(size * count)
        kinds = {struct.unpack_from("<I", segments, size * at)[0] for at in range(count)}
    except (OSError, OverflowError, struct.error):
        return False
    return PT_INTERP not in kinds
