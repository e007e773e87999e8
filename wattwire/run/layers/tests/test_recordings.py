"""Read files of processes that were cut off or damaged, without the loss of the whole run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from wattwire.model.layers import POINTS
from wattwire.run.layers.ends import published
from wattwire.run.layers.recordings import (
    CHUNK,
    CHUNK_BYTES,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    NOTES_BYTES,
    Recording,
    file_reasons,
    read_recordings,
)

NODE = b"5 node 0x1 / talker\n"
HIGH = 0xFFFF_8000_0000_0010
STAMPS = 3


def write(path: Path, notes: bytes = NODE, handle: int = 7, **fields: int) -> None:
    """Write the file of process 1 with STAMPS events of one publisher in one chunk."""
    header = np.zeros(1, HEADER)
    values = {"pid": 1, "chunks": 4, "chunks_used": 1, "notes_used": len(notes), **fields}
    header["magic"], header["arguments"] = MAGIC, b"talker\0--fast"
    for name, value in values.items():
        header[name] = value
    chunk = np.zeros(1, CHUNK)
    chunk["thread"], chunk["used"] = 9, STAMPS
    events = chunk["events"][0][:STAMPS]
    events["t"], events["b"], events["c"] = range(10, 10 + STAMPS), range(1, 1 + STAMPS), 1
    events["a"] = np.uint64(handle).astype(np.int64)
    events["point"] = POINTS.index("stamp")
    head = header.tobytes().ljust(HEADER_BYTES, b"\0")
    path.write_bytes(head + notes.ljust(NOTES_BYTES, b"\0") + chunk.tobytes())


def read(folder: Path) -> Recording:
    (recording,) = read_recordings(folder)
    return recording


def test_a_complete_file_has_its_events_and_no_problem(tmp_path: Path) -> None:
    write(tmp_path / "1-0.events")
    recording = read(tmp_path)
    assert (recording.events, recording.lost, recording.problem) == (STAMPS, 0, "")
    assert file_reasons([recording]) == []


def test_a_file_that_was_truncated_has_the_events_of_its_whole_chunks(tmp_path: Path) -> None:
    path = tmp_path / "1-0.events"
    write(path, chunks_used=3)
    recording = read(tmp_path)
    assert recording.events == STAMPS
    assert recording.problem == "has a truncated file (1 of 3 chunks)"
    os.truncate(path, path.stat().st_size - CHUNK_BYTES // 2)
    assert read(tmp_path).events == 0


@pytest.mark.parametrize(
    "note", [b"123", b"x node 0x1 / a", b"5 pub 0x1 0x1 zz 10 /a", b"5 pub 0x1", b"5 other 1",
             b"99999999999999999999 pub 0x1 0x1 0x7 10 /a", b"5 pub 0x1 0x1 0x%020x 10 /a" % 2**70]
)  # fmt: skip
def test_a_malformed_note_is_counted_and_the_others_are_read(tmp_path: Path, note: bytes) -> None:
    write(tmp_path / "1-0.events", NODE + note + b"\n5 pub 0x1 0x1 0x7 10 /topic\n")
    recording = read(tmp_path)
    assert [end.topic for end in recording.publishers[7]] == ["/topic"]
    assert recording.problem == "has 1 malformed note in its file"
    (reason,) = file_reasons([recording])
    assert "process 1 (talker --fast) has 1 malformed note" in reason.detail


@pytest.mark.parametrize(("text", "handle"), [("(nil)", 0), (hex(HIGH), HIGH)])
def test_a_handle_is_the_word_of_its_events(tmp_path: Path, text: str, handle: int) -> None:
    note = f"5 pub 0x1 0x1 {text} 10 /topic\n".encode()
    write(tmp_path / "1-0.events", NODE + note, handle=handle)
    assert published(read(tmp_path)).stamp.tolist() == [1, 2, 3]


def test_notes_without_room_are_a_problem_and_no_lost_events(tmp_path: Path) -> None:
    write(tmp_path / "1-0.events", notes_used=NOTES_BYTES + 500)
    recording = read(tmp_path)
    assert recording.lost == 0
    assert "names of nodes and topics of more than 1048576 bytes" in recording.problem


def test_a_chunk_without_a_thread_is_no_thread(tmp_path: Path) -> None:
    path = tmp_path / "1-0.events"
    write(path, chunks_used=2)
    os.truncate(path, path.stat().st_size + CHUNK_BYTES)
    assert list(read(tmp_path).threads) == [9]


def test_processes_without_a_readable_file_are_counted_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "12-0.events").write_bytes(b"\0" * (HEADER_BYTES + NOTES_BYTES))
    (tmp_path / "13-0.events").write_bytes(b"")
    (tmp_path / "14-0.events.refused").symlink_to("28")
    (tmp_path / "15-0.events").mkdir()
    recordings = read_recordings(tmp_path)
    assert [r.pid for r in recordings] == [12, 13, 15, 14]
    assert all(r.problem for r in recordings)
    assert recordings[-1].problem == "could not create its file: No space left on device"
    (reason,) = file_reasons(recordings)
    assert reason.detail.startswith("the layers of 4 processes were not recorded completely")
    assert "and 3 more" in reason.detail
