"""Cells as they were at a commit: its tree, laid out once in the cache."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from wattwire.model.errors import MissingError, UsageError
from wattwire.rig import cache

FOLDERS = ("middleware", "languages")
GIT_S = 120.0


def tree_of(revision: str, start: Path | None = None) -> tuple[Path, str]:
    """Folder with the cells and kits of a git revision, and the commit that it names.

    The repository is the one around `start` (default: the working directory). Nothing in it
    changes. Raises UsageError for what is no commit or has no cells, MissingError without git.
    """
    place = start or Path.cwd()
    wanted = f"{revision}^{{commit}}"
    try:
        commit = _git(place, "rev-parse", "--verify", "--end-of-options", wanted)
    except UsageError as error:
        raise UsageError(
            f"git:{revision}: no commit of this name in a repository around {place} ({error}); "
            "allowed: a commit, branch or tag, as git:main"
        ) from error
    top = Path(_git(place, "rev-parse", "--show-toplevel"))
    there = set(_git(top, "ls-tree", "--name-only", commit).splitlines())
    folders = [name for name in FOLDERS if name in there]
    if not folders:
        raise UsageError(
            f"git:{revision}: commit {commit[:12]} of {top} has no folder middleware/ or "
            "languages/ at its top; allowed: a commit that holds cells"
        )
    kept = cache.folder() / cache.TREES / commit
    if not (kept / cache.MARKER).exists():
        _lay_out(top, commit, folders, kept)
    os.utime(kept / cache.MARKER)
    return kept, commit


def _lay_out(top: Path, commit: str, folders: list[str], kept: Path) -> None:
    """Write the tree beside its place and rename it there: it is whole, or it is not there."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=kept.parent, prefix=f".{commit[:12]}-"))
    try:
        packed = partial / "tree.tar"
        _git(top, "archive", "--format=tar", f"--output={packed}", commit, "--", *folders)
        _run(["tar", "-xf", str(packed), "-C", str(partial)], "tar")
        packed.unlink()
        (partial / cache.MARKER).touch()
        with contextlib.suppress(OSError):  # somebody else was faster; theirs is the same
            os.rename(partial, kept)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _git(place: Path, *words: str) -> str:
    done = _run(["git", "-C", str(place), *words], "git")
    return done.strip()


def _run(argv: list[str], program: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=GIT_S, check=False)
    except FileNotFoundError as error:
        raise MissingError(f"{program} is not on PATH; a variant git:REVISION needs it") from error
    except subprocess.TimeoutExpired as error:
        raise MissingError(f"{program} did not end in {GIT_S:g} s: {' '.join(argv)}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise UsageError(f"{' '.join(argv)}: {said[0] if said else 'failed'}")
    return done.stdout
