"""`python tools/kit_lints.py`: check formats and lints of the kits and cells of some languages.

A language is skipped, with the reason, if its tools are missing. The exit code is 1 if a tool
reports a problem. A cell depends on its language's kit at `_kit`, which exists only in a build.
Each cell is therefore laid out below target/ with the kit and the generated files of its build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parents[1]
WORKSHOP = ROOT / "target" / "kit-lints"
CACHE = Path(os.environ.get("WATTWIRE_CACHE", Path.home() / ".cache" / "wattwire"))
GO_KIT = ROOT / "languages" / "go" / "kit"
JAVA_FORMATTER = "com.google.googlejavaformat:google-java-format:1.22.0:jar:all-deps"
JAVA_FORMATTER_NEEDS = [
    f"--add-exports=jdk.compiler/com.sun.tools.javac.{package}=ALL-UNNAMED"
    for package in ("api", "code", "file", "parser", "tree", "util")
]
JAVA_JSON = "com.eclipsesource.minimal-json:minimal-json:0.9.5"
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
GO_ENVIRONMENT = {
    "GOCACHE": str(CACHE / "go" / "build"),
    "GOPATH": str(CACHE / "go" / "path"),
    "GOFLAGS": "-buildvcs=false -modcacherw",
    "GOWORK": "off",
    "GOTOOLCHAIN": "local",
}


def tracked(suffix: str, *folders: str) -> list[str]:
    """Return the files of the repository in some folders that have this suffix."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if name.endswith(suffix)]


