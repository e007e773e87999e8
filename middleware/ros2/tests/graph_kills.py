"""Kill a probe, a node that records its layers, or a node of a user's graph at a random time.

`python -m middleware.ros2.tests.graph_kills --kills 59 [--only SUBJECT …] [--kind KIND …]
[--seed N]` does so as random_kills does with other campaigns. A subject is a campaign: `probe` has
windows of `topics` on a running graph, `profiled` a study with runs that record layers, and `relay`
has `exec --layers` of three unmodified nodes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.end_to_end.random_kills import ExecSetting, Setting, kill_kinds, study_of
from wattwire.catalog import Catalog, home
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.rig.builds import merge_env

HERE = Path(__file__).parent
MESSAGES = 100
PROFILED = (
    study_of("ros2/cpp-rcl", "pipeline")
    .replace("Two short runs", "A short run and one that records layers")
    .replace("payload_bytes = [8, 64]", "payload_bytes = [8]")
    .replace("[fixed]", "[fixed]\nnodes = 3")
    .replace("blocks = 1", "blocks = 1\nlayer_runs = 1")
    .replace("duration_s = 0.2", "duration_s = 0.5")
)  # fmt: skip
KINDS = {
    "probe": ("probe", "controller", "agent", "guard"),
    "profiled": ("profiled", "controller", "agent", "guard"),
    "relay": ("relay.py", "talker.py", "controller", "agent", "guard"),
}
"""Subject → the kinds of its processes."""


@dataclass
class TopicsSetting(Setting):
    """A setting whose campaigns are two windows of a probe."""

    def words(self, *arguments: str) -> tuple[str, ...]:
        if "--resume" in arguments:
            return super().words(*arguments)
        folder = arguments[arguments.index("--campaign") + 1]
        return ("topics", "chatter", "--for", "1s", "--repeat", "2", "--campaign", folder, "--json")


def ros_build(folder: Path) -> CellBuild:
    """Return the build of the rclpy cell, whose Python runs the plain nodes.

    Raises MissingError without ROS 2.
    """
    agent = AgentClient(folder)
    try:
        return Builder(agent).cell(Catalog([home()]).cell("ros2/python"))
    finally:
        agent.close()


@contextlib.contextmanager
def setting_of(subject: str, build: CellBuild, folder: Path) -> Iterator[Setting]:
    """Yield the setting of a subject. The graph of a probe runs meanwhile."""
    variables = {
        "ROS_DOMAIN_ID": str(1 + secrets.randbelow(100)),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    python = build.words["python"]
    if subject == "profiled":
        yield Setting(study=PROFILED)
    elif subject == "relay":
        options = ("--layers", "--for", "4s", "--baseline", "0.05s")
        launched = (str(HERE / "graph" / "launch.sh"), python, str(MESSAGES))
        yield ExecSetting(environment=variables, options=options, measured=launched)
    else:
        words = [python, str(HERE / "plain_graph" / "talker.py"), str(folder / "talker.json")]
        environment = {**merge_env(dict(os.environ), build.env), **variables}
        with subprocess.Popen(words, stdin=subprocess.PIPE, env=environment) as talker:
            yield TopicsSetting(environment=variables)
            assert talker.stdin is not None
            talker.stdin.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=59)
    parser.add_argument("--only", action="append", choices=KINDS)
    parser.add_argument("--kind", action="append")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for subject in options.only or KINDS:
        folder = Path(tempfile.mkdtemp(prefix=f"wattwire-kills-{subject}-"))
        (folder / "agent").mkdir()
        build = ros_build(folder / "agent")
        with setting_of(subject, build, folder) as setting:
            kinds = options.kind or KINDS[subject]
            failed += kill_kinds(kinds, setting, options.kills, options.seed, folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
