"""Check out the tree of a commit once in the cache, to build its cells."""

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
    """Return the folder with the cells and kits of a git revision, and the revision's commit.

    The repository contains `start` (default: the working directory) and is not changed. Raise
    UsageError for a revision that is not a commit or has no cells, MissingError without git.
    """
    directory = start or Path.cwd()
    commit_spec = f"{revision}^{{commit}}"
    try:
        commit = _git(directory, "rev-parse", "--verify", "--end-of-options", commit_spec)
    except UsageError as error:
        raise UsageError(
            f"git:{revision}: no such commit in the repository of {directory} ({error}); "
            "allowed: a commit, branch or tag, such as git:main"
        ) from error
    top = Path(_git(directory, "rev-parse", "--show-toplevel"))
    names = set(_git(top, "ls-tree", "--name-only", commit).splitlines())
    folders = [name for name in FOLDERS if name in names]
    if not folders:
        raise UsageError(
            f"git:{revision}: commit {commit[:12]} of {top} has no folder middleware/ or "
            "languages/ in its top folder; allowed: a commit that contains cells"
        )
    cache.require_own(cache.folder())
    tree = cache.folder() / cache.TREES / commit
    if not (tree / cache.MARKER).exists():
        _lay_out(top, commit, folders, tree)
    os.utime(tree / cache.MARKER)
    return tree, commit


def _lay_out(top: Path, commit: str, folders: list[str], tree: Path) -> None:
    """Write the tree to a temporary folder and rename it, so that no incomplete tree exists."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=tree.parent, prefix=f".{commit[:12]}-"))
    try:
        packed = partial / "tree.tar"
        _git(top, "archive", "--format=tar", f"--output={packed}", commit, "--", *folders)
        _run(["tar", "-xf", str(packed), "-C", str(partial)], "tar")
        packed.unlink()
        (partial / cache.MARKER).touch()
        with contextlib.suppress(OSError):  # another process was faster; its tree is identical
            os.rename(partial, tree)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _git(directory: Path, *arguments: str) -> str:
    output = _run(["git", "-C", str(directory), *arguments], "git")
    return output.strip()


def _run(argv: list[str], program: str) -> str:
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=GIT_S, check=False)
    except FileNotFoundError as error:
        raise MissingError(f"{program} is not on PATH; a variant git:REVISION needs it") from error
    except subprocess.TimeoutExpired as error:
        raise MissingError(
            f"{program} did not finish within {GIT_S:g} s: {' '.join(argv)}"
        ) from error
    if result.returncode != 0:
        complaint = result.stderr.strip().splitlines()
        raise UsageError(f"{' '.join(argv)}: {complaint[0] if complaint else 'failed'}")
    return result.stdout
