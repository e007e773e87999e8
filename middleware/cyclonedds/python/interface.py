"""Keeps this process's sockets to one interface."""

import contextlib
import os
import socket


def stay_on(interface: str) -> None:
    """Let this process's UDP sockets take datagrams of one interface only, where that is allowed.

    The library binds those that it receives on to all addresses, whatever interface it was given.
    """
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as opened:
            if (opened.family, opened.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                wanted = interface.encode() + b"\0"
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, wanted)
