"""Test that every rule detects a planted violation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.layers import layer_problems, read_layers
from tests.tidy.names import open_names_in
from tests.tidy.tokens import function_lengths, tokenise
from tests.tidy.waits import wait_problems

NAMES = frozenset({"carrier", "gauge", "rest"})
LAYERS = read_layers(
    "| `model/` | nothing |\n| `store/` | model |\n| `rig/` | model, store |\n| `cli/` | all |\n"
)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", 'x = "carrier"\n'),
        ("a.py", 'x = "carrier/cpp"\n'),
        ("a.py", 'x = f"{y}/Carrier"\n'),
        ("a.py", "gauge = 1\n"),
        ("a.py", "def gauge(): ...\n"),
        ("a.py", "def f(gauge): ...\n"),
        ("a.py", "f(gauge=1)\n"),
        ("a.py", "import meters.gauge\n"),
        ("a.py", "x.gauge\n"),
        ("a.rs", 'let x = "gauge";'),
        ("a.rs", 'let x = r#"gauge"#;'),
        ("a.rs", "mod gauge;"),
        ("a.hpp", 'auto x = R"(carrier)";'),
        ("a.cpp", "int carrier = 0;"),
        ("a.toml", 'use = ["gauge"]\n'),
        ("a.json", '{"carrier": 1}'),
        ("a.py", 'x = "rest/go"\n'),
    ],
)
def test_a_planted_name_is_found(name: str, source: str) -> None:
    assert len(open_names_in(Path(name), source, NAMES)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", '"""A gauge, and a carrier."""\nx = "gauges"  # carrier\n'),
        ("a.py", "rest = line.rest\n"),
        ("a.rs", "let rest = &line[1..];"),
        ("a.rs", "// gauge\n/* carrier */ let gauges = 'g';"),
        ("a.rs", "fn f<'carrying>(x: &'carrying str) -> char { '\\'' }"),
    ],
)
def test_a_name_in_prose_or_inside_a_longer_word_is_no_problem(name: str, source: str) -> None:
    assert open_names_in(Path(name), source, NAMES) == []


@pytest.mark.parametrize(
    ("path", "source", "count"),
    [
        ("wattwire/store/a.py", "from wattwire.model import x\nimport wattwire.model.units\n", 0),
        ("wattwire/store/a.py", "from wattwire.store.b import x\nimport json\n", 0),
        ("wattwire/store/a.py", "import wattwire.rig.hosts\n", 1),
        ("wattwire/store/a.py", "from wattwire import rig\n", 1),
        ("wattwire/store/a.py", "from ..rig import hosts\n", 1),
        ("wattwire/store/a.py", "def f():\n    from wattwire.cli import main\n", 1),
        ("wattwire/model/a.py", "from wattwire.store import x\n", 1),
        ("wattwire/model/a.py", "if TYPE_CHECKING:\n    from wattwire.store import x\n", 1),
        ("wattwire/store/test_a.py", "from wattwire.rig import x\n", 0),
        ("wattwire/cli/a.py", "from wattwire.rig import x\n", 0),
        ("wattwire/other/a.py", "", 1),
        ("wattwire/loose.py", "", 1),
        ("wattwire/__main__.py", "from wattwire.cli.main import main\n", 0),
    ],
)
def test_an_import_against_the_layers_is_found(path: str, source: str, count: int) -> None:
    assert len(layer_problems(Path(path), source, LAYERS)) == count


@pytest.mark.parametrize(
    "line",
    [
        "# TO" + "DO: later",
        "// FIX" + "ME",
        "open('/wo" + "rk/main/x')",
        'cd "/ro' + 'ot/x"',
        "path = /ho" + "me/ann/data",
        "https://py" + "pi.org/simple",
        "the C" + "EO wants it",
    ],
)
def test_a_planted_word_is_found(line: str) -> None:
    assert len(rules.word_problems(Path("a.md"), f"fine\n{line}\n")) == 1


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("pl.read_parquet(p)", 1),
        ("pl.scan_csv(p, glob=True)", 1),
        ("pl.read_parquet_schema(p)", 1),
        ("pl.scan_ndjson(p)", 1),
        ('p.glob(f"runs/{run}/*")', 1),
        ('p.rglob("*" + name)', 1),
        ("pl.read_parquet(p, glob=False)", 0),
        ("pl.read_json(p)", 0),
        ('p.glob(f"studies/*/{FILE}")', 0),
        ('p.glob(f"{glob.escape(name)}/*")', 0),
        ("p.glob(pattern)", 0),
    ],
)
def test_a_path_that_is_read_as_a_pattern_is_found(source: str, count: int) -> None:
    assert len(rules.pattern_problems(Path("wattwire/a.py"), source)) == count


def test_a_fixed_temporary_path_is_found() -> None:
    text = 'a = "/tm' + 'p"\nb = "/tm' + 'p/wattwire"\n'
    assert len(rules.temporary_problems(Path("a.py"), text)) == 1


def test_ordinary_words_are_no_problem() -> None:
    text = "root workflow, XXXXXX, $HOME/.cache, {root}/home, /sys/class, ~/x\n"
    assert rules.word_problems(Path("a.md"), text) == []


def test_kind_and_size_of_files_are_looked_at() -> None:
    assert rules.name_problems(Path("a/b.py")) == []
    assert len(rules.name_problems(Path("a/b.exe"))) == 1
    assert rules.size_problems(Path("a"), rules.BLOB_BYTES_MAX) == []
    assert len(rules.size_problems(Path("a"), rules.BLOB_BYTES_MAX + 1)) == 1


def test_a_long_line_is_found_at_its_number() -> None:
    problems = rules.line_problems(Path("a.py"), "x" * 100 + "\n" + "x" * 101 + "\n")
    assert [p.split(" ")[0] for p in problems] == ["a.py:2:"]
    limit = rules.PAGE_LINE_LENGTH_MAX
    page = f"| {'x' * (limit - 4)} |\n| {'x' * (limit - 3)} |\n"
    assert [p.split(" ")[0] for p in rules.line_problems(Path("a.md"), page, limit)] == ["a.md:2:"]


@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        ("a.py", "def long():\n", ""),
        ("a.rs", "impl X {\npub fn long<T: Into<u8>>(&self) -> Result<(), E> {\n", "}\n}\n"),
        ("a.cpp", "int X::long(const std::string& a) const {\n", "}\n"),
        ("a.go", "func (x *X) long(a int) error {\n", "}\n"),
        ("a.java", "void long(int a) throws IOException {\n", "}\n"),
    ],
)
def test_a_long_function_is_found_in_every_language(name: str, head: str, tail: str) -> None:
    body = "    x = 1\n" if name.endswith(".py") else "    if (y(1)) { z(); }\n"
    short = head + body * (rules.FUNCTION_LINES_MAX - 3) + tail
    assert rules.length_problems(Path(name), short) == []
    long = head + body * rules.FUNCTION_LINES_MAX + tail
    (problem,) = rules.length_problems(Path(name), long)
    assert ": long has " in problem


def test_the_tokeniser_keeps_strings_and_drops_comments() -> None:
    source = '/* no\n */ let a = "b \\" // c"; // no\n\'x\' r"d" R"m(e)m"'
    kinds = [(t.kind, t.text, t.line) for t in tokenise(source) if t.kind != "mark"]
    assert kinds == [
        ("name", "let", 2),
        ("name", "a", 2),
        ("string", 'b \\" // c', 2),
        ("string", "d", 3),
        ("string", "e", 3),
    ]


def test_lengths_count_from_the_name_to_the_last_brace() -> None:
    assert function_lengths("fn f() {\n}\nfn g() -> u8 {\n    1\n}\n") == [
        ("f", 1, 2),
        ("g", 3, 3),
    ]


def test_a_signal_that_may_reach_a_group_is_found() -> None:
    call = "unsafe { libc::kill(pid, libc::SIGKILL) };\n"
    assert len(rules.kill_problems(Path("a.rs"), call + call)) == 2
    assert rules.kill_problems(Path("a.rs"), f"#[cfg(test)]\nmod tests {{ {call} }}") == []
    only = "pub fn kill(pid: i32, signal: i32) -> bool {\n" + call
    assert rules.kill_problems(Path("a.rs"), only) == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("process.wait()", 1),
        ("process.wait(5)", 0),
        ("process.communicate()", 1),
        ("process.communicate(timeout=5)", 0),
        ("process.stdout.readline()", 1),
        ("process.stderr.read()", 1),
        ("file.read()", 0),
        ("thread.join()", 1),
        ('"".join(words)', 0),
        ("lock.acquire()", 1),
        ("events.get()", 1),
        ("table.get(key)", 0),
        ("future.result()", 1),
        ("subprocess.run(argv)", 1),
        ("subprocess.run(argv, timeout=1)", 0),
        ("subprocess.run(argv, **options)", 0),
        ("wait(futures)", 1),
        ("wait(futures, 1)", 0),
        ("wait()", 0),
        ('input("Why?")', 1),
        ("process.wait()  # waits: the end of the input", 0),
        ("process.wait()  # the end of the input", 1),
    ],
)
def test_a_wait_without_a_deadline_is_found(line: str, count: int) -> None:
    assert len(wait_problems(Path("a.py"), f"x = 1\n{line}\n")) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a==1 \\\n    --hash=sha256:00\n    # via b\n", 0),
        ("a==1\n", 1),
        ("a>=1 --hash=sha256:00\n", 1),
        ("--index-url https://x/simple\na==1 --hash=sha256:00\n", 1),
        ("a @ https://x/a.whl --hash=sha256:00\n", 1),
        ("# pip-compile --index-url=https://x\na==1 --hash=sha256:00\n", 1),
    ],
)
def test_a_requirement_without_a_pin_is_found(text: str, count: int) -> None:
    assert len(rules.requirement_problems(Path("requirements.txt"), text)) == count
