<?php

/** `client.php HOST PORT WARM CALLS`: calls per second of a loop on curl, without a kit. */

declare(strict_types=1);

const TEXT = 'Hello World';

[, $host, $port, $warm, $calls] = $argv;
$handle = curl_init("http://$host:$port/echo");
curl_setopt_array($handle, [
    CURLOPT_POST => true, CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT_MS => 5000,
    CURLOPT_NOPROXY => '*', // as the cell, which takes no proxy from the environment
    CURLOPT_HTTPHEADER => ['Content-Type: text/plain; charset=utf-8'],
]);

function call(CurlHandle $handle): void
{
    curl_setopt($handle, CURLOPT_POSTFIELDS, TEXT);
    $reply = curl_exec($handle);
    $status = curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
    if ($status !== 200 || $reply !== TEXT) {
        fwrite(STDERR, "$status " . json_encode($reply) . ', not ' . TEXT
            . '; curl: ' . curl_error($handle) . "\n");
        exit(1);
    }
}

call($handle);
echo "begun\n";
for ($number = 0; $number < (int) $warm; $number++) {
    call($handle);
}
$start_ns = hrtime(true);
echo "warm\n";
for ($number = 0; $number < (int) $calls; $number++) {
    call($handle);
}
echo (int) $calls * 1e9 / (hrtime(true) - $start_ns), "\n";
