"""The recording library, in real processes: its events, and programs that cannot load it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from wattwire.model.errors import UsageError
from wattwire.model.layers import POINTS, Wrapper
from wattwire.rig.layer_library import check_loadable, layer_library, preload
from wattwire.run.layers.recordings import FOUND, absences, read_recordings

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

LIBRARY = """
int write_message(long a, long b, long c, long d, long e, long f, long g, long h) {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 ? 42 : 0;
}
void notify(void *condition) { (void)condition; }
"""
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int write_message(long, long, long, long, long, long, long, long);
void notify(void *);
void ros_trace_rcl_node_init(void *, void *, const char *, const char *);
void ros_trace_rmw_publish(void *, void *, long);
_Bool ros_trace_enabled_rmw_publish(void);
static long count;
static void *work(void *unused) {
  for (long i = 0; i < count; i++) ros_trace_rmw_publish((void *)7, &count, i + 1);
  return unused;
}
int main(int argc, char **argv) {
  count = atol(argv[1]);
  pthread_t threads[3];
  ros_trace_rcl_node_init((void *)1, (void *)2, "talker", "/");
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  if (write_message(1, 2, 3, 4, 5, 6, 7, 8) != 42 || !ros_trace_enabled_rmw_publish()) return 3;
  notify((void *)9);
  if (argc > 2 && argv[2][0] == 'f') {
    if (fork() == 0) { count = 5; work(0); _exit(0); }
    wait(0);
  }
  if (argc > 2 && argv[2][0] == 'k') { puts("ready"); fflush(stdout); pause(); }
  return 0;
}
"""
TRACETOOLS = """
void ros_trace_rcl_node_init(void *a, void *b, const char *c, const char *d) {
  (void)a; (void)b; (void)c; (void)d;
}
void ros_trace_rmw_publish(void *a, void *b, long c) { (void)a; (void)b; (void)c; }
_Bool ros_trace_enabled_rmw_publish(void) { return 0; }
"""
WRAPPERS = (
    Wrapper("dds_write", "libplanted.so*", "write_message", 8),
    Wrapper("notify", "libplanted.so*", "notify", 1, ("no_such_caller*",), "planted.toml"),
    Wrapper("dds_take", "libplanted.so*", "take_message", 2, table="planted.toml"),
    Wrapper("timer", "libmissing.so*", "call_timer", 1, table="planted.toml"),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    for name, text in (("planted", LIBRARY), ("tracetools", TRACETOOLS), ("main", PROGRAM)):
        (folder / f"{name}.c").write_text(text)
    for name in ("planted", "tracetools"):
        command = ["cc", "-shared", "-fPIC", "-o", f"lib{name}.so", f"{name}.c"]
        subprocess.run(command, cwd=folder, check=True)
    libraries = ["-L.", "-lplanted", "-ltracetools", "-Wl,-rpath,$ORIGIN", "-pthread"]
    subprocess.run(["cc", "-o", "main", "main.c", *libraries], cwd=folder, check=True)
    subprocess.run(["cc", "-static", "-o", "static", "main.c", "planted.c", "tracetools.c",
                    "-pthread"], cwd=folder, check=True)  # fmt: skip
    return folder / "main"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "layers").mkdir()
    return {**os.environ, **preload(layer_library(WRAPPERS), tmp_path / "layers", {})}


def codes(name: str) -> int:
    return POINTS.index(name)


