<?php

/** RPC node: JSON-RPC 2.0 by the curl extension; nginx and php-fpm before a dispatcher. */

declare(strict_types=1);

use Wattwire\Kit;
use Wattwire\Record;

require 'wattwire/kit.php';
foreach (['client', 'configuration', 'server'] as $name) {
    require "web/$name.php";
}

const JSON_FLAGS = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE;

function client(Kit $kit): void
{
    $record = $kit->spec->payload_encoding === 'record';
    $method = $record ? 'echo_record' : 'echo';
    $id = 0;
    $request = function (string|array $message) use ($method, &$id): string {
        $call = ['jsonrpc' => '2.0', 'id' => ++$id, 'method' => $method, 'params' => [$message]];
        return json_encode($call, JSON_FLAGS);
    };
    $result = function (string $body) use ($kit, $record, &$id): string|array|false {
        $response = json_decode($body, true);
        if (isset($response['error'])) {
            $kit->reason = 'JSON-RPC error ' . json_encode($response['error']);
            return false;
        }
        $value = ($response['id'] ?? null) === $id ? $response['result'] ?? null : null;
        return $record ? Record::decode(json_encode($value)) : (is_string($value) ? $value : '');
    };
    Web\call($kit, 'application/json', $request, $result);
}

function server(Kit $kit): void
{
    $library = ['name' => 'php-fpm', 'version' => PHP_VERSION];
    Web\serve($kit, __DIR__ . '/public', '/rpc', $library);
}

Wattwire\run([
    'client' => client(...),
    'ping' => client(...),
    'server' => server(...),
    'pong' => server(...),
]);
