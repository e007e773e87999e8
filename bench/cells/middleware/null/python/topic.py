"""Publisher and subscriber of nothing."""

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
    kit.ready(guarantee=GUARANTEE, **READY)
    kit.wait_go()
    now, stamp, received = kit.now, message.stamp, kit.received
    for counter in range(kit.setting("arrivals")):
        stamp(sender << 48 | counter, now())
        received(message.buffer)
    kit.wait_stop()
