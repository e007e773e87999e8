<?php

/** TCP node: length-prefixed frames, one connection for each client. */

declare(strict_types=1);

require 'wattwire/kit.php';
require __DIR__ . '/stream.php';
require __DIR__ . '/service.php';

Wattwire\run(
    ['client' => client(...), 'ping' => client(...), 'server' => server(...),
        'pong' => server(...)],
    [
        'tcp_nodelay' => 'bool',
        'tcp_quickack' => 'string',
        'connections' => 'int',
        'writes' => 'int',
        'receive_buffer_bytes' => 'int',
        'send_buffer_bytes' => 'int',
        'bind_address' => 'string',
    ],
    ['encoding.bytes', 'encoding.text', 'pacing.kit', 'loop.open', 'loop.closed', 'reply.echo',
        'reply.ack', 'reply.literal', 'literal'],
    ['bytes' => [16, 67_108_864], 'text' => [32, 67_108_864]],
);
