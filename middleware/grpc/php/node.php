<?php

/** gRPC node: the gRPC C core by FFI, messages of Google's protobuf library for PHP. */

declare(strict_types=1);

require 'wattwire/kit.php';
foreach (['core', 'messages', 'client', 'server'] as $name) {
    require __DIR__ . "/$name.php";
}

Wattwire\run([
    'client' => client(...),
    'ping' => client(...),
    'server' => server(...),
    'pong' => server(...),
]);
