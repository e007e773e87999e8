"""Action client and server: goal, acceptance, feedback and result, each one datagram."""

from link import ACCEPT, FEEDBACK, GOAL, RESULT, Link, Payload, drive_native, send_patiently
from wattwire_kit import Kit, Slot


def client(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=False)
    server_address = link.peers()[0]
    goals: dict[int, Slot] = {}

    def begin(slot: Slot, buffer: Payload) -> None:
        counter = slot.seq & 0xFFFF_FFFF_FFFF
        goals[counter] = slot
        for _ in range(link.copies(counter)):
            send_patiently(link, (GOAL, counter, buffer, server_address), poll)

    def poll(timeout_s: float) -> None:
        message = link.receive(timeout_s)
        if message is None or message[1] not in goals:
            return
        kind, number, data, _ = message
        if kind == ACCEPT:
            kit.accepted(goals[number])
        elif kind == FEEDBACK:
            kit.feedback(data, goals[number])
        elif kind == RESULT:
            kit.complete(goals.pop(number), data)

    link.ready(matched=1)
    if kit.spec["pacing"] == "native" and kit.spec["loop"] == "open":
        drive_native(kit, begin, poll)
    else:
        kit.drive(begin, poll)
    link.close()


def server(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=True)
    link.ready(matched=None)

    def poll(timeout_s: float) -> None:
        message = link.receive(timeout_s)
        if message is None:
            return
        _, number, data, sender = message
        goal = kit.goal(data)
        link.count_message()
        if goal is None:
            return
        try:
            link.send(ACCEPT, number, b"", sender)
            kit.accept(goal)
            for _ in range(kit.feedback_count):
                link.send(FEEDBACK, number, kit.feedback_begin(goal), sender)
                kit.feedback_sent(goal)
            link.send(RESULT, number, kit.result(goal), sender)
            kit.finish_goal(goal)
        except OSError:
            pass  # the client has ended; only its own record remains

    kit.poll(poll)
    link.close()
