"""Servers for clients over WebSocket, TCP and UDP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

from messages import Encoded
from outbox import Outbox
from protocol import Client
from streams import InvalidStream, MessageStream
from topics import Topics
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

MESSAGE_BYTES_MAX = 1 << 24
"""Longest message of a client. websockets' default of 1 MiB is too short for large payloads."""
DATAGRAM_BYTES_MAX = 65_507
READ_BYTES = 1 << 16
ARRIVALS_MAX = 1_000
"""Datagrams of a client that wait for a slow operation, such as an advertise."""
Send = Callable[[Encoded], Awaitable[None]]
Address = tuple[str, int]


class Servers:
    """The servers of one bridge, whose clients share its topics."""

    def __init__(self, topics: Topics, queue_size: int) -> None:
        self._topics = topics
        self._queue_size = queue_size

    async def websocket(self, host: str, port: int) -> Server:
        """Return a server that accepts connections, without compression like rosbridge_suite."""

        async def on_connection(connection: ServerConnection) -> None:
            await self.converse(connection, connection.send)

        # Browsers send an Origin, so no page of the web can connect to a bridge of this machine.
        # By default the library pings a client in the window, and cuts it off if it is stopped or
        # does not read for 40 s. rosbridge_suite does not ping by default either.
        return await serve(
            on_connection, host, port, compression=None, max_size=MESSAGE_BYTES_MAX,
            origins=[None], ping_interval=None,
        )  # fmt: skip

    async def tcp(self, host: str, port: int) -> asyncio.Server:
        """Return a server that accepts connections. Messages follow each other on a connection."""

        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async def send(message: Encoded) -> None:
                writer.write(message if isinstance(message, bytes) else message.encode())
                await writer.drain()

            try:
                await self.converse(_messages(reader), send)
            finally:
                writer.close()

        return await asyncio.start_server(on_connection, host, port)

    async def udp(self, host: str, port: int) -> asyncio.DatagramTransport:
        """Return a bound socket. A datagram is a message, and its sender is a client."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: Datagrams(self), local_addr=(host, port)
        )
        return transport

    async def converse(
        self,
        messages: AsyncIterable[str | bytes],
        send: Send,
        message_bytes_max: int | None = None,
    ) -> None:
        """Execute the operations of one client until its connection ends.

        A message to the client that is longer than `message_bytes_max` is replaced by an error.
        """
        outbox = Outbox(self._queue_size)
        client = Client(self._topics, outbox, message_bytes_max)
        draining = asyncio.create_task(outbox.drain(send))
        try:
            # A client that was killed ends its connection without a handshake.
            with contextlib.suppress(ConnectionClosed, ConnectionError, InvalidStream):
                async for message in messages:
                    await client.handle(message)
        finally:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
            await client.close()


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the messages on a connection. Half a message at its end is none."""
    stream = MessageStream(MESSAGE_BYTES_MAX)
    while arrived := await reader.read(READ_BYTES):
        for message in stream.messages(arrived):
            yield message


class Datagrams(asyncio.DatagramProtocol):
    """The clients that have sent datagrams. UDP does not show when a client ends."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._arrivals: dict[Address, asyncio.Queue[bytes]] = {}
        self._conversations: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: Address) -> None:
        if address not in self._arrivals:
            self._arrivals[address] = asyncio.Queue(ARRIVALS_MAX)
            self._conversations.add(asyncio.create_task(self._converse(address)))
        with contextlib.suppress(asyncio.QueueFull):  # lost, as in a full buffer of a socket
            self._arrivals[address].put_nowait(data)

    async def _converse(self, address: Address) -> None:
        async def send(message: Encoded) -> None:
            data = message if isinstance(message, bytes) else message.encode()
            self._transport.sendto(data, address)

        async def messages() -> AsyncIterator[bytes]:
            while True:
                yield await self._arrivals[address].get()

        await self._servers.converse(messages(), send, DATAGRAM_BYTES_MAX)
