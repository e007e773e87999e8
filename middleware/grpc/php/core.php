<?php

/** The gRPC C core by FFI: core.h declares the functions used, for 64-bit machines. */

declare(strict_types=1);

const SEND_INITIAL_METADATA = 0, SEND_MESSAGE = 1, SEND_CLOSE_FROM_CLIENT = 2;
const SEND_STATUS_FROM_SERVER = 3, RECV_INITIAL_METADATA = 4, RECV_MESSAGE = 5;
const RECV_STATUS_ON_CLIENT = 6, RECV_CLOSE_ON_SERVER = 7;
const STATUS_OK = 0, DEADLINE_EXCEEDED = 4, FAILED_PRECONDITION = 9, UNIMPLEMENTED = 12;
const OP_COMPLETE = 2, PROPAGATE_DEFAULTS = 0xFFFF;

final class Core
{
    public readonly FFI $c;
    public readonly FFI\CData $queue;
    // Arguments of functions, allocated once: an FFI object costs more than a call.
    private readonly FFI\CData $time;
    private readonly FFI\CData $reader;

    public function __construct()
    {
        $this->c = FFI::cdef(file_get_contents(__DIR__ . '/core.h'), 'libgrpc.so.29');
        $this->c->grpc_init();
        $this->queue = $this->c->grpc_completion_queue_create_for_next(null);
        $this->time = $this->c->new('gpr_timespec');
        $this->reader = $this->c->new('grpc_byte_buffer_reader');
    }

    public function version(): string
    {
        return $this->c->grpc_version_string();
    }

    /** Returns credentials that trust the authority in a file, or those without TLS. */
    public function clientCredentials(string $authority): FFI\CData
    {
        return $authority === '' ? $this->c->grpc_insecure_credentials_create()
            : $this->c->grpc_ssl_credentials_create(
                file_get_contents($authority),
                null,
                null,
                null
            );
    }

    public function serverCredentials(string $certificate, string $key): FFI\CData
    {
        if ($certificate === '') {
            return $this->c->grpc_insecure_server_credentials_create();
        }
        $pair = $this->c->new('grpc_ssl_pem_key_cert_pair');
        [$held_key, $held_certificate] = [$this->text($key), $this->text($certificate)];
        $pair->private_key = FFI::addr($held_key[0]);
        $pair->cert_chain = FFI::addr($held_certificate[0]);
        return $this->c->grpc_ssl_server_credentials_create(null, FFI::addr($pair), 1, 0, null);
    }

    /** Returns a file's text as a C string. */
    private function text(string $path): FFI\CData
    {
        $text = file_get_contents($path);
        $held = $this->c->new('char[' . strlen($text) + 1 . ']');
        FFI::memcpy($held, $text, strlen($text));
        return $held;
    }

    /** Returns a time of CLOCK_MONOTONIC, the core's first clock; valid until the next call. */
    private function time(int $ns): FFI\CData
    {
        $this->time->tv_sec = intdiv($ns, 1_000_000_000);
        $this->time->tv_nsec = $ns % 1_000_000_000;
        return $this->time;
    }

    /** Opens a client's call with a deadline. */
    public function open(FFI\CData $channel, FFI\CData $path, int $until_ns): FFI\CData
    {
        return $this->c->grpc_channel_create_call(
            $channel,
            null,
            PROPAGATE_DEFAULTS,
            $this->queue,
            $path,
            null,
            $this->time($until_ns),
            null
        );
    }

    /** Returns [number of the finished operations, success]; null at $until_ns. */
    public function next(int $until_ns): ?array
    {
        $event = $this->c->grpc_completion_queue_next($this->queue, $this->time($until_ns), null);
        if ($event->type !== OP_COMPLETE) {
            return null;
        }
        return [$event->tag, $event->success !== 0];
    }

    /** Returns memory for the operations of a call. */
    public function call(): FFI\CData
    {
        $call = $this->c->new('wattwire_call');
        $this->c->grpc_metadata_array_init(FFI::addr($call->first));
        $this->c->grpc_metadata_array_init(FFI::addr($call->last));
        return $call;
    }

    /** Writes operations (code => data); returns their number. */
    public function prepare(FFI\CData $call, array $operations): int
    {
        $count = 0;
        foreach ($operations as $operation => $data) {
            $op = $call->ops[$count++];
            FFI::memset(FFI::addr($op), 0, FFI::sizeof($op));
            $op->op = $operation;
            foreach ($data as $at => $value) {
                $op->data[$at] = $value === null ? null : $this->c->cast('void*', $value);
            }
        }
        return $count;
    }

    /** Starts the operations that were written; next() returns this number when they end. */
    public function start(FFI\CData $call, int $number, int $count): void
    {
        $ops = FFI::addr($call->ops[0]);
        $error = $this->c->grpc_call_start_batch($call->call, $ops, $count, $number, null);
        $error === 0 || throw new Wattwire\Refused("grpc_call_start_batch: error $error", 4);
    }

    /** Returns a message's buffer; destroy() frees it after the operation. */
    public function buffer(string $bytes): FFI\CData
    {
        $slice = $this->c->grpc_slice_from_copied_buffer($bytes, strlen($bytes));
        $buffer = $this->c->grpc_raw_byte_buffer_create(FFI::addr($slice), 1);
        $this->c->grpc_slice_unref($slice);
        return $buffer;
    }

    public function destroy(FFI\CData $buffer): void
    {
        $this->c->grpc_byte_buffer_destroy($buffer);
    }

    /** Returns the bytes of a message that arrived and frees its buffer. */
    public function read(FFI\CData $buffer): string
    {
        $reader = FFI::addr($this->reader);
        $this->c->grpc_byte_buffer_reader_init($reader, $buffer);
        $slice = $this->c->grpc_byte_buffer_reader_readall($reader);
        $bytes = $this->bytes($slice);
        $this->c->grpc_slice_unref($slice);
        $this->c->grpc_byte_buffer_reader_destroy($reader);
        $this->destroy($buffer);
        return $bytes;
    }

    /** Returns a slice's bytes. A short slice has its length in one byte, then its bytes. */
    public function bytes(FFI\CData $slice): string
    {
        if ($slice->refcount !== null) {
            return FFI::string($slice->bytes, $slice->length);
        }
        $inlined = $this->c->cast('uint8_t*', FFI::addr($slice->length));
        return FFI::string($inlined + 1, $inlined[0]);
    }

    public function free(FFI\CData $call): void
    {
        $this->c->grpc_metadata_array_destroy(FFI::addr($call->first));
        $this->c->grpc_metadata_array_destroy(FFI::addr($call->last));
        if ($call->call !== null) {
            $this->c->grpc_call_unref($call->call);
        }
    }
}
