"""The probe on graphs of plain nodes of rclpy and rclcpp that count for themselves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from middleware.ros2.tests.installations import (
    built_cpp_nodes,
    numbers_messages,
    require_fast_dds,
)
from wattwire.analysis.streams.numbers import (
    NO_STAMPS,
    OTHER_CLOCK,
    ZERO_STAMPS,
    Stream,
    Watched,
    watched,
)
from wattwire.analysis.streams.recorded import Records
from wattwire.analysis.streams.remarks import remarks
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError, UsageError
from wattwire.rig import AgentClient, Builder, CellBuild, cache
from wattwire.rig.builds import merge_env
from wattwire.run.probing.perturbation import perturbations
from wattwire.run.probing.watching import NothingWatchedError, Watch, WatchRequest
from wattwire.store import Campaign

ROOT = Path(__file__).resolve().parents[3]
PLAIN = Path(__file__).with_name("plain_graph")
DOMAINS = iter(range(60, 100))
EDGE_NS = 200_000_000
"""Time at the ends of a window in which a message may be on its way."""
OWN_ENDS_S = 60.0


@dataclass
class Ros:
    """The environment of plain nodes, and the built probe."""

    build: CellBuild
    python: str
    env: dict[str, str]


@pytest.fixture(scope="module")
def ros(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ros]:
    agent = AgentClient(tmp_path_factory.mktemp("agent"))
    try:
        builder, catalog = Builder(agent), Catalog()
        cell = builder.cell(catalog.cell("ros2/python"))
        build = builder.cell(catalog.probe("ros2/probe"))
        yield Ros(build, cell.words["python"], merge_env(dict(os.environ), cell.env))
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        agent.close()


@contextlib.contextmanager
def graph(
    ros: Ros, nodes: Sequence[Sequence[str]], domain: str, **variables: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run plain nodes, and end them so that they write their files.

    A node is a script of PLAIN or the path of a program, with its arguments.
    """
    env = {**ros.env, "ROS_DOMAIN_ID": domain, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    commands = [
        [program, *words] if program.startswith("/") else
        [ros.python, str(PLAIN / program), *words]
        for program, *words in nodes
    ]  # fmt: skip
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, env={**env, **variables})
        for command in commands
    ]
    try:
        yield processes
    finally:
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            try:
                process.wait(OWN_ENDS_S)
            finally:
                process.kill()


@contextlib.contextmanager
def watching(
    ros: Ros, folder: Path, request: WatchRequest, build: CellBuild | None = None
) -> Iterator[Watch]:
    """Run the probe, whose agent inherits the variables of this test."""
    folder.mkdir()
    (folder / "agent").mkdir()
    agent = AgentClient(folder / "agent")
    try:
        watch = Watch(agent, build or ros.build, request, folder)
        try:
            yield watch
        finally:
            watch.close()
    finally:
        agent.close()


def window(watch: Watch, seconds: float) -> tuple[int, int, Records, Watched]:
    """Watch for some seconds; return begin and end (ns), the records and the numbers."""
    begin_ns = watch.wait_settled()
    watch.sleep(seconds)
    end_ns = time.monotonic_ns()
    watch.sleep(0.5)
    watch.close()
    records = watch.records()
    return begin_ns, end_ns, records, watched(watch.graph, records, begin_ns, end_ns)


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    return str(next(DOMAINS))


def texts(ros: Ros, result: Watched) -> str:
    return "\n".join(remarks(result, Catalog().probe("ros2/probe").remedies))


