"""What the ROS installation of a test can do, and plain nodes of rclcpp that are built for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from wattwire.rig import CellBuild
from wattwire.rig.builds import merge_env

GRAPH_CPP = Path(__file__).with_name("graph_cpp")
FAST_DDS = "rmw_fastrtps_cpp"
"""The RMW that nodes use without RMW_IMPLEMENTATION."""


def numbers_messages(build: CellBuild) -> bool:
    """Return whether the RMW of a cell's build gives each message its number and its publisher.

    rmw_cyclonedds_cpp gives neither `publication_sequence_number` nor the publisher's gid.
    """
    return rmw_of(build) != "rmw_cyclonedds_cpp"


def require_fast_dds(build: CellBuild, feature: str) -> None:
    """Skip a test that uses a feature of Fast DDS if the RMW of a cell's build is another one."""
    if (rmw := rmw_of(build)) != FAST_DDS:
        pytest.skip(f"{rmw} has no {feature}")


def rmw_of(build: CellBuild) -> str:
    """Return the name of the RMW that nodes of a cell's build use."""
    return build.env.get("RMW_IMPLEMENTATION") or FAST_DDS


def built_cpp_nodes(build: CellBuild, folder: Path) -> Path:
    """Return the program of the nodes, built in a folder for the ROS of a cell's build.

    The test is skipped if this ROS has no rclcpp.
    """
    if build.facts["rclcpp"] == "unknown":
        pytest.skip("no rclcpp (it has no wheels); source a ROS installation that includes it")
    environment = merge_env(dict(os.environ), build.env)
    # Wheels are built for one RMW, and their CMake files refuse another one.
    environment.pop("RMW_IMPLEMENTATION", None)
    prefixes = environment["AMENT_PREFIX_PATH"].replace(":", ";")
    options = [f"-DCMAKE_PREFIX_PATH={prefixes}", f"-DPython3_EXECUTABLE={build.words['python']}"]
    configure = ["cmake", "-G", "Ninja", "-S", GRAPH_CPP, "-B", folder, *options]
    for words in (configure, ["cmake", "--build", folder]):
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "node"
