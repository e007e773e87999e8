<?php

/**
 * `client.php HOST PORT WARM CALLS`: calls per second of a JSON-RPC loop on curl, without a kit.
 */

declare(strict_types=1);

const TEXT = 'Hello World';

[, $host, $port, $warm, $calls] = $argv;
$handle = curl_init("http://$host:$port/rpc");
curl_setopt_array($handle, [
    CURLOPT_POST => true, CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT_MS => 5000,
    CURLOPT_NOPROXY => '*', // as the cell, which takes no proxy from the environment
    CURLOPT_HTTPHEADER => ['Content-Type: application/json'],
]);

function call(CurlHandle $handle, int $id): void
{
    $request = ['jsonrpc' => '2.0', 'id' => $id, 'method' => 'echo', 'params' => [TEXT]];
    curl_setopt($handle, CURLOPT_POSTFIELDS, json_encode($request));
    $text = curl_exec($handle);
    $status = curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
    $response = json_decode((string) $text, true);
    if ([$status, $response['id'] ?? null, $response['result'] ?? null] !== [200, $id, TEXT]) {
        fwrite(STDERR, "$status " . json_encode($text) . ', not ' . TEXT
            . '; curl: ' . curl_error($handle) . "\n");
        exit(1);
    }
}

call($handle, 0);
echo "begun\n";
for ($id = 1; $id <= (int) $warm; $id++) {
    call($handle, $id);
}
$start_ns = hrtime(true);
echo "warm\n";
for ($id = 1; $id <= (int) $calls; $id++) {
    call($handle, $id);
}
echo (int) $calls * 1e9 / (hrtime(true) - $start_ns), "\n";
