"""Deeds of a hostile node: one per mode, with the expected consequence for its attempt.

`fails`: the verdict is failed. `ends`: a node died, hung or was slow, which is a result. `counts`:
the run is stored, but it is not valid. `survives`: the measurement is unaffected. `either`:
`survives` or `ends`, whichever happens first.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FAILS, ENDS, COUNTS, SURVIVES, EITHER = "fails", "ends", "counts", "survives", "either"
SECOND_NS = 1_000_000_000
DEEP = '{"a":' + "[" * 200_000
LINE = Callable[[Any, dict[str, Any]], str]


@dataclass(frozen=True)
class Deed:
    """A violation of the contract by the node with the role `role`."""

    expected: str
    role: str = "publisher"
    lines: Mapping[str, str | LINE] = field(default_factory=dict)
    """Keyword → text that is printed instead of its line."""
    records: Callable[[Any, list[dict[str, int]]], list[dict[str, int]]] | None = None
    header: Mapping[str, Any] = field(default_factory=dict)
    file: Callable[[Any, Path, bytes], object] | None = None
    """Function that writes the samples instead of the node."""
    when: str = ""
    act: Callable[[Any], None] = lambda node: None
    slow: bool = False
    """Whether the deed is slow or needs much disk space. The sample excludes such deeds."""


# -- lines ---------------------------------------------------------------------------------------


def changed(keyword: str, **fields: Any) -> dict[str, LINE]:
    """Return a line with other values for some fields; `...` omits a field."""

    def line(node: Any, honest: dict[str, Any]) -> str:
        table = {k: v for k, v in {**honest, **fields}.items() if v is not ...}
        return f"{keyword} {json.dumps(table)}\n"

    return {keyword: line}


def raw(keyword: str, old: str, new: str) -> dict[str, LINE]:
    """Return the correct line with a part of its text replaced."""

    def line(node: Any, honest: dict[str, Any]) -> str:
        return f"{keyword} {json.dumps(honest)}\n".replace(old, new)

    return {keyword: line}


def flood(text: str, seconds: float, descriptor: int = 3) -> Callable[[Any], None]:
    def act(node: Any) -> None:
        data = text.encode() * max(1, 60_000 // len(text))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            os.write(descriptor, data)

    return act


def print_raw(text: str) -> Callable[[Any], None]:
    return lambda node: node.print(text)


def _ready(honest: dict[str, Any]) -> str:
    return f"READY {json.dumps(honest)}\n"


def _send_word(node: Any) -> None:
    period_ns, duration_ns = node.spec["period_ns"], node.spec["duration_ns"]
    count = duration_ns // period_ns
    now_ns = time.monotonic_ns()
    node.print(
        f'SENT {{"begin_ns":{now_ns},"end_ns":{now_ns},"sent":{count},"scheduled":{count},'
        '"skipped":0}\n'
    )


def _write_all(data: bytes, descriptor: int = 3) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


BAD_LINES = {
    "listening_empty": Deed(FAILS, "subscriber", {"LISTENING": "LISTENING {}\n"}),
    "listening_number": Deed(FAILS, "subscriber", changed("LISTENING", endpoints=5)),
    "listening_numbers": Deed(FAILS, "subscriber", changed("LISTENING", endpoints=[1, None])),
    "listening_none": Deed(FAILS, "subscriber", changed("LISTENING", endpoints=[])),
    "listening_surrogate": Deed(FAILS, "subscriber", changed("LISTENING", endpoints=["\ud800"])),
    "listening_by_other": Deed(
        FAILS, when="at first", act=print_raw('LISTENING {"endpoints":["x"]}\n')
    ),
    "listening_missing": Deed(ENDS, "subscriber", {"LISTENING": ""}, slow=True),
    "ready_empty": Deed(FAILS, lines={"READY": "READY {}\n"}),
    "ready_list": Deed(FAILS, lines={"READY": "READY []\n"}),
    "ready_no_json": Deed(FAILS, lines={"READY": "READY {nothing}\n"}),
    "ready_cut": Deed(FAILS, lines={"READY": 'READY {"matched":\n'}),
    "ready_text_startup": Deed(FAILS, lines=changed("READY", startup_ns="abc")),
    "ready_text_discovery": Deed(FAILS, lines=changed("READY", discovery_ns="abc")),
    "ready_bool": Deed(FAILS, lines=changed("READY", startup_ns=True)),
    "ready_negative": Deed(FAILS, lines=changed("READY", startup_ns=-5)),
    "ready_huge": Deed(FAILS, lines=changed("READY", startup_ns=10**30)),
    "ready_long_ago": Deed(FAILS, lines=changed("READY", startup_ns=10**18)),
    "ready_discovery_long": Deed(FAILS, lines=changed("READY", discovery_ns=10**15)),
    "ready_nan": Deed(FAILS, lines=changed("READY", effective={"mode": float("nan")})),
    "ready_infinity": Deed(FAILS, lines=changed("READY", effective={"mode": float("inf")})),
    "ready_overflowing_float": Deed(FAILS, lines=raw("READY", '"mode": "', '"x": 1e999, "y": "')),
    "ready_digits": Deed(FAILS, lines=raw("READY", '"mode": "', f'"x": {"9" * 5_000}, "y": "')),
    "ready_deep": Deed(FAILS, lines={"READY": f"READY {DEEP}\n"}),
    "ready_deep_short": Deed(
        FAILS, lines=raw("READY", '"mode": "', '"x": ' + "[" * 900 + "]" * 900 + ', "y": "')
    ),
    "ready_deep_12": Deed(
        FAILS, lines=raw("READY", '"mode": "', '"x": ' + "[" * 12 + "]" * 12 + ', "y": "')
    ),
    "ready_surrogate": Deed(
        FAILS, lines=changed("READY", library={"name": "\udc00", "version": "", "build": ""})
    ),
    "ready_surrogate_key": Deed(FAILS, lines=changed("READY", effective={"\udfff": 1})),
    "ready_long_string": Deed(FAILS, lines=changed("READY", effective={"mode": "x" * 20_000})),
    "ready_control_characters": Deed(
        SURVIVES, lines=changed("READY", effective={"mode": "\x1b[2J\x07\0<b>"})
    ),
    "ready_not_utf8": Deed(
        FAILS, "subscriber", when="after LISTENING", act=lambda node: os.write(3, b"\xff\n")
    ),
    "ready_twice": Deed(FAILS, lines={"READY": lambda node, honest: 2 * _ready(honest)}),
    "ready_more_keys": Deed(FAILS, lines=changed("READY", more=1)),
    "ready_guarantee": Deed(FAILS, lines=changed("READY", guarantee={"delivery": "magic"})),
    "sent_empty": Deed(FAILS, lines={"SENT": "SENT {}\n"}),
    "sent_text": Deed(FAILS, lines=changed("SENT", sent="x")),
    "sent_null": Deed(FAILS, lines=changed("SENT", sent=None)),
    "sent_part": Deed(FAILS, lines=changed("SENT", skipped=...)),
    "sent_other_schedule": Deed(FAILS, lines=changed("SENT", scheduled=3, sent=3)),
    "sent_too_many": Deed(FAILS, lines=changed("SENT", sent=10**10)),
    "sent_huge": Deed(FAILS, lines=changed("SENT", sent=2**62, scheduled=2**62)),
    "sent_skipped": Deed(FAILS, lines=changed("SENT", skipped=10**6)),
    "sent_times": Deed(FAILS, lines=changed("SENT", begin_ns=0, end_ns=2**62)),
    "sent_too_early": Deed(FAILS, when="after READY", act=_send_word),
    "sent_by_receiver": Deed(
        FAILS, "subscriber", when="after STOP", act=_send_word
    ),
    "done_empty": Deed(FAILS, lines={"DONE": "DONE {}\n"}),
    "done_text": Deed(FAILS, lines=changed("DONE", recorded="x")),
    "done_list": Deed(FAILS, lines=changed("DONE", foreign=[1])),
    "done_float": Deed(FAILS, lines=changed("DONE", recorded=0.5)),
    "done_negative": Deed(FAILS, lines=changed("DONE", recorded=-5)),
    "done_huge": Deed(FAILS, lines=changed("DONE", foreign=2**62)),
    "done_other_count": Deed(COUNTS, lines=changed("DONE", recorded=3)),
    "done_foreign": Deed(COUNTS, "subscriber", changed("DONE", foreign=3)),
    "done_before_ready": Deed(
        FAILS, when="at first",
        act=lambda node: node.print(
            'DONE {"sent":0,"received":0,"recorded":0,"overflow":0,"foreign":0,"corrupt":0,'
            '"probes":0}\n'
        ),
    ),
    "error_empty": Deed(FAILS, when="at first", act=print_raw("ERROR {}\n")),
    "error_escapes": Deed(
        ENDS, when="at first",
        act=lambda node: (
            node.print('ERROR {"code":4,"key":null,"reason":"\\u001b[31mred\\n[bold]x"}\n'),
            os._exit(4),
        ),
    ),
    "junk_line": Deed(FAILS, when="at first", act=print_raw("hello\n")),
    "empty_line": Deed(FAILS, when="at first", act=print_raw("\n")),
    "junk_flood": Deed(FAILS, when="in the window", act=flood("junk\n", 1.5)),
    "sent_flood": Deed(FAILS, when="in the window", act=flood("SENT {}\n", 1.5)),
    "ready_flood": Deed(
        FAILS, when="after READY", act=flood('READY {"matched":null}\n', 1.5)
    ),
    "stderr_flood": Deed(EITHER, when="in the window", act=flood("noise\n", 1.5, 2), slow=True),
    "line_of_200_mb": Deed(
        FAILS, when="in the window",
        act=lambda node: [_write_all(b"x" * 10**6) for _ in range(200)], slow=True,
    ),
    "line_of_2_mb": Deed(
        FAILS, when="in the window", act=lambda node: _write_all(b"READY " + b"x" * 2 * 10**6)
    ),
}  # fmt: skip


# -- records -------------------------------------------------------------------------------------


def each(**fields: Any) -> Callable[[Any, list[dict[str, int]]], list[dict[str, int]]]:
    """Return a function that sets fields in all records.

    A callable value is called with the record.
    """

    def change(node: Any, records: list[dict[str, int]]) -> list[dict[str, int]]:
        return [
            {**r, **{k: v(r) if callable(v) else v for k, v in fields.items()}} for r in records
        ]

    return change


def last(**fields: Any) -> Callable[[Any, list[dict[str, int]]], list[dict[str, int]]]:
    """Return a function that sets fields in the last record."""
    return lambda node, records: [*records[:-1], *each(**fields)(node, records[-1:])]


BAD_RECORDS = {
    "times_negative": Deed(
        FAILS, "subscriber", records=each(end_ns=lambda r: r["begin_ns"] - 1000 * SECOND_NS)
    ),
    "time_backwards": Deed(
        FAILS, "subscriber", records=last(end_ns=lambda r: r["begin_ns"] - 1_000_000)
    ),
    "times_extreme": Deed(
        FAILS, "subscriber", records=each(begin_ns=-(2**63) + 1, end_ns=2**63 - 1)
    ),
    "times_future": Deed(
        FAILS, "subscriber",
        records=each(
            begin_ns=lambda r: r["begin_ns"] + 10**18, end_ns=lambda r: r["end_ns"] + 10**18
        ),
    ),
    "times_past": Deed(FAILS, "subscriber", records=each(begin_ns=1, end_ns=2)),
    "time_zero": Deed(FAILS, "subscriber", records=last(begin_ns=0)),
    "end_unknown": Deed(FAILS, "subscriber", records=each(end_ns=-(2**63))),
    "intended_far": Deed(FAILS, records=each(intended_ns=2**63 - 1)),
    "bytes_huge": Deed(FAILS, "subscriber", records=each(bytes=2**32 - 1)),
    "bytes_none": Deed(FAILS, "subscriber", records=last(bytes=0)),
    "bytes_of_sender": Deed(FAILS, records=each(bytes=65)),
    "kind_of_others": Deed(FAILS, "subscriber", records=each(kind=1)),
    "kind_unknown": Deed(FAILS, "subscriber", records=each(kind=200)),
    "flags_unknown": Deed(FAILS, "subscriber", records=each(flags=240)),
    "sender_stranger": Deed(
        FAILS, "subscriber", records=each(seq=lambda r: 77 << 48 | r["seq"])
    ),
    "probes_recorded": Deed(FAILS, "subscriber", records=last(seq=2**48 - 1)),
    "never_sent": Deed(
        FAILS, "subscriber", records=each(seq=lambda r: r["seq"] + 10**6)
    ),
    "sent_twice": Deed(FAILS, records=lambda node, records: records * 2),
    "none_recorded": Deed(FAILS, records=lambda node, records: []),
    "too_many_records": Deed(FAILS, "subscriber", records=lambda node, records: records * 400),
    "all_corrupt": Deed(COUNTS, "subscriber", records=each(flags=8),
                        lines=changed("DONE", corrupt=20)),
}  # fmt: skip


# -- files ---------------------------------------------------------------------------------------


def _in_place(make: Callable[[Path], object]) -> Callable[[Any, Path, bytes], None]:
    return lambda node, path, data: make(path)


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _many_files(node: Any, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for number in range(1_500):
        (path.parent / f"samples-{number}.bin").write_bytes(data[:64])


def _more_files(node: Any, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    os.mkfifo(path.parent / "samples-1.bin")


def _junk(node: Any) -> None:
    """Create files with unexpected names and types next to the samples."""
    os.mkfifo(node.out / "pipe")
    (node.out / "etc").symlink_to("/etc")
    (node.out / "x" / "y").mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(node.out) + b"/\xff\xfe\n")).write_text("x")
    _sparse(node.out / "sparse", 100 << 30)
    (node.out / "none").write_text("x")
    (node.out / "none").chmod(0)


BAD_FILES = {
    "file_missing": Deed(FAILS, file=lambda node, path, data: None),
    "file_empty": Deed(FAILS, file=_in_place(lambda path: path.write_bytes(b""))),
    "file_short": Deed(FAILS, file=lambda node, path, data: path.write_bytes(data[:-7])),
    "file_long": Deed(FAILS, file=lambda node, path, data: path.write_bytes(data * 2)),
    "file_folder": Deed(FAILS, file=_in_place(lambda path: path.mkdir())),
    "file_folder_full": Deed(
        FAILS, file=_in_place(lambda path: (path / "a" / "b").mkdir(parents=True))
    ),
    "file_fifo": Deed(FAILS, file=_in_place(os.mkfifo)),
    "file_second_fifo": Deed(FAILS, file=_more_files),
    "file_socket": Deed(FAILS, file=_in_place(lambda path: os.mknod(path, 0o140644))),
    "file_dev_zero": Deed(FAILS, file=_in_place(lambda path: path.symlink_to("/dev/zero"))),
    "file_link_loop": Deed(FAILS, file=_in_place(lambda path: path.symlink_to(path))),
    "file_link": Deed(
        FAILS, file=lambda node, path, data: (
            (path.parent / "x").write_bytes(data), path.symlink_to("x")),
    ),
    "file_dangling": Deed(FAILS, file=_in_place(lambda path: path.symlink_to("/nowhere/at/all"))),
    "file_sparse_200_gb": Deed(FAILS, file=_in_place(lambda path: _sparse(path, 200 << 30))),
    "file_many": Deed(FAILS, file=_many_files),
    "file_unreadable": Deed(
        SURVIVES, file=lambda node, path, data: (path.write_bytes(data), path.chmod(0))
    ),
    "header_magic": Deed(FAILS, header={"magic": b"WATTWURM"}),
    "header_count": Deed(FAILS, header={"count": 2**63}),
    "header_seed": Deed(FAILS, header={"seed": 1}),
    "header_role": Deed(FAILS, header={"role": 250}),
    "header_node": Deed(FAILS, header={"node": 7}),
    "header_overflow": Deed(FAILS, header={"overflow": 2**64 - 1}),
    "junk_in_folder": Deed(SURVIVES, when="after STOP", act=_junk),
}  # fmt: skip


# -- files of the controller ---------------------------------------------------------------------


def attempt(node: Any) -> Path:
    return node.out.parent.parent


def linked(name: str) -> Callable[[Any], None]:
    """Create a link to the victim at a path that the controller will write to."""

    def act(node: Any) -> None:
        path = attempt(node) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        path.symlink_to(node.victim / "precious")

    return act


def _swap_out(node: Any) -> None:
    node.out.rename(node.out.with_name("moved"))
    node.out.symlink_to(node.victim)
    node.out = node.out.with_name("moved")


def _remove(node: Any) -> None:
    shutil.rmtree(attempt(node))
    with contextlib.suppress(OSError):
        node.out.mkdir(parents=True)


def _peers_folder_is_a_link(node: Any) -> None:
    (node.out.parent / "publisher-0").symlink_to(node.victim)


def _peers_spec_is_a_fifo(node: Any) -> None:
    folder = node.out.parent / "publisher-0"
    folder.mkdir()
    os.mkfifo(folder / "spec.json")


def _log_is_a_fifo(node: Any) -> None:
    os.mkfifo(attempt(node) / "logs" / "publisher-0.err")


BAD_PLACES = {
    "link_run_json": Deed(SURVIVES, when="after STOP", act=linked("run.json")),
    "link_summary_json": Deed(SURVIVES, when="after STOP", act=linked("summary.json")),
    "link_messages": Deed(SURVIVES, when="after STOP", act=linked("messages.parquet")),
    "link_events": Deed(SURVIVES, when="after STOP", act=linked("events.parquet")),
    "folder_run_json": Deed(
        SURVIVES, when="after STOP", act=lambda node: (attempt(node) / "run.json").mkdir()
    ),
    "fifo_run_json": Deed(
        SURVIVES, when="after STOP", act=lambda node: os.mkfifo(attempt(node) / "run.json")
    ),
    "link_peers_spec": Deed(
        SURVIVES, "subscriber", when="at first", act=linked("out/publisher-0/spec.json")
    ),
    "fifo_peers_spec": Deed(SURVIVES, "subscriber", when="at first", act=_peers_spec_is_a_fifo),
    "link_peers_folder": Deed(SURVIVES, "subscriber", when="at first", act=_peers_folder_is_a_link),
    "link_peers_log": Deed(
        SURVIVES, "subscriber", when="at first", act=linked("logs/publisher-0.err")
    ),
    "fifo_peers_log": Deed(SURVIVES, "subscriber", when="at first", act=_log_is_a_fifo),
    "link_out": Deed(FAILS, when="after STOP", act=_swap_out),
    "attempt_removed": Deed(FAILS, when="after STOP", act=_remove),
    "readings_removed": Deed(
        FAILS, when="after STOP", act=lambda node: (attempt(node) / "readings.bin").unlink()
    ),
    "readings_cut": Deed(
        FAILS, when="after DONE", act=lambda node: _cut(attempt(node) / "readings.bin")
    ),
}


def _cut(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(b"WWSAMPLE" + b"\0" * 7)


# -- processes -----------------------------------------------------------------------------------


def _killed(number: int) -> Callable[[Any], None]:
    return lambda node: os.kill(os.getpid(), number)


def _daemon(node: Any) -> None:
    """Create a grandchild in a new session. It inherits all descriptors."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


