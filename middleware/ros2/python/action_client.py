"""Action pattern, client side: goals run through callbacks; several may be open."""

from __future__ import annotations

from typing import Any

from interfaces import action_type, field_of
from session import Session
from wattwire_kit import Kit


class GoalSender:
    """An action client whose goals run through callbacks; several may be open."""

    def __init__(self, session: Session) -> None:
        from rclpy.action import ActionClient

        self.kit = session.kit
        self.session = session
        self.kind = action_type(session.kit)
        # rclpy forgets a goal's feedback callback when its result is in: later feedback is lost.
        self.result_after_feedback = session.kit.setting("result_request") == "after_feedback"
        self.client = ActionClient(
            session.node,
            self.kind,
            f"{session.prefix}/action",
            goal_service_qos_profile=session.qos(),
            result_service_qos_profile=session.qos(),
            feedback_sub_qos_profile=session.qos(),
        )

    def send(self, slot: Any, buffer: bytearray) -> None:
        kit = self.kit
        goal = self.kind.Goal(goal=field_of(kit, buffer))

        awaited = kit.feedback_count if self.result_after_feedback else 0
        handle: Any = None

        def request_result() -> None:
            handle.get_result_async().add_done_callback(
                lambda over: kit.complete(slot, over.result().result.result)
            )

        def on_feedback(message: Any) -> None:
            nonlocal awaited
            kit.feedback(message.feedback.feedback)
            awaited -= 1
            if awaited == 0 and handle is not None:
                request_result()

        def on_response(done: Any) -> None:
            nonlocal handle
            handle = done.result()
            if not handle.accepted:
                kit.fail(slot)
                return
            kit.accepted(slot)
            if awaited <= 0:
                request_result()

        self.client.send_goal_async(goal, on_feedback).add_done_callback(on_response)

    def probe(self, buffer: bytearray, timeout_s: float) -> Any:
        """One goal, waited for; None until the acceptance, every feedback and the result arrive."""
        spin = self.session.executor.spin_until_future_complete
        feedback_seen = []
        goal = self.kind.Goal(goal=field_of(self.kit, buffer))
        response = self.client.send_goal_async(goal, feedback_seen.append)
        spin(response, timeout_sec=timeout_s)
        if not response.done() or not response.result().accepted:
            return None
        result = response.result().get_result_async()
        spin(result, timeout_sec=timeout_s)
        until_ns = self.kit.now() + int(timeout_s * 1e9)
        while len(feedback_seen) < self.kit.feedback_count and self.kit.now() < until_ns:
            self.session.spin_once(timeout_s)
        complete = result.done() and len(feedback_seen) >= self.kit.feedback_count
        return result.result().result.result if complete else None


def perform(kit: Kit) -> None:
    session = Session(kit)
    sender = GoalSender(session)
    kit.await_peers(lambda: int(sender.client.server_is_ready()), session.spin_once)
    # ROS calls a server ready from its graph; the five channels below are matched one by one.
    kit.probe(sender.probe)
    session.ready(1, session.requested_qos())
    session.drive(sender.send)
    sender.client.destroy()
    session.close()
