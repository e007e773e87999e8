"""Action pattern, client side: goals run through callbacks; several may be open."""

from __future__ import annotations

from typing import Any

from interfaces import action_type, field_of
from session import Session, with_session
from wattwire_kit import Kit

SUCCEEDED = 4
"""action_msgs/GoalStatus.STATUS_SUCCEEDED; an aborted or canceled goal has another status."""


def patient_client() -> Any:
    """Return a class of action clients that receive all feedback of a goal.

    rclpy removes a goal's feedback callback when the result arrives. If a fast server sends
    feedback and result at the same time, rclpy drops feedback that has already arrived. No public
    function retains the callback.
    """
    from rclpy.action import ActionClient

    class PatientClient(ActionClient):
        def _remove_pending_result_request(self, future: Any) -> None:
            kept, self._feedback_callbacks = self._feedback_callbacks, {}
            super()._remove_pending_result_request(future)
            self._feedback_callbacks = kept

        def forget(self, goal_id: Any) -> None:
            self._feedback_callbacks.pop(bytes(goal_id.uuid), None)

    return PatientClient


class GoalSender:
    """An action client that handles its goals in callbacks; several goals may be open."""

    def __init__(self, session: Session) -> None:
        from rclpy.action import ActionClient

        self.kit = session.kit
        self.session = session
        self.kind = action_type(session.kit)
        self.keeps_late_feedback = session.kit.setting("late_feedback") == "keep"
        make = patient_client() if self.keeps_late_feedback else ActionClient
        self.missing_feedback = 0
        self.client = make(
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
        missing = kit.feedback_count
        self.missing_feedback += missing

        def on_feedback(message: Any) -> None:
            nonlocal missing
            kit.feedback(message.feedback.feedback, slot)
            missing -= 1
            self.missing_feedback -= 1
            if missing == 0 and self.keeps_late_feedback:
                self.client.forget(message.goal_id)

        def on_response(done: Any) -> None:
            handle = done.result()
            if not handle.accepted:
                kit.fail(slot)
                return
            kit.accepted(slot)
            handle.get_result_async().add_done_callback(on_result)

        def on_result(done: Any) -> None:
            outcome = done.result()
            if outcome.status == SUCCEEDED:
                kit.complete(slot, outcome.result.result)
            else:
                kit.fail(slot)
            self.session.settle()

        listener = on_feedback if missing else None
        self.client.send_goal_async(goal, listener).add_done_callback(on_response)

    def drain(self) -> None:
        """Take feedback that arrives after its result, for at most quiet_ms."""
        until_ns = self.kit.now() + self.kit.spec["quiet_ms"] * 1_000_000
        while self.keeps_late_feedback and self.missing_feedback > 0:
            left_ns = until_ns - self.kit.now()
            if left_ns <= 0:
                break
            self.session.spin_once(left_ns / 1e9)

    def probe(self, buffer: bytearray, timeout_s: float) -> Any:
        """Send one goal and return its result, or None if a message of the goal is missing."""
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


@with_session
def perform(kit: Kit, session: Session) -> None:
    sender = GoalSender(session)
    kit.await_peers(lambda: int(sender.client.server_is_ready()), session.spin_once)
    # The graph shows a server before its five channels are matched, so probes follow.
    kit.probe(sender.probe)
    session.ready(1, session.requested_qos())
    session.drive(sender.send)
    sender.drain()
    sender.client.destroy()
