<?php
/** The gRPC C core by FFI: core.h has what is used of it, for 64-bit machines. */
declare(strict_types=1);

const SEND_INITIAL_METADATA = 0, SEND_MESSAGE = 1, SEND_CLOSE_FROM_CLIENT = 2;
const SEND_STATUS_FROM_SERVER = 3, RECV_INITIAL_METADATA = 4, RECV_MESSAGE = 5;
const RECV_STATUS_ON_CLIENT = 6, RECV_CLOSE_ON_SERVER = 7;
const STATUS_OK = 0, DEADLINE_EXCEEDED = 4, FAILED_PRECONDITION = 9, UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const OP_COMPLETE = 2, PROPAGATE_DEFAULTS = 0xFFFF;

final class Core {
    public readonly FFI $c;
    public readonly FFI\CData $queue;

    public function __construct() {
        $this->c = FFI::cdef(file_get_contents(__DIR__ . '/core.h'), 'libgrpc.so.29');
        $this->c->grpc_init();
        $this->queue = $this->c->grpc_completion_queue_create_for_next(null);
    }

    public function version(): string {
        return $this->c->grpc_version_string();
    }

    /** A time of CLOCK_MONOTONIC, which is the core's first clock. */
    public function time(int $ns): FFI\CData {
        $time = $this->c->new('gpr_timespec');
        [$time->tv_sec, $time->tv_nsec] = [intdiv($ns, 1_000_000_000), $ns % 1_000_000_000];
        return $time;
    }

    /** The number of the operations that have ended, and whether well; null at that time. */
    public function next(int $until_ns): ?array {
        $event = $this->c->grpc_completion_queue_next($this->queue, $this->time($until_ns), null);
        if ($event->type !== OP_COMPLETE) {
            return null;
        }
        return [$event->tag, $event->success !== 0];
    }

    /** Memory for the operations of a call. */
    public function call(): FFI\CData {
        $call = $this->c->new('wattwire_call');
        $this->c->grpc_metadata_array_init(FFI::addr($call->first));
        $this->c->grpc_metadata_array_init(FFI::addr($call->last));
        return $call;
    }

    /** Starts operations, each with what goes into its data; they end with this number. */
    public function start(FFI\CData $call, int $number, array $operations): void {
        $count = 0;
        foreach ($operations as $operation => $data) {
            $op = $call->ops[$count++];
            FFI::memset(FFI::addr($op), 0, FFI::sizeof($op));
            $op->op = $operation;
            foreach ($data as $at => $value) {
                $op->data[$at] = $value === null ? null : $this->c->cast('void*', $value);
            }
        }
        $ops = FFI::addr($call->ops[0]);
        $error = $this->c->grpc_call_start_batch($call->call, $ops, $count, $number, null);
        $error === 0 || throw new Wattwire\Refused("grpc_call_start_batch: error $error", 4);
    }

    /** A message's buffer; destroy() it after the operation. */
    public function buffer(string $bytes): FFI\CData {
        $slice = $this->c->grpc_slice_from_copied_buffer($bytes, strlen($bytes));
        $buffer = $this->c->grpc_raw_byte_buffer_create(FFI::addr($slice), 1);
        $this->c->grpc_slice_unref($slice);
        return $buffer;
    }

    public function destroy(FFI\CData $buffer): void {
        $this->c->grpc_byte_buffer_destroy($buffer);
    }

    /** The bytes of a message that arrived; it is destroyed. */
    public function read(FFI\CData $buffer): string {
        $reader = $this->c->new('grpc_byte_buffer_reader');
        $this->c->grpc_byte_buffer_reader_init(FFI::addr($reader), $buffer);
        $slice = $this->c->grpc_byte_buffer_reader_readall(FFI::addr($reader));
        $bytes = $this->bytes($slice);
        $this->c->grpc_slice_unref($slice);
        $this->c->grpc_byte_buffer_reader_destroy(FFI::addr($reader));
        $this->destroy($buffer);
        return $bytes;
    }

    /** A short slice holds its length in one byte and its bytes behind that. */
    public function bytes(FFI\CData $slice): string {
        if ($slice->refcount !== null) {
            return FFI::string($slice->bytes, $slice->length);
        }
        $inlined = $this->c->cast('uint8_t*', FFI::addr($slice->length));
        return FFI::string($inlined + 1, $inlined[0]);
    }

    public function free(FFI\CData $call): void {
        $this->c->grpc_metadata_array_destroy(FFI::addr($call->first));
        $this->c->grpc_metadata_array_destroy(FFI::addr($call->last));
        if ($call->call !== null) {
            $this->c->grpc_call_unref($call->call);
        }
    }
}
