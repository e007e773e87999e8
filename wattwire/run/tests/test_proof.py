"""Tests of the proof of security: the search for the fill, and what uninvited nodes received."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from contract.conformance.payload import payload, record
from wattwire.hosts.hosts import here
from wattwire.model.deployment import HOST, NODE, Deployment, Flow, Process
from wattwire.rig.agent import AgentClient
from wattwire.rig.emulator_log import MAGIC, RECORD
from wattwire.run.node_specs import RunNode
from wattwire.run.proof.fill import PIECE_BYTES, fill_of, search
from wattwire.run.proof.result import proof_of
from wattwire.run.proof.uninvited import Uninvited, UninvitedNodes, uninvited_copies
from wattwire.run.results.summary import Collected
from wattwire.run.run_processes import ProcessState, RunProcesses

SEED = 0x0012_3456_789A_BCDE


def spec(length=256, encoding="bytes", literal=""):
    return {
        "payload.bytes": length, "payload.encoding": encoding, "payload.literal": literal,
        "payload.seed": SEED,
    }  # fmt: skip


def capture(*frames):
    header = struct.pack("<IHHIIII", 0xA1B2_3C4D, 2, 4, 0, 0, 65_536, 1)
    sized = ((len(frame), frame) for frame in frames)
    return header + b"".join(struct.pack("<IIII", 1, 2, n, n) + frame for n, frame in sized)


def frames_with_fill(content, fills):
    return search(BytesIO(content), fills)[1]


@pytest.mark.parametrize("encoding", ["bytes", "text"])
@pytest.mark.parametrize("length", [64, 80, 1024, 5003])
def test_the_fill_is_what_the_contract_puts_into_plain_messages(encoding, length):
    whole = payload(7, 1, length, SEED, encoding == "text")
    fill = fill_of(spec(length, encoding))
    unit = 2 if encoding == "text" else 1
    assert whole[16 * unit : length - 8 * unit] == fill


def test_the_fill_of_a_record_is_its_name():
    assert fill_of(spec(128, "record")).decode() == record(1, 2, 128, SEED)["name"]


def test_a_literal_and_a_short_payload_have_no_fill():
    assert fill_of(spec(literal="Hello")) == b""
    assert fill_of(spec(16)) == b""


@pytest.mark.parametrize("begin", range(9))
@pytest.mark.parametrize("offset", [0, 1, 7, 42])
def test_a_piece_of_16_bytes_is_found_wherever_it_begins(begin, offset):
    fill = fill_of(spec())
    piece = fill[begin : begin + PIECE_BYTES]
    assert frames_with_fill(capture(b"x" * 60, b"y" * offset + piece + b"z"), [fill]) == 1


@pytest.mark.parametrize("begin", range(9))
def test_fifteen_bytes_are_no_piece(begin):
    fill = fill_of(spec())
    frame = b"y" * 9 + fill[begin : begin + PIECE_BYTES - 1] + bytes([fill[begin + 15] ^ 1])
    assert frames_with_fill(capture(frame, fill[:8] + fill[16:24]), [fill]) == 0


def test_a_piece_across_two_frames_is_none_and_a_frame_counts_once():
    fill = fill_of(spec(1024))
    assert frames_with_fill(capture(b"a" + fill[:10], fill[10:20]), [fill]) == 0
    assert frames_with_fill(capture(fill, b"", fill[100:300] + fill[:50]), [fill]) == 2


def test_random_frames_and_other_fills_contain_none():
    fill, other = fill_of(spec()), fill_of({**spec(), "payload.seed": SEED ^ 1})
    assert frames_with_fill(capture(other * 20), [fill]) == 0
    assert frames_with_fill(capture(other * 20, fill), [fill, other]) == 2


def test_a_capture_that_ends_within_a_frame_is_searched_up_to_it():
    fill = fill_of(spec())
    assert frames_with_fill(capture(fill, fill)[:-1], [fill]) == 1
    assert frames_with_fill(b"", [fill]) == 0


@pytest.mark.parametrize("chunk_bytes", [1, 30, 100, 1000])
def test_a_search_in_chunks_finds_the_same(chunk_bytes):
    fill = fill_of(spec(64))
    content = capture(b"x" * 70, fill, b"", b"y" * 3 + fill, b"z")
    assert search(BytesIO(content), [fill], chunk_bytes) == search(BytesIO(content), [fill])
    assert search(BytesIO(content), [fill], chunk_bytes) == (5, 2)


def entry(received, tried=True):
    return {"process": "uninvited-open-subscriber", "tried": tried, "received": received}


def test_the_result_counts_the_messages_of_both_sides_and_deletes_the_capture(tmp_path):
    path = tmp_path / "frames.pcap"
    path.write_bytes(capture(fill_of(spec()), b"x" * 80))
    proof = proof_of([entry(3), entry(4)], 5, path, None, [spec()])
    assert proof.columns == {
        "uninvited_received": 7, "uninvited_delivered": 5, "fill_on_link": 1,
    }  # fmt: skip
    assert proof.document["frames_searched"] == 2
    assert not path.exists()


def test_frames_that_a_full_capture_did_not_keep_are_counted(tmp_path):
    path, log = tmp_path / "frames.pcap", tmp_path / "frames.log"
    path.write_bytes(capture(b"x", b"y"))
    records = np.zeros(7, RECORD)
    records["in_ns"] = [1, 2, 3, 3, 4, 5, 5]  # two receivers of 3; two hosts send at 5
    records["source"][-1] = 1
    header = MAGIC + RECORD.itemsize.to_bytes(8, "little")
    log.write_bytes(header + records.tobytes())
    proof = proof_of([entry(0)], 0, path, log, [spec()])
    assert proof.document["frames_searched"] == 2
    assert proof.document["frames_unsearched"] == 4


@pytest.mark.parametrize(
    ("entries", "received"),
    [
        ([entry(0), entry(None, tried=False)], 0),
        ([entry(2), entry(None)], 2),
        ([entry(0), entry(None)], None),
        ([entry(None, tried=False)], None),
    ],
)
def test_nodes_that_never_tried_prove_nothing_and_hide_nothing(entries, received):
    assert proof_of(entries, 0, None, None, [spec()]).columns["uninvited_received"] == received


def uninvited_nodes(states, breaches=(), hosts=None, token="ww0", folder=Path()):
    """Return an uninvited node whose process came as far as `states` tells."""
    original = RunNode(
        0, "publisher-0", "publisher", 0, 0, "x/y", None,
        {"payload.seed": 1, "peers.count": 3},
    )  # fmt: skip
    nodes = UninvitedNodes(
        [Uninvited("open", replace(original, process="uninvited"), HOST, "publisher-0")],
        hosts or {}, Deployment(()), token, folder,
    )  # fmt: skip
    nodes._processes.states.update(states)
    nodes._breaches.update(breaches)
    return nodes


READY = {"READY": {}}


@pytest.mark.parametrize(
    ("state", "tried", "received"),
    [
        (None, False, None),
        (ProcessState(), True, 0),
        (ProcessState(exit={"code": 4}), True, 0),
        (ProcessState(exit={"code": 1}), False, None),
        (ProcessState(exit={"code": 2}), False, None),
        (ProcessState(exit={"code": None, "signal": 11}), False, None),
        (ProcessState(exit={"code": 1}, lines=READY), True, None),
        (ProcessState(exit={"code": 0}, lines={**READY, "DONE": {"received": 7}}), True, 7),
    ],
)
def test_only_a_node_that_the_middleware_refused_or_admitted_has_tried(state, tried, received):
    nodes = uninvited_nodes({} if state is None else {"uninvited": state})
    (line,) = nodes.to_json()
    assert (line["tried"], line["received"]) == (tried, received)


def test_a_node_that_broke_the_contract_has_not_tried():
    nodes = uninvited_nodes({"uninvited": ProcessState()}, {"uninvited": "broke C-05"})
    (line,) = nodes.to_json()
    assert (line["tried"], line["received"], line["end"]) == (False, None, "broke C-05")


def test_one_peer_is_enough_for_a_copy_that_looks_for_a_hole():
    program = SimpleNamespace(middleware=SimpleNamespace(setting_with=lambda _: "security"))
    spec = {"payload.seed": 1, "peers.count": 3}
    nodes = [
        RunNode(n, f"{role}-0", role, 0, n, "x/y", program, spec)
        for n, role in enumerate(("publisher", "subscriber"))
    ]
    deployment = SimpleNamespace(
        flows=[Flow("", 0, (1,))], host_of=lambda _: HOST
    )  # fmt: skip
    copies = uninvited_copies(nodes, deployment, is_secured=True)
    assert [each.node.spec["peers.count"] for each in copies] == [1] * 6


def test_the_end_of_the_uninvited_nodes_ends_no_other_process_of_the_run(tmp_path):
    agent = AgentClient(tmp_path / "agent")
    try:
        hosts, token = {HOST: here(agent)}, f"ww{tmp_path.name}"
        deployment = Deployment((Process("broker", NODE, HOST),))
        run = RunProcesses(hosts, deployment, token, tmp_path / "run")
        nodes = uninvited_nodes({}, hosts=hosts, token=token, folder=tmp_path / "run")
        for processes, name in ((run, "broker"), (nodes._processes, "uninvited")):
            for folder in ("logs", f"out/{name}"):
                (tmp_path / "run" / folder).mkdir(parents=True, exist_ok=True)
            processes.spawn(name, ["/bin/sleep", "60"], {}, lines=False)
        nodes.end()
        assert nodes._processes.states["uninvited"].exit["signal"]
        assert run.wait_exit(["broker"], time.monotonic() + 0.3) == ["broker"]
        assert run.end_all() == ["broker"]
    finally:
        agent.close()


@pytest.mark.parametrize(
    ("has_capture", "specs", "reason"),
    [(False, [spec()], "no link emulator"), (True, [spec(literal="Hello")], "16 bytes of fill")],
)
def test_an_unknown_number_is_absent_with_its_reason(tmp_path, has_capture, specs, reason):
    path = tmp_path / "frames.pcap"
    if has_capture:
        path.write_bytes(capture(b"x"))
    proof = proof_of([entry(None)], 0, path, None, specs)
    assert proof.columns["uninvited_received"] is None
    assert proof.columns["fill_on_link"] is None
    assert reason in proof.document["fill_absent"]


def test_a_run_that_ended_before_the_drain_leaves_no_capture(tmp_path):
    path = tmp_path / "frames.pcap"
    path.write_bytes(capture(b"x"))
    collected = Collected.__new__(Collected)
    network = SimpleNamespace(capture=path, log=None)
    collected.record = SimpleNamespace(uninvited=None, network=network)
    assert collected._proof() is None
    assert not path.exists()
