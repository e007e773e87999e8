<?php

/** gRPC node: the gRPC C core by FFI, messages of Google's protobuf library for PHP. */

declare(strict_types=1);

require 'wattwire/kit.php';
foreach (['core', 'messages', 'client', 'server'] as $name) {
    require __DIR__ . "/$name.php";
}

Wattwire\run(
    ['client' => client(...), 'ping' => client(...), 'server' => server(...),
        'pong' => server(...)],
    [
        'keep_alive' => 'string',
        'tls' => 'bool',
        'server_workers' => 'int',
    ],
    ['encoding.bytes', 'encoding.text', 'encoding.record', 'pacing.kit', 'loop.open',
        'loop.closed', 'reply.echo', 'reply.ack', 'reply.literal', 'literal'],
    ['bytes' => [16, 4_000_000], 'text' => [32, 4_000_000], 'record' => [96, 3_000_000]],
);
