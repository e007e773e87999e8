"""The recording library, in real processes: its events, and programs that cannot load it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from wattwire.model.errors import MissingError, UsageError
from wattwire.model.layers import POINTS, Wrapper
from wattwire.rig.cache import MARKER
from wattwire.rig.layer_library import check_loadable, layer_library, preload
from wattwire.run.layers.recordings import (
    FOUND,
    absences,
    file_reasons,
    loss_advice,
    read_recordings,
)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

LIBRARY = """
int write_message(long a, long b, long c, long d, long e, long f, long g, long h) {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 ? 42 : 0;
}
void notify(void *condition) { (void)condition; }
"""
PLUGIN = """
#include <pthread.h>
void notify(void *);
static void *work(void *unused) { notify(unused); return unused; }
__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
}
"""
FALLOCATE = """
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int fallocate(int file, int mode, long begin, long size) {
  static int calls;
  if (calls++ && getenv("FALLOCATE_US")) usleep(atoi(getenv("FALLOCATE_US")));
  if (calls % 2 && getenv("FALLOCATE_INTERRUPTED")) { errno = EINTR; return -1; }
  const char *error = getenv("FALLOCATE_ERRNO");
  if (calls > 1 && error) { errno = atoi(error); return -1; }
  return syscall(SYS_fallocate, file, mode, begin, size);
}
"""
"""Answers that a disk gives rarely. The head of the file, the first call, has the real answer."""
PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int write_message(long, long, long, long, long, long, long, long);
void notify(void *);
void ros_trace_rcl_node_init(void *, void *, const char *, const char *);
void ros_trace_rcl_publish(void *, void *);
void ros_trace_rmw_publish(void *, void *, long);
_Bool ros_trace_enabled_rmw_publish(void);
static long count;
static void *work(void *unused) {
  for (long i = 0; i < count; i++) ros_trace_rmw_publish((void *)7, &count, i + 1);
  return unused;
}
static void *look(void *unused) {
  for (;;) ros_trace_rcl_node_init((void *)1, (void *)2, "looker", "/");
  return unused;
}
static void limit_files(long limit) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = limit;
  setrlimit(RLIMIT_NOFILE, &files);
}
static int fork_while_another_thread_looks(void) {
  pthread_t thread;
  pthread_create(&thread, 0, look, 0);
  for (int i = 0; i < 100; i++) {
    int status = 0, child = fork();
    if (child == 0) {
      alarm(3);
      ros_trace_rcl_node_init((void *)1, (void *)2, "child", "/");
      _exit(0);
    }
    waitpid(child, &status, 0);
    if (status) return 4;
  }
  return 0;
}
int main(int argc, char **argv) {
  count = atol(argv[1]);
  char mode = argc > 2 ? argv[2][0] : 0;
  if (mode == 'l') return fork_while_another_thread_looks();
  if (mode == 'p') return dlopen(argv[3], RTLD_NOW) ? 0 : 5;
  if (mode == 'n') limit_files(3);
  if (mode == 'e') {  /* more than the first chunks, then without files, then with them */
    for (int i = 0; i < 3; i++) { limit_files(i == 1 ? 3 : 64); work(0); }
    return 0;
  }
  if (mode == 'h') {  /* Humble's call, with the second argument still in its register */
    ros_trace_rcl_publish((void *)7, &count);
    ros_trace_rmw_publish(&count, &count, 5);
    return 0;
  }
  pthread_t threads[3];
  ros_trace_rcl_node_init((void *)1, (void *)2, "talker", "/");
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  if (write_message(1, 2, 3, 4, 5, 6, 7, 8) != 42 || !ros_trace_enabled_rmw_publish()) return 3;
  notify((void *)9);
  if (mode == 'f' || mode == 'c') {
    if ((mode == 'f' ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0) {
      count = 5;
      if (mode == 'c') ros_trace_rcl_node_init((void *)3, (void *)4, "child", "/");
      work(0);
      _exit(0);
    }
    wait(0);
  }
  if (mode == 'k') { puts("ready"); fflush(stdout); pause(); }
  return 0;
}
"""
TRACETOOLS = """
void ros_trace_rcl_node_init(void *a, void *b, const char *c, const char *d) {
  (void)a; (void)b; (void)c; (void)d;
}
void ros_trace_rcl_publish(void *a, void *b) { (void)a; (void)b; }
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
    texts = {
        "planted": LIBRARY, "tracetools": TRACETOOLS, "main": PROGRAM, "plugin": PLUGIN,
        "fallocate": FALLOCATE,
    }  # fmt: skip
    for name, text in texts.items():
        (folder / f"{name}.c").write_text(text)
    for name in ("planted", "tracetools", "plugin", "fallocate"):
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


def test_a_child_of_a_bare_clone_has_a_file_of_its_own_from_its_first_node(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([program, "10", "clone"], env=environment, check=True)
    counts = {}
    for recording in read_recordings(tmp_path / "layers"):
        events = np.concatenate([*recording.threads.values()])
        counts[recording.pid] = int((events["point"] == codes("stamp")).sum())
    assert sorted(counts.values()) == [5, 30]


def test_a_child_that_is_forked_while_another_thread_looks_for_libraries_does_not_hang(
    program: Path, environment: dict[str, str]
) -> None:
    subprocess.run([program, "1", "look"], env=environment, timeout=60, check=True)


def test_a_first_call_does_not_wait_for_the_lock_of_the_loader(
    program: Path, environment: dict[str, str]
) -> None:
    plugin = program.with_name("libplugin.so")
    subprocess.run([program, "1", "plugin", plugin], env=environment, timeout=20, check=True)


def test_a_function_that_the_recorder_itself_calls_can_be_recorded(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    wrappers = (Wrapper("notify", "libc.so.6", "fallocate", 4),)
    variables = preload(layer_library(wrappers), tmp_path / "layers", {})
    subprocess.run([program, "10"], env={**environment, **variables}, check=True, timeout=20)
    (recording,) = read_recordings(tmp_path / "layers")
    events = np.concatenate([*recording.threads.values()])
    assert (events["point"] == codes("stamp")).sum() == 30


def test_a_distribution_that_passes_the_message_alone_has_no_stamp(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([program, "1", "humble"], env=environment, check=True)
    (recording,) = read_recordings(tmp_path / "layers")
    (events,) = recording.threads.values()
    (stamp,) = events[events["point"] == codes("stamp")]
    assert (stamp["b"], stamp["c"]) == (0, 0)


def test_a_process_that_cannot_create_its_file_is_named_with_the_error(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    result = subprocess.run([program, "10", "no"], env=environment, capture_output=True, check=True)
    assert b"layers are not recorded" in result.stderr
    recordings = read_recordings(tmp_path / "layers")
    assert [(r.events, r.problem) for r in recordings] == [
        (0, "could not create its file: Too many open files")
    ]
    (reason,) = file_reasons(recordings)
    assert f"process {recordings[0].pid} could not create its file" in reason.detail


def test_events_after_a_lack_of_files_are_recorded_and_those_in_it_have_a_reason(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([program, "50000", "empty"], env=environment, check=True)
    (recording,) = read_recordings(tmp_path / "layers")
    assert recording.events + recording.lost == 150_000
    assert 30_000 < recording.lost < 51_100
    (events,) = recording.threads.values()
    assert events["b"][-1] == 50_000 and recording.problem == ""
    assert "Too many open files" in loss_advice([recording])


@pytest.mark.parametrize(("number", "is_lost"), [(errno.EDQUOT, True), (errno.EOPNOTSUPP, False)])
def test_only_a_file_system_that_cannot_reserve_space_is_written_without_it(
    program: Path, environment: dict[str, str], tmp_path: Path, number: int, is_lost: bool
) -> None:
    environment["LD_PRELOAD"] += f":{program.with_name('libfallocate.so')}"
    environment["FALLOCATE_ERRNO"] = str(number)
    subprocess.run([program, "1000"], env=environment, check=True)
    (recording,) = read_recordings(tmp_path / "layers")
    assert recording.events + recording.lost == 3001
    assert recording.events == (0 if is_lost else 3001)
    assert (os.strerror(number) in loss_advice([recording])) == is_lost


def test_a_signal_that_interrupts_a_reservation_loses_nothing(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["LD_PRELOAD"] += f":{program.with_name('libfallocate.so')}"
    environment |= {"FALLOCATE_INTERRUPTED": "1", "FALLOCATE_US": "10"}
    subprocess.run([program, "1000"], env=environment, check=True)
    (recording,) = read_recordings(tmp_path / "layers")
    disk_bytes = next((tmp_path / "layers").iterdir()).stat().st_blocks * 512
    assert (recording.events, recording.lost) == (3001, 0)
    assert disk_bytes >= 2 << 20  # the head, and the chunks of a whole step


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


def test_recorded_events_do_not_stay_in_the_memory_of_the_process(
    program: Path, environment: dict[str, str]
) -> None:
    def peak_kib(events: int) -> int:
        with subprocess.Popen(
            [program, str(events), "kill"], env=environment, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            status = Path(f"/proc/{process.pid}/status").read_text()
            process.kill()
        return int(status.split("VmHWM:")[1].split()[0])

    # 300,000 events have 9.6 MB.
    assert peak_kib(100_000) - peak_kib(1000) < 1000


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


def test_another_compiler_or_machine_has_a_build_of_its_own(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = layer_library(WRAPPERS)
    compiler = tmp_path / "own-cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    second = layer_library(WRAPPERS)
    os.utime(compiler, (1, 1))
    third = layer_library(WRAPPERS)
    monkeypatch.setattr("platform.machine", lambda: "other")
    fourth = layer_library(WRAPPERS)
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "1.0"))
    paths = {first, second, third, fourth, layer_library(WRAPPERS)}
    assert len(paths) == 5 and all(path.is_file() for path in paths)


def test_a_compiler_can_be_a_command_of_several_words(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "env LC_ALL=C cc")
    assert layer_library(WRAPPERS).is_file()


@pytest.mark.parametrize("command", ["no-such-compiler -O2", "cc 'open", " "])
def test_a_compiler_that_does_not_exist_is_named(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(MissingError, match=re.escape(repr(command))):
        layer_library(WRAPPERS)


def test_a_compiler_that_hangs_is_named(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "slow-cc"
    compiler.write_text("#!/bin/sh\nexec sleep 20\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr("wattwire.rig.layer_library.BUILD_S_MAX", 0.2)
    with pytest.raises(UsageError, match=r"slow-cc did not build .* in 0.2 s"):
        layer_library(WRAPPERS)


def test_a_build_that_was_removed_in_part_is_replaced(environment: dict[str, str]) -> None:
    library = layer_library(WRAPPERS)
    (library.parent / MARKER).unlink()
    library.unlink()
    assert layer_library(WRAPPERS).is_file()


def test_a_build_that_cannot_be_stored_is_an_error(environment: dict[str, str]) -> None:
    folder = layer_library(WRAPPERS).parent
    shutil.rmtree(folder)
    folder.write_text("no folder")
    with pytest.raises(UsageError, match="cannot be stored"):
        layer_library(WRAPPERS)


def test_libraries_that_the_user_preloads_follow_the_own_one(tmp_path: Path) -> None:
    variables = preload(Path("/own.so"), tmp_path, {"LD_PRELOAD": "/a.so /b.so:/c.so"})
    assert variables["LD_PRELOAD"] == "/own.so:/a.so:/b.so:/c.so"


def test_a_static_program_is_refused(program: Path) -> None:
    with pytest.raises(UsageError, match="static"):
        check_loadable(str(program.with_name("static")))
    check_loadable(str(program))


@pytest.mark.parametrize("size_bytes", [20, 100])
def test_a_damaged_program_is_not_judged(program: Path, tmp_path: Path, size_bytes: int) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(program.read_bytes()[:size_bytes])
    check_loadable(str(damaged))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_program_that_its_user_cannot_read_is_not_judged(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        copy = Path(name, "unreadable")
        shutil.copy(program, copy)
        copy.chmod(0o711)
        child = os.fork()
        if child == 0:
            try:
                os.setuid(65534)
                check_loadable(str(copy))
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_no_thread_writes_before_another_one_has_reserved_the_space_of_both(
    program: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    disk = tmp_path / "layers"
    environment["LD_PRELOAD"] += f":{program.with_name('libfallocate.so')}"
    environment["FALLOCATE_US"] = "50000"
    script = f"mount -t tmpfs -o size=2100k tmpfs {disk} && {program} 60000; exit $?"
    result = subprocess.run(["unshare", "-m", "sh", "-c", script], env=environment, check=False)
    if result.returncode in (1, 32):
        pytest.skip("this user cannot mount a disk")
    assert result.returncode == 0
