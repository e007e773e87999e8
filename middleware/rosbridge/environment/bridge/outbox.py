"""The messages that wait for one client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from messages import Encoded


class Outbox:
    """A queue from rospy's threads to the event loop. A full queue drops the oldest message.

    Without the queue, a client that does not read would block the messages of other clients.
    """

    def __init__(self, capacity: int) -> None:
        self._messages: deque[Encoded] = deque(maxlen=capacity)
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()

    def put(self, message: Encoded) -> None:
        """Add a message; any thread may call this method, which never blocks."""
        self._messages.append(message)
        self._loop.call_soon_threadsafe(self._filled.set)

    async def drain(self, send: Callable[[Encoded], Awaitable[None]]) -> None:
        """Send the messages in their order, until the task is cancelled or `send` fails."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._messages:
                await send(self._messages.popleft())
