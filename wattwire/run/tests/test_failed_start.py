"""Test the causes of ends before GO, in the words of different runtimes."""

from __future__ import annotations

import pytest

from wattwire.model.verdict import MISSING_LIBRARY, PERMISSION, PORT_IN_USE
from wattwire.run.failed_start import cause_in


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("terminate called: bind: Address already in use", PORT_IN_USE),
        ("listen tcp 127.0.0.1:8080: bind: address already in use", PORT_IN_USE),
        ("Error: listen EADDRINUSE: address already in use 127.0.0.1:8080", PORT_IN_USE),
        ("java.net.BindException: Address already in use (Bind failed)", PORT_IN_USE),
        ("OSError: [Errno 98] Address already in use", PORT_IN_USE),
        ("Error: Os { code: 98, kind: AddrInUse, message: Address in use }", PORT_IN_USE),
        ("`initialize': Address already in use - bind(2) (Errno::EADDRINUSE)", PORT_IN_USE),
        ("System.Net.Sockets.SocketException (98): Address already in use", PORT_IN_USE),
        ("node: error while loading shared libraries: libzmq.so.5: cannot open", MISSING_LIBRARY),
        ("ModuleNotFoundError: No module named 'zmq'", MISSING_LIBRARY),
        ("Error: Cannot find module 'ws'", MISSING_LIBRARY),
        ('Exception in thread "main" java.lang.NoClassDefFoundError: org/X', MISSING_LIBRARY),
        ("cannot load such file -- grpc (LoadError)", MISSING_LIBRARY),
        ("PermissionError: [Errno 13] Permission denied: '/dev/shm/x'", PERMISSION),
        ("thread 'main' panicked: Operation not permitted (os error 1)", PERMISSION),
    ],
)
def test_the_words_of_each_runtime_tell_the_cause(text, code):
    cause = cause_in(f"starting\n{text}\n  at line 1\n")
    assert cause is not None and cause.code == code and cause.line == text


@pytest.mark.parametrize("text", ["", "Segmentation fault", "assertion failed: x == y"])
def test_an_end_without_such_words_is_a_result(text):
    assert cause_in(text) is None