@pytest.mark.slow
@pytest.mark.quiet
@pytest.mark.parametrize("library", ["rclpy", "rclcpp"])
def test_the_probe_sees_the_messages_that_the_nodes_count(
    ros: Ros, domain: str, tmp_path: Path, library: str
) -> None:
    names = ("talker", "relay", "listener")
    if library == "rclpy":
        nodes = [[f"{name}.py", str(tmp_path / name)] for name in names]
    else:
        program = str(built_cpp_nodes(ros.build, tmp_path / "build"))
        nodes = [[program, name, str(tmp_path / name)] for name in names]
    with (
        graph(ros, nodes, domain),
        watching(ros, tmp_path / "probe", WatchRequest(domain=domain)) as watch,
    ):
        begin_ns, end_ns, records, result = window(watch, 6.0)
    sent = json.loads((tmp_path / "talker").read_text())
    relayed = json.loads((tmp_path / "listener").read_text())
    chatter, relay = result.streams
    assert (chatter.topic, chatter.node) == ("/chatter", "/talker")
    assert (relay.topic, relay.node) == ("/relayed", "/relay")
    seen = Counter(int(stamp) for stamp in records["stamp_ns"])
    due = {stamp for stamp, t in sent if begin_ns + EDGE_NS < t < end_ns - EDGE_NS}
    # A relayed message has the stamp of the one that the relay received, so it is seen twice.
    due_twice = due & {stamp for stamp, _ in relayed}
    for expected, times in ((due, 1), (due_twice, 2)):
        assert len(expected) > 200
        assert sum(seen[stamp] >= times for stamp in expected) >= 0.999 * len(expected)
    if numbers_messages(ros.build):
        assert chatter.faults is not None and chatter.faults.lost == 0
    else:
        assert chatter.faults is None
    times_ns = [t for _, t in sent if begin_ns < t < end_ns]
    rate_hz = 1e9 * (len(times_ns) - 1) / (times_ns[-1] - times_ns[0])
    assert chatter.rate_hz == pytest.approx(rate_hz, rel=0.05)
    assert abs(chatter.messages - len(times_ns)) <= 0.05 * len(times_ns)
    assert chatter.latency is not None and chatter.latency.p50_us > 0
    # The relay works for 3 ms after it has received the stamp.
    assert chatter.age is not None and relay.age is not None
    assert relay.age.p50_us > 3000 + chatter.latency.p50_us / 10
    assert relay.age.p50_us > relay.latency.p50_us + 3000  # type: ignore[union-attr]
    assert result.cost is not None and result.cost.cpu_us_per_message is not None
    assert "one more reader" in texts(ros, result)


