// Message memory of actions in both encodings, and the ids of goals.

#pragma once

#include <action_msgs/msg/goal_status_array.h>
#include <action_msgs/srv/cancel_goal.h>
#include <wattwire_interfaces/action/perform_bytes.h>
#include <wattwire_interfaces/action/perform_text.h>

#include <array>
#include <cstring>

#include "messages.hpp"

using GoalId = std::array<uint8_t, 16>;

inline GoalId id_of(const unique_identifier_msgs__msg__UUID& field) {
  GoalId id;
  std::memcpy(id.data(), field.uuid, id.size());
  return id;
}

inline void assign(unique_identifier_msgs__msg__UUID& field, const GoalId& id) {
  std::memcpy(field.uuid, id.data(), id.size());
}

// Wraps a message that rosidl generated for C, for use with `Owned`.
#define WATTWIRE_MESSAGE(Alias, Generated)                                    \
  struct Alias {                                                              \
    using Message = Generated;                                                \
    static bool init(Message* message) { return Generated##__init(message); } \
    static void fini(Message* message) { Generated##__fini(message); }        \
  }
#define WATTWIRE_ACTION(Alias, Name)                                                          \
  struct Alias {                                                                              \
    WATTWIRE_MESSAGE(GoalRequest, wattwire_interfaces__action__##Name##_SendGoal_Request);    \
    WATTWIRE_MESSAGE(GoalReply, wattwire_interfaces__action__##Name##_SendGoal_Response);     \
    WATTWIRE_MESSAGE(ResultRequest, wattwire_interfaces__action__##Name##_GetResult_Request); \
    WATTWIRE_MESSAGE(ResultReply, wattwire_interfaces__action__##Name##_GetResult_Response);  \
    WATTWIRE_MESSAGE(Feedback, wattwire_interfaces__action__##Name##_FeedbackMessage);        \
    static const rosidl_action_type_support_t* support() {                                    \
      return ROSIDL_GET_ACTION_TYPE_SUPPORT(wattwire_interfaces, Name);                       \
    }                                                                                         \
  }

WATTWIRE_ACTION(BytesAction, PerformBytes);
WATTWIRE_ACTION(TextAction, PerformText);
WATTWIRE_MESSAGE(StatusArray, action_msgs__msg__GoalStatusArray);
WATTWIRE_MESSAGE(CancelRequest, action_msgs__srv__CancelGoal_Request);
WATTWIRE_MESSAGE(CancelReply, action_msgs__srv__CancelGoal_Response);

#undef WATTWIRE_ACTION
#undef WATTWIRE_MESSAGE
