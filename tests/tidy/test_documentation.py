"""Test that the commands in the documentation are valid."""

from __future__ import annotations

import argparse
import re

from tests.tidy.tree import ROOT, is_fixture, texts
from wattwire.cli.main import parser

_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_COMMAND = re.compile(r"\bwattwire (?P<verb>[a-z]+)(?P<rest>[^\n`#]*)")


def verbs_of(top: argparse.ArgumentParser) -> dict[str, set[str]]:
    """Return verb → long options of the verb."""
    found: dict[str, set[str]] = {}
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                found[name] = {o for a in verb._actions for o in a.option_strings}
    return found


def command_problems(where: str, text: str, verbs: dict[str, set[str]]) -> list[str]:
    """Return the commands in code spans and blocks with an unknown verb or option."""
    problems = []
    for code in _CODE.findall(text):
        for match in _COMMAND.finditer(code):
            verb = match["verb"]
            if verb not in verbs:
                problems.append(f'{where}: "wattwire {verb}"; known: {", ".join(sorted(verbs))}')
                continue
            for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", match["rest"]):
                if option not in verbs[verb]:
                    problems.append(f'{where}: "wattwire {verb}" has no {option}')
    return problems


def test_pages_name_commands_that_exist() -> None:
    verbs = verbs_of(parser())
    assert "run" in verbs
    problems = []
    for path, text in texts():
        if path.suffix == ".md" and not is_fixture(path):
            problems += command_problems(str(path), text, verbs)
    assert not problems, "\n" + "\n".join(problems)


def test_the_page_of_studies_links_every_study() -> None:
    linked = set(re.findall(r"\(\.\./studies/([\w-]+)/README\.md\)", _read("docs/studies.md")))
    assert linked == {path.parent.name for path in ROOT.glob("studies/*/study.toml")}


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_a_command_that_does_not_exist_is_found() -> None:
    verbs = {"run": {"--preset"}}
    assert command_problems("a.md", "type `wattwire run x [--preset P]`", verbs) == []
    assert len(command_problems("a.md", "```\nwattwire fly\n```", verbs)) == 1
    assert len(command_problems("a.md", "`wattwire run x --fast`", verbs)) == 1
    assert command_problems("a.md", "wattwire flies", verbs) == []
