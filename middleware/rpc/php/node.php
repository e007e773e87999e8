<?php
/** RPC node: JSON-RPC 2.0 by the curl extension; nginx and php-fpm before a dispatcher. */
declare(strict_types=1);

require 'wattwire/kit.php';
require __DIR__ . '/client.php';
require __DIR__ . '/configuration.php';
require __DIR__ . '/server.php';

const MIB = 1_048_576;

Wattwire\run(
    ['client' => client(...), 'ping' => client(...), 'server' => server(...),
        'pong' => server(...)],
    'settings.keep_alive:string settings.tcp_nodelay:string settings.tls:boolean
        settings.server_workers:integer',
    ['encoding.text', 'encoding.record', 'pacing.kit', 'loop.open', 'loop.closed', 'reply.echo',
        'reply.ack', 'reply.literal', 'literal'],
    ['text' => [32, 16 * MIB], 'record' => [96, 4 * MIB]],
);
