"""Action pattern: PerformText or PerformBytes; goal, feedback and result of one field each."""

from __future__ import annotations

from array import array
from typing import Any

from session import Session
from wattwire_kit import Kit


def action_type(kit: Kit) -> Any:
    from wattwire_interfaces.action import PerformBytes, PerformText

    return PerformText if kit.text else PerformBytes


def field_of(kit: Kit, data: Any) -> Any:
    return data.decode("ascii") if kit.text else array("B", data)


def serve(kit: Kit) -> None:
    from rclpy.action import ActionServer, GoalResponse

    session = Session(kit)
    kind = action_type(kit)
    # The kit's goal beside ROS's messages: the request object is the same in all callbacks.
    accepted: dict[int, Any] = {}
    answered: dict[int, Any] = {}

    def on_goal(request: Any) -> Any:
        goal = kit.goal(request.goal)
        if goal is None:
            return GoalResponse.REJECT
        accepted[id(request)] = goal
        return GoalResponse.ACCEPT

    def on_accepted(handle: Any) -> None:
        kit.accept(accepted[id(handle.request)])
        handle.execute()

    def execute(handle: Any) -> Any:
        goal = accepted.pop(id(handle.request))
        for _ in range(kit.feedback_count):
            feedback = kind.Feedback(feedback=field_of(kit, kit.feedback_begin(goal)))
            handle.publish_feedback(feedback)
            kit.feedback_sent(goal)
        handle.succeed()
        result = kind.Result(result=field_of(kit, kit.result(goal)))
        answered[id(result)] = goal
        return result

    class TimedActionServer(ActionServer):
        """The library hands a result over after `execute` returned and tells nobody: only here it is seen."""

        def _send_result_response(self, request_header: Any, future: Any) -> None:
            super()._send_result_response(request_header, future)
            goal = answered.pop(id(future.result().result), None)
            if goal is not None:
                kit.finish_goal(goal)

    server = TimedActionServer(
        session.node,
        kind,
        f"{session.prefix}/action",
        execute,
        goal_callback=on_goal,
        handle_accepted_callback=on_accepted,
        goal_service_qos_profile=session.qos(),
        result_service_qos_profile=session.qos(),
        feedback_pub_qos_profile=session.qos(),
    )
    session.await_clients(f"{session.prefix}/action/_action/send_goal")
    session.spin_until_end()
    server.destroy()
    session.close()


class GoalSender:
    """An action client whose goals run through callbacks; several may be open."""

    def __init__(self, session: Session) -> None:
        from rclpy.action import ActionClient

        self.kit = session.kit
        self.session = session
        self.kind = action_type(session.kit)
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

        def on_feedback(message: Any) -> None:
            kit.feedback(message.feedback.feedback)

        def on_response(done: Any) -> None:
            handle = done.result()
            if not handle.accepted:
                kit.fail(slot)
                return
            kit.accepted(slot)
            handle.get_result_async().add_done_callback(
                lambda over: kit.complete(slot, over.result().result.result)
            )

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
    discovery_ns = kit.await_peers(lambda: int(sender.client.server_is_ready()), session.spin_once)
    # ROS calls a server ready from its graph; the five channels below are matched one by one.
    discovery_ns += kit.probe(sender.probe)
    session.ready(1, discovery_ns, session.requested_qos())
    session.drive(sender.send)
    sender.client.destroy()
    session.close()
