"""Action pattern, server side: accept, publish feedback, answer with a result."""

from __future__ import annotations

from typing import Any

from interfaces import action_type, field_of
from session import Session, with_session
from wattwire_kit import Kit


@with_session
def serve(kit: Kit, session: Session) -> None:
    from rclpy.action import ActionServer, GoalResponse

    kind = action_type(kit)
    # Maps ROS's request object, which is the same in all callbacks, to the kit's goal.
    accepted: dict[int, Any] = {}

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
        kit.finish_goal(goal)
        return result

    server = ActionServer(
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
