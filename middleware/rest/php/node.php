<?php

/** REST node: the curl extension calls nginx, php-fpm and a Slim application. */

declare(strict_types=1);

use Wattwire\Kit;
use Wattwire\Record;

require 'wattwire/kit.php';
foreach (['client', 'configuration', 'server'] as $name) {
    require "web/$name.php";
}

const TYPES = ['bytes' => 'application/octet-stream', 'record' => 'application/json',
    'text' => 'text/plain; charset=utf-8'];

function client(Kit $kit): void
{
    $record = $kit->spec->payload_encoding === 'record';
    $type = TYPES[$kit->spec->payload_literal === '' ? $kit->spec->payload_encoding : 'text'];
    Web\call(
        $kit,
        $type,
        fn (string|array $message) => $record ? json_encode($message) : $message,
        fn (string $body) => $record ? Record::decode($body) : $body
    );
}

function server(Kit $kit): void
{
    set_include_path(get_include_path() . ':/usr/share/php');
    require_once 'Slim/autoload.php';
    Web\serve(
        $kit,
        __DIR__ . '/public',
        '/echo',
        ['name' => 'Slim', 'version' => Slim\App::VERSION]
    );
}

Wattwire\run([
    'client' => client(...),
    'ping' => client(...),
    'server' => server(...),
    'pong' => server(...),
]);
