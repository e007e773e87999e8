"""The fast paths of calls check and record like the general ones."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from struct import pack_into

import pytest
from pairs import RECORD, spec
from test_lookups import Lines
from wattwire_kit import Kit
from wattwire_kit.replies import Replies

SEQ = 1 << 48 | 5
LENGTH = 64


def sent(kit: Kit, seq: int = SEQ) -> bytearray:
    kit._payload.stamp(seq, 7)
    return bytearray(kit._payload.buffer)


@pytest.mark.parametrize("verify", ["header", "full"])
def test_a_reply_is_checked_alike_on_both_paths(verify: str, tmp_path: Path) -> None:
    kit = Kit(spec("pingpong", "ping", 1, [2], verify=verify), Lines(), 0, str(tmp_path))
    right = bytes(sent(kit))
    replies = {"right": right, "another call's": bytes(sent(kit, SEQ + 1)), "longer": right + b"x"}
    for place in range(LENGTH):
        changed = bytearray(right)
        changed[place] ^= 1
        replies[f"byte {place} changed"] = bytes(changed)
    for name, reply in replies.items():
        is_due = kit._replies.is_due(SEQ, reply)
        assert is_due == Replies.is_due(kit._replies, SEQ, reply), name
        assert is_due == kit._replies.is_due(SEQ, bytearray(reply)), name
    assert kit._replies.is_due(SEQ, right)
    assert not kit._replies.is_due(SEQ, replies["another call's"])


def test_each_thread_records_the_request_that_it_answered(tmp_path: Path) -> None:
    lines = Lines()
    kit = Kit(spec("pingpong", "pong", 2, [1]), lines, 0, str(tmp_path))
    lines.go(1)
    order = [threading.Barrier(2) for _ in range(2)]

    def answer(counter: int) -> None:
        request = sent(kit)
        pack_into("<Q", request, 0, 1 << 48 | counter)
        pack_into("<Q", request, LENGTH - 8, 1 << 48 | counter)
        assert kit.serve(bytes(request)) == bytes(request)
        order[0].wait(20)  # both have a request when the first is handed over
        kit.served()
        order[1].wait(20)
        kit.served()  # nothing remains to record

    threads = [threading.Thread(target=answer, args=(counter,)) for counter in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kit.finish()
    records = RECORD.iter_unpack((tmp_path / "samples.bin").read_bytes()[64:])
    counters = [record[0] & 2**48 - 1 for record in itertools.islice(records, 3)]
    assert sorted(counters) == [0, 1]
