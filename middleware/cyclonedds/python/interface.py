"""Restricts this process's sockets to one interface."""

import contextlib
import os
import socket


def stay_on(interface: str) -> None:
    """Bind this process's UDP sockets to one interface, if the kernel allows it.

    The library binds its receiving sockets to all addresses, whatever the configured interface.
    """
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as opened:
            if (opened.family, opened.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                device = interface.encode() + b"\0"
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