def test_every_event_of_every_thread_is_there_and_calls_reach_the_real_function(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([program, "2000"], env=environment, check=True)
    (recording,) = read_recordings(tmp_path / "layers")
    stamps = [e["b"][e["point"] == codes("stamp")].tolist() for e in recording.threads.values()]
    assert sorted(filter(None, stamps)) == [list(range(1, 2001))] * 3
    events = np.concatenate([*recording.threads.values()])
    (write,) = events[events["point"] == codes("dds_write")]
    assert 0 < write["a"] <= write["t"] and write["b"] == 1
    assert not (events["point"] == codes("notify")).any()  # it has other callers
    assert recording.lost == 0
    assert recording.arguments[:2] == (str(program), "2000")
    for events in recording.threads.values():
        assert (np.diff(events["t"]) >= 0).all()


def test_a_function_that_no_library_has_is_named_with_its_table(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([program, "1"], env=environment, check=True)
    recordings = read_recordings(tmp_path / "layers")
    assert recordings[0].statuses[0] == FOUND
    absent = absences(recordings, WRAPPERS)
    assert absent["dds_take"] == "libplanted.so* has no take_message (planted.toml)"
    assert absent["timer"] == "no process loads libmissing.so*"
    assert absent["notify"] == "no process loads no_such_caller* (planted.toml)"
    assert set(absent) == {"dds_take", "timer", "notify"}


def test_a_child_of_fork_has_a_file_of_its_own(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([program, "10", "fork"], env=environment, check=True)
    counts = {}
    for recording in read_recordings(tmp_path / "layers"):
        events = np.concatenate([*recording.threads.values()])
        counts[recording.pid] = int((events["point"] == codes("stamp")).sum())
    assert sorted(counts.values()) == [5, 30]


def test_the_events_of_a_killed_process_survive_and_it_leaves_nothing_elsewhere(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    def names() -> set[str]:
        return {
            entry.name
            for folder in ("/dev/shm", "/tmp")
            for entry in os.scandir(folder)
            if "layer" in entry.name and entry.name != tmp_path.name
        }

    before = names()
    with subprocess.Popen(
        [program, "1000", "kill"], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    (recording,) = read_recordings(tmp_path / "layers")
    events = np.concatenate([*recording.threads.values()])
    assert (events["point"] == codes("stamp")).sum() == 3000
    assert names() <= before
    assert len(list((tmp_path / "layers").iterdir())) == 1


def test_a_full_file_counts_the_lost_events(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["WATTWIRE_LAYERS_MIB"] = "1"
    subprocess.run([program, "20000"], env=environment, check=True)
    (recording,) = read_recordings(tmp_path / "layers")
    assert recording.events + recording.lost == 3 * 20_000 + 1  # and the call of the wrapper
    assert recording.lost > 20_000


def test_the_library_is_built_once(environment: dict[str, str], tmp_path: Path) -> None:
    library = layer_library(WRAPPERS)
    made_ns = library.stat().st_mtime_ns
    time.sleep(0.01)
    assert layer_library(WRAPPERS).stat().st_mtime_ns == made_ns
    assert [p.name for p in (tmp_path / "cache" / "builds").iterdir()] == [library.parent.name]


def test_a_cache_whose_path_cannot_be_preloaded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "a cache"))
    with pytest.raises(UsageError, match="space or a colon"):
        layer_library(WRAPPERS)


def test_libraries_that_the_user_preloads_follow_the_own_one(tmp_path: Path) -> None:
    variables = preload(Path("/own.so"), tmp_path, {"LD_PRELOAD": "/a.so /b.so:/c.so"})
    assert variables["LD_PRELOAD"] == "/own.so:/a.so:/b.so:/c.so"


def test_a_static_program_is_refused(program: Path) -> None:
    with pytest.raises(UsageError, match="static"):
        check_loadable(str(program.with_name("static")))
    check_loadable(str(program))


def test_a_setuid_program_and_the_setuid_interpreter_of_a_script_are_refused(
    program: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copy(program, own)
    own.chmod(0o4755)
    with pytest.raises(UsageError, match="setuid"):
        check_loadable(str(own))
    script = tmp_path / "script"
    script.write_text(f"#!{own}\n")
    with pytest.raises(UsageError, match=str(own)):
        check_loadable(str(script))


def test_a_script_is_checked_by_its_interpreter(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/usr/bin/env {program.with_name('static')}\n")
    with pytest.raises(UsageError, match="static"):
        check_loadable(str(script))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_loses_events_and_does_not_end_the_process(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    disk, copy = tmp_path / "layers", tmp_path / "copy"
    copy.mkdir()
    script = (
        f"mount -t tmpfs -o size=3m tmpfs {disk} && {program} 30000 && "
        f"cp --sparse=always {disk}/*.events {copy}"
    )
    result = subprocess.run(["unshare", "-m", "sh", "-c", script], env=environment, check=False)
    if result.returncode == 1:
        pytest.skip("this user cannot mount a disk")
    assert result.returncode == 0
    (recording,) = read_recordings(copy)
    assert recording.events + recording.lost == 3 * 30_000 + 1
    assert recording.lost > 0
