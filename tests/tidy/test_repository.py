"""Apply the rules of the repository to the repository."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy import rules
from tests.tidy.layers import is_test, layer_problems, read_layers
from tests.tidy.names import open_names_in
from tests.tidy.tree import (
    CODE_SUFFIXES,
    OPEN_MANIFESTS,
    ROOT,
    files,
    is_closed,
    is_fixture,
    open_names,
    texts,
)
from tests.tidy.waits import wait_problems

NAMED_SUFFIXES = (CODE_SUFFIXES - {".sh"}) | {".toml", ".json"}
METER_HEADINGS = ("what it measures", "how", "what it misses", "reference")


def _report(problems: list[str]) -> None:
    assert not problems, "\n" + "\n".join(problems)


def test_closed_code_names_nothing_of_the_open_folders() -> None:
    """Tests may use a member as an example; shipped code may not."""
    names = open_names()
    problems = []
    for path, text in texts():
        shipped = is_closed(path) and not is_fixture(path) and not is_test(path)
        if shipped and path.suffix in NAMED_SUFFIXES:
            problems += open_names_in(path, text, names)
    _report(problems)


def test_imports_follow_the_layers() -> None:
    layers = read_layers((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert "model" in layers and not layers["model"]
    problems = []
    for path, text in texts():
        if path.parts[0] == "wattwire" and path.suffix == ".py":
            problems += layer_problems(path, text, layers)
    _report(problems)


def test_files_are_of_known_kinds_and_small() -> None:
    problems = []
    for path in files():
        if not is_fixture(path):
            problems += rules.name_problems(path)
        problems += rules.size_problems(path, (ROOT / path).stat().st_size)
    _report(problems)


def test_no_leftovers_machine_paths_or_registry_hosts() -> None:
    _report([p for path, text in texts() for p in rules.word_problems(path, text)])


def test_no_path_is_a_pattern() -> None:
    """Tests name their folders themselves."""
    python = [(p, t) for p, t in texts() if p.suffix == ".py" and not is_test(p)]
    assert len(python) > 300
    _report([p for path, text in python for p in rules.pattern_problems(path, text)])


def test_no_file_has_a_fixed_path_among_the_temporary_files() -> None:
    shipped = [(p, t) for p, t in texts() if p.suffix in CODE_SUFFIXES and not is_test(p)]
    assert len(shipped) > 300
    _report([problem for p, text in shipped for problem in rules.temporary_problems(p, text)])


def test_lines_of_code_fit() -> None:
    code = [(p, t) for p, t in texts() if p.suffix in CODE_SUFFIXES and not is_fixture(p)]
    _report([problem for path, text in code for problem in rules.line_problems(path, text)])


def test_lines_of_pages_fit() -> None:
    """Tables are included, because a wide table should be a list, which gives readable diffs."""
    pages = [(path, text) for path, text in texts() if path.suffix == ".md"]
    assert len(pages) > 50
    limit = rules.PAGE_LINE_LENGTH_MAX
    _report([line for path, text in pages for line in rules.line_problems(path, text, limit)])


def test_functions_are_short() -> None:
    code = [(path, text) for path, text in texts() if not is_fixture(path)]
    _report([problem for path, text in code for problem in rules.length_problems(path, text)])


def test_the_agent_sends_no_signal_to_a_group() -> None:
    sources = [(p, t) for p, t in texts() if p.suffix == ".rs" and p.parts[:2] == ("agent", "src")]
    assert sources
    _report([problem for path, text in sources for problem in rules.kill_problems(path, text)])


def test_every_wait_has_a_deadline() -> None:
    code = [(p, t) for p, t in texts() if p.parts[0] == "wattwire" and p.suffix == ".py"]
    shipped = [(path, text) for path, text in code if not is_test(path)]
    assert len(shipped) > 100
    _report([problem for path, text in shipped for problem in wait_problems(path, text)])


def test_requirements_are_pinned_by_hash() -> None:
    pinned = [(p, t) for p, t in texts() if re.fullmatch(r"requirements.*\.txt", p.name)]
    assert pinned
    _report(
        [problem for path, text in pinned for problem in rules.requirement_problems(path, text)]
    )


def test_architecture_has_an_invariant_for_each_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    sections = re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]
    stated = {
        name: section.count("\nInvariant: ")
        for section in sections
        if (name := section.split("\n", 1)[0].strip("` /"))
    }
    folders = {p.parts[0] for p in files() if len(p.parts) > 1 and not p.parts[0].startswith(".")}
    folders |= {"/".join(p.parts[:2]) for p in files() if p.parts[0] == "wattwire" and p.parts[2:]}
    _report(
        [
            f"ARCHITECTURE.md: {folder}/ has {stated.get(folder, 0)} invariants; needed: a section "
            f'"### `{folder}/`" with one line that begins with "Invariant: "'
            for folder in sorted(folders)
            if stated.get(folder, 0) != 1
        ]
    )


def test_every_member_of_an_open_folder_explains_itself() -> None:
    problems = []
    for folder, manifest in OPEN_MANIFESTS.items():
        for path in sorted((ROOT / folder).glob(f"*/{manifest}")):
            readme = path.parent / "README.md"
            if not readme.is_file():
                problems.append(f"{path.parent.relative_to(ROOT)}: no README.md; write one")
            elif folder == "meters":
                text = readme.read_text(encoding="utf-8").lower()
                problems += [
                    f'{readme.relative_to(ROOT)}: no heading "{heading}"'
                    for heading in METER_HEADINGS
                    if not re.search(rf"^#+ {heading}\b", text, re.MULTILINE)
                ]
    _report(problems)


def test_links_between_pages_lead_somewhere() -> None:
    link = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)")
    problems = []
    for path, text in texts():
        if path.suffix == ".md" and not is_fixture(path):
            for match in link.finditer(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
                if not (ROOT / path.parent / match["target"]).exists():
                    problems.append(f"{path}: links to {match['target']}, which is not there")
    _report(problems)


def test_published_numbers_name_their_source() -> None:
    tables = [p for p in files() if p.parts[0] == "studies" and p.name == "published.csv"]
    for table in tables:
        header, *rows = (ROOT / table).read_text(encoding="utf-8").splitlines()
        assert "source" in header.split(",")
        assert rows and all(row.count(",") == header.count(",") for row in rows)
        study = (ROOT / Path(table).parent / "study.toml").read_text(encoding="utf-8")
        assert re.search(r'^published = "published.csv"$', study, re.MULTILINE)
        page = (ROOT / Path(table).parent / "README.md").read_text(encoding="utf-8")
        assert re.search(r'^source = "10\.', study, re.MULTILINE) or "DOI is unknown" in page
