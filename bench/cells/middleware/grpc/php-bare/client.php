<?php

/**
 * `client.php HOST PORT WARM CALLS`: calls per second of a loop on the gRPC C core, without a kit.
 */

declare(strict_types=1);

const TEXT = 'Hello World', PATH = '/wattwire.Calls/Text';
spl_autoload_register(fn (string $class) => require strtr($class, '\\', '/') . '.php');

function call(FFI $c, FFI\CData $channel, FFI\CData $queue): void
{
    $deadline = $c->new('gpr_timespec'); // of CLOCK_MONOTONIC, the core's first clock
    [$deadline->tv_sec, $deadline->tv_nsec] = hrtime();
    $deadline->tv_sec += 5;
    $path = $c->grpc_slice_from_copied_buffer(PATH, strlen(PATH));
    $message = (new Wattwire\TextPayload())->setData(TEXT)->serializeToString();
    $slice = $c->grpc_slice_from_copied_buffer($message, strlen($message));
    $sent = $c->grpc_raw_byte_buffer_create(FFI::addr($slice), 1);
    $of = $c->new('wattwire_call'); // memory for what arrives, and for the operations
    $of->call = $c->grpc_channel_create_call(
        $channel,
        null,
        0xFFFF,
        $queue,
        $path,
        null,
        $deadline,
        null
    );
    $last = [FFI::addr($of->last), FFI::addr($of->status), FFI::addr($of->status_details)];
    $data = [1 => [$sent], 4 => [FFI::addr($of->first)], 5 => [FFI::addr($of->received)],
        6 => $last];
    foreach ([0, 1, 2, 4, 5, 6] as $at => $operation) { // all but the server's
        $of->ops[$at]->op = $operation;
        foreach ($data[$operation] ?? [] as $place => $pointer) {
            $of->ops[$at]->data[$place] = $c->cast('void*', $pointer);
        }
    }
    $c->grpc_call_start_batch($of->call, FFI::addr($of->ops[0]), 6, 1, null);
    $c->grpc_completion_queue_next($queue, $deadline, null);
    $of->received !== null || error_log("no reply, status $of->status") && exit(1);
    $reader = $c->new('grpc_byte_buffer_reader');
    $c->grpc_byte_buffer_reader_init(FFI::addr($reader), $of->received);
    $reply = $c->grpc_byte_buffer_reader_readall(FFI::addr($reader));
    $inlined = $c->cast('uint8_t*', FFI::addr($reply->length)); // a short slice: length, bytes
    $payload = new Wattwire\TextPayload();
    $payload->mergeFromString($reply->refcount === null
        ? FFI::string($inlined + 1, $inlined[0]) : FFI::string($reply->bytes, $reply->length));
    $payload->getData() === TEXT || error_log("{$payload->getData()}, not " . TEXT) && exit(1);
    foreach ([$path, $slice, $of->status_details, $reply] as $slice) {
        $c->grpc_slice_unref($slice);
    }
    $c->grpc_byte_buffer_reader_destroy(FFI::addr($reader));
    $c->grpc_byte_buffer_destroy($sent);
    $c->grpc_byte_buffer_destroy($of->received);
    $c->grpc_metadata_array_destroy(FFI::addr($of->first));
    $c->grpc_metadata_array_destroy(FFI::addr($of->last));
    $c->grpc_call_unref($of->call);
}

[, $host, $port, $warm, $calls] = $argv;
$c = FFI::cdef(file_get_contents(__DIR__ . '/core.h'), 'libgrpc.so.29');
$c->grpc_init();
$queue = $c->grpc_completion_queue_create_for_next(null);
$channel = $c->grpc_channel_create("$host:$port", $c->grpc_insecure_credentials_create(), null);
call($c, $channel, $queue);
echo "begun\n";
for ($number = 0; $number < (int) $warm; $number++) {
    call($c, $channel, $queue);
}
$start_ns = hrtime(true);
echo "warm\n";
for ($number = 0; $number < (int) $calls; $number++) {
    call($c, $channel, $queue);
}
echo (int) $calls * 1e9 / (hrtime(true) - $start_ns), "\n";
