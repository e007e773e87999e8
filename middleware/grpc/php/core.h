typedef struct {
  void* refcount;
  size_t length;
  uint8_t* bytes;
  void* rest;
} grpc_slice;
typedef struct {
  int64_t tv_sec;
  int32_t tv_nsec;
  int clock_type;
} gpr_timespec;
typedef struct {
  int type;
  int success;
  intptr_t tag;
} grpc_event;
typedef struct {
  size_t count;
  size_t capacity;
  void* metadata;
} grpc_metadata_array;
typedef struct {
  grpc_slice method;
  grpc_slice host;
  gpr_timespec deadline;
} grpc_call_details;
typedef struct {
  const char* private_key;
  const char* cert_chain;
} grpc_ssl_pem_key_cert_pair;
typedef struct {
  void* in;
  void* out;
  unsigned index;
} grpc_byte_buffer_reader;
typedef struct {
  int op;
  uint32_t flags;
  void* reserved;
  void* data[8];
} grpc_op;
typedef struct {
  grpc_metadata_array first;
  grpc_metadata_array last;
  grpc_call_details details;
  void* call;
  void* received;
  int status;
  grpc_slice status_details;
  char* error;
  int cancelled;
  grpc_op ops[6];
} wattwire_call;
void grpc_init(void);
const char* grpc_version_string(void);
void* grpc_insecure_credentials_create(void);
void* grpc_insecure_server_credentials_create(void);
void* grpc_ssl_credentials_create(const char* authorities, grpc_ssl_pem_key_cert_pair* pair,
                                  const void* options, void* reserved);
void* grpc_ssl_server_credentials_create(const char* authorities, grpc_ssl_pem_key_cert_pair* pairs,
                                         size_t count, int asks_clients, void* reserved);
void* grpc_channel_create(const char* target, void* credentials, const void* arguments);
void grpc_channel_destroy(void* channel);
void* grpc_channel_create_call(void* channel, void* parent, uint32_t mask, void* queue,
                               grpc_slice method, const grpc_slice* host, gpr_timespec deadline,
                               void* reserved);
int grpc_call_start_batch(void* call, const grpc_op* ops, size_t count, intptr_t tag,
                          void* reserved);
void grpc_call_unref(void* call);
void* grpc_call_cancel(void* call, void* reserved);
void* grpc_completion_queue_create_for_next(void* reserved);
grpc_event grpc_completion_queue_next(void* queue, gpr_timespec deadline, void* reserved);
grpc_slice grpc_slice_from_copied_buffer(const char* source, size_t length);
void grpc_slice_unref(grpc_slice slice);
void* grpc_raw_byte_buffer_create(grpc_slice* slices, size_t count);
void grpc_byte_buffer_destroy(void* buffer);
int grpc_byte_buffer_reader_init(grpc_byte_buffer_reader* reader, void* buffer);
grpc_slice grpc_byte_buffer_reader_readall(grpc_byte_buffer_reader* reader);
void grpc_byte_buffer_reader_destroy(grpc_byte_buffer_reader* reader);
void grpc_metadata_array_init(grpc_metadata_array* array);
void grpc_metadata_array_destroy(grpc_metadata_array* array);
void grpc_call_details_init(grpc_call_details* details);
void grpc_call_details_destroy(grpc_call_details* details);
void* grpc_server_create(const void* arguments, void* reserved);
void grpc_server_register_completion_queue(void* server, void* queue, void* reserved);
int grpc_server_add_http2_port(void* server, const char* address, void* credentials);
void grpc_server_start(void* server);
int grpc_server_request_call(void* server, void** call, grpc_call_details* details,
                             grpc_metadata_array* metadata, void* bound, void* notified,
                             intptr_t tag);