@pytest.mark.slow
@pytest.mark.quiet
def test_lost_messages_are_those_that_did_not_arrive(
    ros: Ros, domain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped probe cannot read its socket, so the kernel drops datagrams of best effort."""
    require_fast_dds(ros.build, "FASTDDS_BUILTIN_TRANSPORTS")
    udp = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4", "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
    for name, value in udp.items():
        monkeypatch.setenv(name, value)
    talker = ["talker.py", str(tmp_path / "talker"), "200", "50000", "best_effort"]
    with (
        graph(ros, [talker], domain, **udp),
        watching(ros, tmp_path / "probe", WatchRequest(["chatter"], domain=domain)) as watch,
    ):
        begin_ns = watch.wait_settled()
        pid = watch.graph.probe["pid"]
        watch.sleep(1.0)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)
        watch.sleep(1.5)
        end_ns = time.monotonic_ns()
        watch.close()
        records = watch.records()
        (stream,) = watched(watch.graph, records, begin_ns, end_ns).streams
    inside = records[(records["monotonic_ns"] >= begin_ns) & (records["monotonic_ns"] < end_ns)]
    received = {int(stamp) for stamp in inside["stamp_ns"]}
    sent = [stamp for stamp, _ in json.loads((tmp_path / "talker").read_text())]
    between = [stamp for stamp in sent if min(received) <= stamp <= max(received)]
    missing = len(set(between) - received)
    assert missing > 50
    assert stream.faults is not None and stream.faults.lost == missing


def await_subscriptions(watch: Watch, count: int) -> None:
    """Wait until the probe has subscribed to /chatter `count` times again."""
    deadline_s = time.monotonic() + 60.0
    while watch.graph.topics["/chatter"]["resubscribed"] < count:
        assert time.monotonic() < deadline_s
        watch.sleep(0.5)


@pytest.mark.slow
@pytest.mark.quiet
def test_a_publisher_that_offers_less_costs_no_message_of_the_others(
    ros: Ros, domain: str, tmp_path: Path
) -> None:
    """The probe subscribes again when it comes and when it leaves."""
    first = ["talker.py", str(tmp_path / "reliable"), "200"]
    second = ["talker.py", str(tmp_path / "best_effort"), "50", "0", "best_effort"]
    with (
        graph(ros, [first], domain),
        watching(ros, tmp_path / "probe", WatchRequest(["chatter"], domain=domain)) as watch,
    ):
        begin_ns = watch.wait_settled()
        subscribed_ns = watch.graph.topics["/chatter"]["subscribed_monotonic_ns"]
        with graph(ros, [second], domain):
            await_subscriptions(watch, 1)
            watch.sleep(4.0)
            weaker = watch.graph.topics["/chatter"]
            assert (weaker["resubscribed"], weaker["publishers"]) == (1, 2)
            assert weaker["read_with"]["reliability"] == "best_effort"
        await_subscriptions(watch, 2)
        watch.sleep(4.0)
        end_ns = time.monotonic_ns()
        watch.close()
        records, topic = watch.records(), watch.graph.topics["/chatter"]
    assert (topic["resubscribed"], topic["read_with"]["reliability"]) == (2, "reliable")
    assert topic["subscribed_monotonic_ns"] > weaker["subscribed_monotonic_ns"] > subscribed_ns
    taken = Counter(int(stamp) for stamp in records["stamp_ns"])
    assert set(taken.values()) == {1}
    sent = json.loads((tmp_path / "reliable").read_text())
    due = {s for s, t in sent if begin_ns + EDGE_NS < t < end_ns - EDGE_NS}
    assert len(due) > 1000
    assert due <= set(taken)
    assert len({s for s, _ in json.loads((tmp_path / "best_effort").read_text())} & set(taken)) > 50
    facts = (tmp_path / "probe" / "facts.jsonl").read_text().splitlines()
    scans = [fact for fact in map(json.loads, facts) if fact["kind"] == "scan"]
    assert scans and all(scan["end_ns"] - scan["begin_ns"] >= 1_000_000 for scan in scans)


LEASE = """<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com">
  <participant profile_name="short_lease" is_default_profile="true"><rtps><builtin>
    <discovery_config>
      <leaseDuration><sec>2</sec></leaseDuration>
      <leaseAnnouncement><sec>1</sec></leaseAnnouncement>
    </discovery_config>
  </builtin></rtps></participant>
</profiles>
"""


@pytest.mark.slow
@pytest.mark.quiet
def test_a_publisher_that_returns_has_not_ended(ros: Ros, domain: str, tmp_path: Path) -> None:
    """A node that was stopped for longer than its lease returns with the same publishers."""
    require_fast_dds(ros.build, "profile with a shorter lease")
    profile = tmp_path / "lease.xml"
    profile.write_text(LEASE)
    variables = {"FASTDDS_DEFAULT_PROFILES_FILE": str(profile)}
    with (
        graph(ros, [["talker.py", str(tmp_path / "talker")]], domain, **variables) as (talker,),
        watching(ros, tmp_path / "probe", WatchRequest(["chatter"], domain=domain)) as watch,
    ):
        watch.wait_settled()
        (index,) = watch.graph.streams
        talker.send_signal(signal.SIGSTOP)
        wait_until(watch, lambda: set(watch.graph.gone_ns) == {index})
        talker.send_signal(signal.SIGCONT)
        wait_until(watch, lambda: not watch.graph.gone_ns)
        watch.sleep(1.0)
        count = len(watch.records())
        watch.sleep(1.0)
        assert len(watch.records()) > count
        assert set(watch.graph.streams) == {index}


def wait_until(watch: Watch, is_reached: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + OWN_ENDS_S
    while not is_reached():
        assert time.monotonic() < deadline_s, watch.graph
        watch.sleep(0.1)


@pytest.fixture(scope="module")
def odd(ros: Ros, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """The numbers of a graph with everything that a graph should not have."""
    domain, folder = str(next(DOMAINS)), tmp_path_factory.mktemp("odd")
    paths = ros.build.env["LD_LIBRARY_PATH"].split(":")
    without = ":".join(path for path in paths if "/interfaces/" not in path)
    build = replace(ros.build, env={**ros.build.env, "LD_LIBRARY_PATH": without})
    dying = ["talker.py", str(folder / "dying"), "50", "0", "reliable", "dying"]
    with (
        graph(ros, [["odd_nodes.py", "own_interface"], dying], domain) as processes,
        watching(ros, folder / "probe", WatchRequest(domain=domain), build) as watch,
    ):
        begin_ns = watch.wait_settled()
        watch.sleep(1.0)
        processes[1].kill()
        watch.sleep(4.0)
        end_ns = time.monotonic_ns()
        watch.close()
        return watched(watch.graph, watch.records(), begin_ns, end_ns)


def streams(result: Watched, topic: str) -> list[Stream]:
    return [stream for stream in result.streams if stream.topic == topic]


def test_two_publishers_of_a_topic_have_a_row_each(ros: Ros, odd: Watched) -> None:
    first, second = streams(odd, "/shared")
    assert first.gid != second.gid
    assert first.messages > 50 and second.messages > 50
    if numbers_messages(ros.build):
        assert "/shared has 2 publishers, each with its own row" in texts(ros, odd)
    else:
        assert "does not tell which node sent a message" in texts(ros, odd)


def test_nodes_of_one_name_are_named(ros: Ros, odd: Watched) -> None:
    assert odd.graph.nodes["repeated"] == {"/twin": 2}
    assert "2 nodes have the name /twin" in texts(ros, odd)


def test_stamps_that_give_no_age_are_told_apart(ros: Ros, odd: Watched) -> None:
    (zero,), (simulated,), (ahead,) = (
        streams(odd, topic) for topic in ("/zero", "/simulated", "/ahead")
    )
    assert (zero.age, zero.no_age, zero.stamps.zero) == (None, ZERO_STAMPS, zero.messages)
    assert (simulated.age, simulated.no_age) == (None, OTHER_CLOCK)
    assert simulated.stamps.old == simulated.messages
    assert (ahead.age, ahead.no_age, ahead.stamps.ahead) == (None, OTHER_CLOCK, ahead.messages)
    assert all(s.latency is not None for s in (zero, simulated, ahead))
    assert all(s.no_age == NO_STAMPS for s in streams(odd, "/shared"))
    assert "/zero of /odd: its publisher sets no stamps" in texts(ros, odd)
    assert "simulated time" in texts(ros, odd)


def test_a_publisher_that_dies_is_named(ros: Ros, odd: Watched) -> None:
    (dying,) = streams(odd, "/dying")
    assert dying.gone or dying.silent_s is not None
    assert "/dying of /talker: " in texts(ros, odd)


def test_a_subscription_that_never_matches_is_named(ros: Ros, odd: Watched) -> None:
    (mismatch,) = odd.graph.mismatches
    assert mismatch["topic"] == "/unreliable" and mismatch["receiving_node"] == "/odd"
    assert "never receives messages of /odd" in texts(ros, odd)
    assert streams(odd, "/unreliable")[0].messages > 50


def test_a_topic_whose_type_is_not_installed_is_named_with_the_remedy(
    ros: Ros, odd: Watched
) -> None:
    assert not streams(odd, "/own_interface")
    text = texts(ros, odd)
    assert "/own_interface (wattwire_interfaces/msg/Bytes) is not read" in text
    assert "Source the workspace" in text


def test_a_topic_with_two_types_is_read_with_the_installed_one(ros: Ros, odd: Watched) -> None:
    (stream,) = streams(odd, "/two_types")
    assert (stream.node, stream.type) == ("/other", "std_msgs/msg/String")
    assert stream.messages > 50
    topic = odd.graph.topics["/two_types"]
    assert (topic["publishers"], topic["readable"], topic["problem"]) == (2, 1, "")
    unread = odd.graph.topics["/own_interface"]
    assert (unread["cause"], topic["cause"]) == ("type", "")


def test_latched_messages_and_unpublished_topics_are_named(ros: Ros, odd: Watched) -> None:
    (latched,) = streams(odd, "/latched")
    assert (latched.messages, latched.before, latched.latency) == (0, 1, None)
    text = texts(ros, odd)
    assert "Without a publisher: /unpublished" in text
    assert "/rosout" in text and "/parameter_events" in text


def test_what_is_excluded_is_not_subscribed_to(ros: Ros, domain: str, tmp_path: Path) -> None:
    request = WatchRequest(["/s*", "/rosout"], ["/simulated"], domain)
    with (
        graph(ros, [["odd_nodes.py"]], domain),
        watching(ros, tmp_path / "probe", request) as watch,
    ):
        _, _, _, result = window(watch, 1.0)
    assert {stream.topic for stream in result.streams} == {"/shared", "/rosout"}
    assert "/simulated" in result.graph.scan["excluded"]


def test_a_pattern_without_a_topic_names_the_topics(ros: Ros, domain: str, tmp_path: Path) -> None:
    with (
        graph(ros, [["odd_nodes.py"]], domain),
        watching(ros, tmp_path / "probe", WatchRequest(["/camera/*"], domain=domain)) as watch,
        pytest.raises(UsageError, match=r"no topic matches /camera/\*; the graph has .*/ahead"),
    ):
        watch.wait_settled()


def test_a_domain_without_a_graph_names_what_limits_the_search(
    ros: Ros, domain: str, tmp_path: Path
) -> None:
    with (
        watching(ros, tmp_path / "probe", WatchRequest(domain=domain)) as watch,
        pytest.raises(NothingWatchedError) as error,
    ):
        watch.wait_settled()
    text = str(error.value)
    assert "no graph within 10 s: the probe found no node and no topic. It searched" in text
    assert f"ROS_DOMAIN_ID={domain}" in text and "ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST" in text
    assert "ROS_LOCALHOST_ONLY" in text
    assert "RMW_IMPLEMENTATION=rmw_" in text and "RMW=" not in text


def test_a_domain_above_the_limit_is_refused_before_the_search() -> None:
    done = command(["--domain", "300"], dict(os.environ))
    assert done.returncode == 2
    assert "--domain: found '300'; allowed: a number from 0 to 232" in done.stderr


def test_the_probe_can_be_built_in_advance(ros: Ros) -> None:
    words = [sys.executable, "-m", "wattwire", "build", "ros2/probe"]
    done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ros2/probe: was built before\n"), done.stderr


def test_without_a_usable_ros_the_command_says_what_to_source(tmp_path: Path) -> None:
    env = {**os.environ, "ROS_DISTRO": "foxy", "AMENT_PREFIX_PATH": str(tmp_path)}
    done = command(["--for", "1s"], env)
    assert done.returncode == 3
    assert "'foxy'" in done.stderr and "Source one of these" in done.stderr


@pytest.mark.slow
@pytest.mark.quiet
def test_the_command_prints_json_lines_and_ctrl_c_keeps_the_result(
    ros: Ros, domain: str, tmp_path: Path
) -> None:
    env, begun_s = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, time.time()
    with graph(ros, [["talker.py", str(tmp_path / "talker")]], domain):
        done = command(["chatter", "--domain", domain, "--for", "2s", "--json"], env)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        (stream,) = (line for line in lines if line["kind"] == "stream")
        assert stream["topic"] == "/chatter" and stream["messages"] > 1
        assert 0 < stream["rate_hz"] < 100
        assert {line["kind"] for line in lines} >= {"stream", "topic", "probe_cost", "remark"}
        with live(domain, env) as process:
            assert process.stdout is not None
            line = next(line for line in process.stdout if "/chatter" in line)
            assert "/talker" in line
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            assert process.wait(OWN_ENDS_S) == 0
            assert "one more reader" in rest
    leftovers = (cache.folder() / "attempts").glob("topics-*")
    assert [path for path in leftovers if path.stat().st_ctime >= begun_s] == []


@contextlib.contextmanager
def live(domain: str, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run `wattwire topics --live`, and kill it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "wattwire", "topics", "--domain", domain, "--live"],
        cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait(OWN_ENDS_S)


def command(arguments: Sequence[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wattwire", "topics", *arguments],
        cwd=ROOT, env=env, text=True, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.quiet
def test_windows_are_stored_as_campaigns_that_can_be_compared(
    ros: Ros, domain: str, tmp_path: Path
) -> None:
    env = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    options = [
        "chatter",
        "--domain",
        domain,
        "--for",
        "1s",
        "--repeat",
        "3",
        "--json",
        "--campaign",
    ]
    for name, hz in (("base", "50"), ("head", "20")):
        talker = ["talker.py", str(tmp_path / "talker"), hz]
        with graph(ros, [talker], domain) as (process,):
            attach = ["--attach", f"pid:{process.pid}"]
            done = command([*options, str(tmp_path / name), *attach], env)
        assert done.returncode == 0, done.stderr
        (line,) = [json.loads(x) for x in done.stdout.splitlines() if '"stream"' in x]
        campaign = Campaign(tmp_path / name)
        *_, row = campaign.summary().iter_rows(named=True)
        campaign.close()
        assert row["value.chatter_rate_hz"] == line["rate_hz"] > 0
        assert row.get("value.chatter_lost") == (0 if numbers_messages(ros.build) else None)
        assert row["value.chatter_latency_p50_us"] == line["latency"]["p50_us"]
        assert row["cpu_share.probe"] > 0 and row["cpu_share.attached0"] > 0
        cpu_us = [row[name] for name in row if name.endswith("_cpu_per_message_us")]
        per_message = pytest.approx(1e6 * row["cpu_s"] / line["messages"], rel=0.01)
        # A gid of Fast DDS has the number of the process.
        assert cpu_us == ([per_message] if numbers_messages(ros.build) else [])
        page = (tmp_path / name / "report" / "index.html").read_text(encoding="utf-8")
        assert "chatter_latency_p50_us" in page
    compared = subprocess.run(
        [sys.executable, "-m", "wattwire", "compare", str(tmp_path / "base"),
         str(tmp_path / "head"), "--response", "value.chatter_rate_hz"],
        cwd=ROOT, env=env, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert compared.returncode == 1, compared.stdout + compared.stderr
    assert "chatter rate" in compared.stdout


@pytest.mark.slow
@pytest.mark.quiet
def test_the_perturbation_is_a_difference_per_pair(ros: Ros, domain: str, tmp_path: Path) -> None:
    folders = (tmp_path / f"probe{at}" for at in range(3))

    def new_folder() -> Path:
        folder = next(folders)
        folder.mkdir()
        return folder

    (tmp_path / "agent").mkdir()
    agent = AgentClient(tmp_path / "agent")
    try:
        with graph(ros, [["talker.py", str(tmp_path / "talker")]], domain):
            request = WatchRequest(domain=domain)
            differences = perturbations(agent, ros.build, request, new_folder, 3, 0.5)
    finally:
        agent.close()
    assert len(differences) == 3
    cores = os.cpu_count() or 1
    assert all(-cores <= difference <= cores for difference in differences)


@pytest.mark.slow
@pytest.mark.quiet
def test_a_killed_command_leaves_no_process_and_no_file(
    ros: Ros, domain: str, tmp_path: Path
) -> None:
    require_fast_dds(ros.build, "segments of shared memory")
    env = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    attempts = cache.folder() / "attempts"
    with graph(ros, [["talker.py", str(tmp_path / "talker")]], domain) as (talker,):
        while not (before := shared_memory(talker.pid)):
            time.sleep(0.1)
        others = set(attempts.glob("topics-*"))
        with live(domain, env) as process:
            assert process.stdout is not None
            assert any("/chatter" in line for line in process.stdout)
            (folder,) = set(attempts.glob("topics-*")) - others
            (facts,) = folder.glob("probe-*/facts.jsonl")
            pid = json.loads(facts.read_text().splitlines()[0])["pid"]
            own = shared_memory(pid) - before
            assert own
        left = [folder, Path(f"/proc/{pid}"), *own]
        deadline_s = time.monotonic() + OWN_ENDS_S
        while left := [path for path in left if path.exists()]:
            assert time.monotonic() < deadline_s, left
            time.sleep(0.1)


def shared_memory(pid: int) -> set[Path]:
    """Return the segments of Fast DDS that a process has mapped. Ports belong to no process."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    paths = {Path(line.split()[-1]) for line in lines if "/dev/shm/fast" in line}
    return {path for path in paths if "port" not in path.name}
