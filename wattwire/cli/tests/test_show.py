"""Tests of the commands of `show`, which repeat a run in a shell in another folder."""

import json
import shutil
import subprocess
import sys

from wattwire.cli.main import main
from wattwire.cli.verbs.show import _commands, _evidence
from wattwire.model.metrics import EVIDENCE, metrics_in
from wattwire.store import Campaign

NODE = "import json, sys; spec = json.load(open(sys.argv[2])); print(open(spec['file']).read())"


def test_what_a_run_was_given_is_found_where_the_run_is_now(tmp_path):
    runs = tmp_path / "a & b|c" / "runs"
    folder, attempt = runs / "b01-p001-1", runs / ".b01-p001-1.partial"
    out = folder / "out" / "server-0"
    out.mkdir(parents=True)
    (folder / "out" / "file").write_text("its text")
    given = {"run": "t", "file": str(attempt / "out" / "file"), "payload.literal": "a|&",
             "tls.key": "/removed/key.pem"}  # fmt: skip
    (out / "spec.json").write_text(json.dumps(given, indent=1))
    argv = [sys.executable, "-c", NODE, "--spec", str(attempt / "out/server-0/spec.json"),
            "--out", str(attempt / "out/server-0")]  # fmt: skip
    document = {
        "run": "b01-p001", "attempt": 1, "token": "t", "services": [],
        "commands": {"server-0": argv}, "environments": {},
    }  # fmt: skip
    script = "\n".join(_commands(folder, document))
    assert "# The credentials that spec.json names were removed with the run." in script
    done = subprocess.run(
        ["sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "its text\n"
    copied = json.loads((tmp_path / "again/server-0/spec.json").read_text())
    assert copied == {**given, "file": str(folder / "out" / "file")}
    assert json.loads((out / "spec.json").read_text()) == given


def test_a_run_whose_folder_is_gone_is_told_from_journal_and_summary(tmp_path, capsys):
    campaign = Campaign.create(tmp_path / "c")
    campaign.journal.write_plan([("b01-p001", 1, 1, "t1")])
    number = campaign.journal.begin("b01-p001", "token", "now")
    partial = campaign.open_attempt("b01-p001", number)
    row = {"run": "b01-p001", "attempt": 1, "verdict": "valid", "factor.clients": 3, "sent": 1234}
    (partial / "summary.json").write_text(json.dumps(row))
    folder = campaign.commit("b01-p001", number, partial)
    campaign.journal.finish("b01-p001", number, "valid", "timed_out", folder, "later")
    campaign.write_summary(campaign.rows(), {})
    campaign.close()
    shutil.rmtree(tmp_path / "c" / "runs" / folder)
    for options in ([], ["--commands"]):
        assert main(["show", str(tmp_path / "c"), "b01-p001", *options]) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "attempt 1: timed out; verdict valid" in said and "is missing" in said
        assert "clients 3" in said and "1 234" in said


def test_only_shares_of_the_evidence_are_percentages():
    before = {"other_load_share": 0.01, "steal_share": 0.0, "waited_s": 0.5, "quiet": True}
    document = {"conditions_before": before, "sampling": {}, "seconds": {}}
    values = {"link_late_p99_ms": 0.0421, "inner_frames": 3.0}
    row = {name: values.get(name, 0.25) for name in metrics_in(EVIDENCE)}
    printed = [text for _, text in _evidence(document, row)][1:-1]
    assert len(printed) == len(row)
    assert [text for text in printed if text != "25 %"] == ["0.0421 ms", "3"]
