"""Publisher and subscriber without a middleware."""

from wattwire_kit import Kit
from wattwire_kit.payload import Payload

READY = {"matched": None, "library": ("nothing", "1", ""), "effective": {}}
GUARANTEE = ("best_effort", "none", "drop_newest")


def publish(kit: Kit) -> None:
    kit.ready(guarantee=GUARANTEE, **READY)
    kit.send_all(lambda _buffer: None)


def subscribe(kit: Kit) -> None:
    (sender,) = kit.spec["peers.nodes"]
    message = Payload(kit.spec, [sender])
    messages = []  # created before the window, because their creation is not a cost of receiving
    for counter in range(kit.setting("arrivals")):
        message.stamp(sender << 48 | counter, kit.now())
        messages.append(bytes(message.buffer))
    kit.ready(guarantee=GUARANTEE, **READY)
    start_ns = kit.wait_go()
    while kit.now() < start_ns:  # no message arrives before the start of a run
        pass
    received = kit.received
    for data in messages:
        received(data)
    kit.wait_stop()
