/* The tracepoints that ROS 2 calls by name (its package tracetools), without LTTng.
 *
 * The functions here replace those of libtracetools.so. Newer distributions ask whether a
 * tracepoint is enabled before they compute its arguments, and then call the `do` form.
 */
#include "points.h"
#include "recorder.h"

#define TRACEPOINT(name, parameters, arguments, body)        \
  LAYERPROF_PUBLIC void ros_trace_##name parameters body     \
      LAYERPROF_PUBLIC void ros_trace_do_##name parameters { \
    ros_trace_##name arguments;                              \
  }                                                          \
  LAYERPROF_PUBLIC bool ros_trace_enabled_##name(void) { return true; }

#define RECORD(point, a, b, c) \
  layerprof_record(point, layerprof_now_ns(), (uint64_t)(a), (uint64_t)(b), (uint32_t)(c))

/* The message of the last rcl_publish. Humble and Iron pass it alone to rmw_publish; later
 * distributions pass the handle first, and the time stamp that the receiver will see. */
static __thread const void *published __attribute__((tls_model("initial-exec")));

/* -- entities -------------------------------------------------------------------------------- */

TRACEPOINT(rcl_node_init, (const void *node, const void *rmw, const char *name, const char *space),
           (node, rmw, name, space), {
             (void)rmw;
             layerprof_look();
             layerprof_note("node %p %s %s", node, space, name);
           })

TRACEPOINT(rcl_publisher_init,
           (const void *publisher, const void *node, const void *rmw, const char *topic,
            const size_t depth),
           (publisher, node, rmw, topic, depth), {
             layerprof_look();
             layerprof_note("pub %p %p %p %zu %s", publisher, node, rmw, depth, topic);
           })

TRACEPOINT(rcl_subscription_init,
           (const void *subscription, const void *node, const void *rmw, const char *topic,
            const size_t depth),
           (subscription, node, rmw, topic, depth), {
             layerprof_look();
             layerprof_note("sub %p %p %p %zu %s", subscription, node, rmw, depth, topic);
           })

/* -- publishing ------------------------------------------------------------------------------ */

TRACEPOINT(rclcpp_publish, (const void *publisher, const void *message), (publisher, message),
           { RECORD(POINT_CLIENT_PUBLISH, publisher, message, 0); })

TRACEPOINT(rcl_publish, (const void *publisher, const void *message), (publisher, message), {
  RECORD(POINT_RMW_BEGIN, publisher, message, 0);
  published = message;
})

TRACEPOINT(rmw_publish, (const void *publisher, const void *message, int64_t stamp_ns),
           (publisher, message, stamp_ns), {
             (void)message;
             bool has_stamp = publisher != published;
             RECORD(POINT_STAMP, publisher, has_stamp ? stamp_ns : 0, has_stamp);
           })

/* -- taking ---------------------------------------------------------------------------------- */

TRACEPOINT(rmw_take,
           (const void *subscription, const void *message, int64_t source_ns, const bool is_taken),
           (subscription, message, source_ns, is_taken), {
             (void)message;
             RECORD(POINT_RMW_TAKEN, subscription, source_ns, is_taken);
           })

TRACEPOINT(rcl_take, (const void *message), (message), { RECORD(POINT_RCL_TAKEN, message, 0, 0); })

TRACEPOINT(rclcpp_take, (const void *message), (message),
           { RECORD(POINT_CLIENT_TAKEN, message, 0, 0); })

TRACEPOINT(callback_start, (const void *callback, const bool is_intra_process),
           (callback, is_intra_process),
           { RECORD(POINT_CALLBACK_START, callback, 0, is_intra_process); })

/* -- services: their requests and replies start work of a thread ---------------------------- */

TRACEPOINT(rmw_take_request,
           (const void *service, const void *request, const uint8_t *client, int64_t sequence,
            const bool is_taken),
           (service, request, client, sequence, is_taken), {
             (void)request;
             (void)client;
             if (is_taken) RECORD(POINT_SERVICE, service, sequence, 0);
           })

TRACEPOINT(rmw_take_response,
           (const void *client, const void *response, int64_t sequence, int64_t source_ns,
            const bool is_taken),
           (client, response, sequence, source_ns, is_taken), {
             (void)response;
             (void)source_ns;
             if (is_taken) RECORD(POINT_SERVICE, client, sequence, 1);
           })
