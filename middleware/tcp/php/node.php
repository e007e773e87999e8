<?php

/** TCP node: length-prefixed frames, one connection for each client. */

declare(strict_types=1);

require 'wattwire/kit.php';
require __DIR__ . '/stream.php';
require __DIR__ . '/service.php';

Wattwire\run([
    'client' => client(...),
    'ping' => client(...),
    'server' => server(...),
    'pong' => server(...),
]);
