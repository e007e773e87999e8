"""Commands that redo a run, tried as a person would: by the shell, in another folder."""

import json
import subprocess
import sys

from wattwire.cli.show import _commands

NODE = "import json, sys; spec = json.load(open(sys.argv[2])); print(open(spec['tls.key']).read())"


def test_what_a_run_was_given_is_found_where_the_run_is_now(tmp_path):
    runs = tmp_path / "a & b|c" / "runs"
    folder, attempt = runs / "b01-p001-1", runs / ".b01-p001-1.partial"
    out = folder / "out" / "server-0"
    out.mkdir(parents=True)
    (folder / "tls").mkdir()
    (folder / "tls" / "key.pem").write_text("the key")
    given = {"run": "t", "tls.key": str(attempt / "tls" / "key.pem"), "payload.literal": "a|&"}
    (out / "spec.json").write_text(json.dumps(given, indent=1))
    argv = [sys.executable, "-c", NODE, "--spec", str(attempt / "out/server-0/spec.json"),
            "--out", str(attempt / "out/server-0")]  # fmt: skip
    document = {
        "run": "b01-p001", "attempt": 1, "token": "t", "services": [],
        "commands": {"server-0": argv}, "environments": {},
    }  # fmt: skip
    script = "\n".join(_commands(folder, document))
    done = subprocess.run(
        ["sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "the key\n"
    copied = json.loads((tmp_path / "again/server-0/spec.json").read_text())
    assert copied == {**given, "tls.key": str(folder / "tls" / "key.pem")}
    assert json.loads((out / "spec.json").read_text()) == given