def _many_processes(node: Any) -> None:
    for _ in range(60):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
            os._exit(0)


def _deaf(node: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def _memory(node: Any) -> None:
    blocks = [bytearray(b"x" * (64 << 20)) for _ in range(8)]
    assert len(blocks) == 8


def _crash(node: Any) -> None:
    ctypes.string_at(0)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _kill_guard(node: Any) -> None:
    os.kill(os.getppid(), signal.SIGKILL)


def _kill_agent(node: Any) -> None:
    os.kill(_parent_of(os.getppid()), signal.SIGKILL)


BAD_PROCESSES = {
    "guard_killed": Deed(FAILS, when="in the window", act=_kill_guard),
    "agent_killed": Deed(FAILS, when="in the window", act=_kill_agent),
    "agent_killed_at_first": Deed(FAILS, when="at first", act=_kill_agent),
    "attempt_removed_in_window": Deed(FAILS, when="in the window", act=_remove),
    "exit_at_first": Deed(ENDS, when="at first", act=lambda node: os._exit(7)),
    "exit_zero_at_first": Deed(ENDS, when="at first", act=lambda node: os._exit(0)),
    "exit_in_window": Deed(ENDS, when="in the window", act=lambda node: os._exit(1)),
    "exit_zero_in_window": Deed(ENDS, when="in the window", act=lambda node: os._exit(0)),
    "exit_after_sent": Deed(FAILS, when="after SENT", act=lambda node: os._exit(0)),
    "exit_code_after_done": Deed(ENDS, when="after DONE", act=lambda node: os._exit(3)),
    "segmentation_fault": Deed(ENDS, when="in the window", act=_crash),
    "killed": Deed(ENDS, when="in the window", act=_killed(signal.SIGKILL)),
    "stopped": Deed(ENDS, when="in the window", act=_killed(signal.SIGSTOP), slow=True),
    "never_ready": Deed(ENDS, when="at first", act=_deaf, slow=True),
    "never_sent_line": Deed(ENDS, lines={"SENT": ""}, slow=True),
    "never_done": Deed(FAILS, lines={"DONE": ""}),
    "deaf_after_done": Deed(ENDS, when="after DONE", act=_deaf, slow=True),
    "daemon": Deed(SURVIVES, when="in the window", act=_daemon),
    "many_processes": Deed(SURVIVES, when="in the window", act=_many_processes),
    "memory": Deed(EITHER, when="in the window", act=_memory),
    "lines_closed": Deed(ENDS, when="in the window", act=lambda node: os.close(3)),
    "input_closed": Deed(ENDS, when="in the window", act=lambda node: os.close(0)),
}

DEEDS: dict[str, Deed] = {
    "honest": Deed(SURVIVES),
    **BAD_LINES,
    **BAD_RECORDS,
    **BAD_FILES,
    **BAD_PLACES,
    **BAD_PROCESSES,
}