def passes(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> bool:
    """Run a command and return whether it succeeds. Its output goes to standard error."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, stdout=sys.stderr,
        check=False,
    )  # fmt: skip
    return done.returncode == 0


def cells_in(language: str) -> list[Path]:
    """Return the folders of a language's cells, including the cells of the bench."""
    roots = (ROOT / "middleware", ROOT / "bench" / "cells" / "middleware")
    return sorted(path for root in roots for path in root.glob(f"*/{language}"))


def gofmt_passes(names: Sequence[str]) -> bool:
    """Print the files that gofmt would change, and return whether there are none."""
    done = subprocess.run(
        ["gofmt", "-l", *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    for name in done.stdout.splitlines():
        print(f"{name}: not as gofmt writes it", file=sys.stderr)
    return done.returncode == 0 and not done.stdout


def lay_out_go(cell: Path) -> Path:
    """Copy a cell and its kit to a new folder, and return the folder."""
    folder = WORKSHOP / f"{cell.parent.name}-{cell.name}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cell, folder)
    shutil.copytree(GO_KIT, folder / "_kit", ignore=shutil.ignore_patterns("tests"))
    return folder


def generate(cell: Path, folder: Path) -> str:
    """Run all commands of a cell's build except the last; return the reason if one fails."""
    manifest = tomllib.loads((cell / "node.toml").read_text(encoding="utf-8"))
    missing = [name for name in manifest.get("requires", []) if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    interfaces = next((cell.parent / "idl").glob("*"), cell).parent
    words = {"source": folder, "build": folder / "build", "environment": interfaces, "cache": CACHE}
    for template in manifest.get("build", {}).get("commands", [])[:-1]:
        command = [part.format_map(words) for part in template]
        if not passes(command, folder):
            return "its build fails before it compiles"
    return ""


def lint_go() -> list[str]:
    """Return the messages of gofmt and go vet."""
    failed = [] if gofmt_passes(tracked(".go", "languages", "middleware", "bench")) else ["gofmt"]
    if not passes(["go", "vet", ".", "./web"], GO_KIT, GO_ENVIRONMENT):
        failed.append("go vet: languages/go/kit")
    for cell in cells_in("go"):
        folder = lay_out_go(cell)
        reason = generate(cell, folder)
        if reason:
            print(f"{cell.relative_to(ROOT)}: not vetted: {reason}", file=sys.stderr)
        elif not passes(["go", "vet", "."], folder, GO_ENVIRONMENT):
            failed.append(f"go vet: {cell.relative_to(ROOT)}")
    return failed


def lint_csharp() -> list[str]:
    """Return the cells for which Mono's compiler reports warnings at its highest level.

    None of Debian's formatters can parse current C#; astyle fails on lambdas.
    """
    kit = ROOT / "languages" / "csharp" / "kit"
    output = WORKSHOP / "csharp.exe"
    output.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    for cell in cells_in("csharp"):
        manifest = tomllib.loads((cell / "node.toml").read_text(encoding="utf-8"))
        flags = manifest.get("build", {}).get("lists", {}).get("build_flags", [])
        flags = [flag.replace("{kit}", str(kit)) for flag in flags]
        sources = [f"{kit}/*.cs", f"{cell}/*.cs"]
        command = ["mcs", "-nologo", "-warn:4", "-warnaserror", "-pkg:newtonsoft-json", *flags]
        if not passes([*command, f"-out:{output}", *sources], ROOT):
            failed.append(f"mcs: {cell.relative_to(ROOT)}")
    return failed


def fetched(artifact: str, folder: Path, sums: Path) -> str:
    """Fetch an artifact with Maven and check its hash; return the reason if this fails."""
    command = ["mvn", "--quiet", "--batch-mode", "--strict-checksums", f"-Dartifact={artifact}"]
    command += [f"-Dmaven.repo.local={CACHE / 'maven'}", f"-DoutputDirectory={folder}", MAVEN_COPY]
    if not passes(command, ROOT):
        return f"Maven cannot fetch {artifact}"
    if not passes(["sha256sum", "--check", "--strict", "--quiet", str(sums)], folder):
        return f"{artifact} is not the one of {sums.relative_to(ROOT)}"
    return ""


def lint_java() -> list[str]:
    """Return the changes of google-java-format and the warnings of javac about the kit.

    The builds of the cells compile with all warnings, because they fetch the libraries.
    """
    java, failed = ROOT / "languages" / "java", []
    folder = WORKSHOP / "java"
    folder.mkdir(parents=True, exist_ok=True)
    problem = fetched(JAVA_FORMATTER, folder, java / "formatter.sha256")
    if problem:
        print(f"google-java-format: skipped: {problem}", file=sys.stderr)
    else:
        command = ["java", *JAVA_FORMATTER_NEEDS, "-jar", str(next(folder.glob("google-*.jar")))]
        command += ["--aosp", "--dry-run", "--set-exit-if-changed"]
        if not passes([*command, *tracked(".java", "languages", "middleware", "bench")], ROOT):
            failed.append("google-java-format: the files above")
    problem = fetched(JAVA_JSON, folder, java / "kit" / "libraries.sha256")
    if problem:
        print(f"javac: skipped: {problem}", file=sys.stderr)
        return failed
    command = ["javac", "-encoding", "UTF-8", "-Xlint:all,-classfile,-path", "-Werror"]
    command += ["-d", str(folder / "classes"), "-cp", f"{folder}/*"]
    command += ["-sourcepath", f"{java / 'kit'}:{java / 'kit' / 'tests'}"]
    sources = [*(java / "kit").glob("wattwire/*.java"), *(java / "kit").glob("*/wattwire/*.java")]
    sources += (java / "kit" / "web").glob("*.java")
    if not passes([*command, *map(str, sources)], ROOT):
        failed.append("javac: languages/java/kit")
    return failed


def install_javascript_lints() -> Path:
    """Install the packages of the lock file in languages/javascript/lint; return the folder."""
    source = ROOT / "languages" / "javascript" / "lint"
    folder = WORKSHOP / "javascript"
    installed = folder / "node_modules" / ".package-lock.json"
    lock = source / "package-lock.json"
    is_new = not installed.is_file() or lock.read_bytes() != (folder / lock.name).read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        shutil.copy(path, folder)
    if is_new:
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(CACHE / "npm")]
        if not passes(["npm", "ci", *flags], folder):
            (folder / lock.name).unlink()  # so that the next run installs the packages again
    return folder


def lint_javascript() -> list[str]:
    """Return the tools among node --check, prettier and eslint that report a problem."""
    names = tracked(".js", "languages", "middleware", "bench")
    failed = [
        f"node --check: {name}" for name in names if not passes(["node", "--check", name], ROOT)
    ]
    folder = install_javascript_lints()
    programs = folder / "node_modules" / ".bin"
    if not (programs / "eslint").exists():
        print("lint: prettier and eslint skipped: npm could not install them", file=sys.stderr)
        return failed
    prettier = [str(programs / "prettier"), "--config", str(folder / "prettier.json")]
    if not passes([*prettier, "--check", "--log-level", "warn", *names], ROOT):
        failed.append("prettier")
    config = str(folder / "eslint.config.js")
    if not passes([str(programs / "eslint"), "--config", config, *names], ROOT):
        failed.append("eslint")
    return failed


def checked(command: Sequence[str], suffix: str, silence: str) -> list[str]:
    """Return the files with this suffix for which a syntax check prints more than `silence`."""
    failed = []
    for name in tracked(suffix, "languages", "middleware", "bench"):
        done = subprocess.run(
            [*command, name], cwd=ROOT, capture_output=True, text=True, check=False
        )
        said = (done.stdout + done.stderr).strip()
        if done.returncode != 0 or said != silence.format(name=name):
            print(said, file=sys.stderr)
            failed.append(f"{' '.join(command)}: {name}")
    return failed


def lint_ruby() -> list[str]:
    """Return the Ruby files with syntax warnings, and rubocop if it reports a problem."""
    failed = checked(["ruby", "-wc"], ".rb", "Syntax OK")
    if shutil.which("rubocop") is None:
        print("lint: rubocop skipped: it is not installed", file=sys.stderr)
        return failed
    config = str(ROOT / "languages" / "ruby" / "rubocop.yml")
    command = ["rubocop", "--config", config, "--cache", "false", "--format", "emacs"]
    if not passes([*command, *tracked(".rb", "languages", "middleware", "bench")], ROOT):
        failed.append("rubocop")
    return failed


def lint_php() -> list[str]:
    """Return the PHP files that do not parse, and phpcs if it reports a problem."""
    failed = checked(["php", "-l"], ".php", "No syntax errors detected in {name}")
    if shutil.which("phpcs") is None:
        print("lint: phpcs skipped: it is not installed", file=sys.stderr)
        return failed
    config = ROOT / "languages" / "php" / "phpcs.xml"
    command = ["phpcs", "-q", f"--standard={config}", "--report=emacs"]
    if not passes([*command, *tracked(".php", "languages", "middleware", "bench")], ROOT):
        failed.append("phpcs")
    return failed


LINTS = {
    "Go": (lint_go, ("go", "gofmt")),
    "C#": (lint_csharp, ("mcs", "pkg-config")),
    "Java": (lint_java, ("javac", "java", "mvn")),
    "JavaScript": (lint_javascript, ("node", "npm")),
    "PHP": (lint_php, ("php",)),
    "Ruby": (lint_ruby, ("ruby",)),
}


def main() -> int:
    failed = []
    for language, (lint, programs) in LINTS.items():
        missing = [name for name in programs if shutil.which(name) is None]
        if missing:
            print(f"lint: {language} skipped: no {', '.join(missing)}", file=sys.stderr)
        else:
            failed += lint()
    for name in failed:
        print(f"{name}: has something to say, see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
