"""Test that the cells of a commit are checked out once, independent of the working tree."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from wattwire.model.errors import UsageError
from wattwire.rig import cache
from wattwire.rig.git_trees import tree_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    top = tmp_path_factory.mktemp("repository")
    cell = top / "middleware/mmm/lang"
    cell.mkdir(parents=True)
    (top / "secret").write_text("not a cell")
    git(top, "init", "-q")
    for text in ("first", "second"):
        (cell / "node.py").write_text(text)
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", text)
        git(top, "tag", text)
    (cell / "node.py").write_text("not committed")
    return top


@pytest.fixture
def repository(made, tmp_path, monkeypatch):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    return made


def git(top, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    argv = ["git", "-C", str(top), *who, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def test_each_revision_has_its_own_tree_of_cells_and_nothing_else(repository):
    inside = repository / "middleware"
    for text in ("first", "second"):
        tree, commit = tree_of(text, inside)
        assert (tree / "middleware/mmm/lang/node.py").read_text() == text
        assert len(commit) == 40 and tree.name == commit and not (tree / "secret").exists()
    assert tree_of("HEAD", repository) == (tree, commit)
    assert not list(tree.parent.glob(".*")), "nothing half made is left"
    assert (repository / "middleware/mmm/lang/node.py").read_text() == "not committed"


def test_the_cache_knows_trees_and_can_throw_them_away(repository):
    tree, _ = tree_of("first", repository)
    entry = next(e for e in cache.entries(cache.folder()) if e.path == tree)
    assert cache.remove(entry) and not tree.exists()
    assert tree_of("first", repository)[0].is_dir()


@pytest.mark.parametrize("revision", ["nothing", "--all", "", "first^{tree}"])
def test_what_is_no_commit_is_refused(repository, revision):
    with pytest.raises(UsageError, match="no such commit"):
        tree_of(revision, repository)


def test_a_commit_without_cells_and_a_folder_without_git_are_refused(repository, tmp_path):
    nothing = git(repository, "hash-object", "-w", "-t", "tree", "/dev/null")
    bare = git(repository, "commit-tree", "-m", "none", nothing)
    with pytest.raises(UsageError, match="has no folder middleware/ or languages/"):
        tree_of(bare, repository)
    with pytest.raises(UsageError, match="not a git repository"):
        tree_of("HEAD", tmp_path)
