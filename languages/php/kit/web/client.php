<?php

/** Client and ping over HTTP: one curl handle, which keeps its connection. */

declare(strict_types=1);

namespace Web;

use CurlHandle;
use CurlMultiHandle;
use Wattwire\Kit;
use Wattwire\Refused;

const NOT_SENT = [CURLE_COULDNT_CONNECT, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING];
const CHECK_NS = 100_000_000;

/**
 * Runs a client: posts $body(message) with content type $type. $reply(body) returns the kit's
 * reply, or false for an error. A call with an error or another status than 200 failed (C-36).
 */
function call(Kit $kit, string $type, callable $body, callable $reply): void
{
    $handle = handle($kit, $type);
    $calls = curl_multi_init(); // holds the connection
    $refused = []; // status other than 200 => number of responses, with those to probes
    $call = function (
        string|array $message,
        int $until_ns
    ) use (
        $kit,
        $calls,
        $handle,
        $body,
        $reply,
        &$refused,
    ) {
        curl_setopt_array($handle, [
            CURLOPT_POSTFIELDS => $body($message),
            CURLOPT_TIMEOUT_MS => max(1, intdiv($until_ns - hrtime(true) + 999_999, 1_000_000)),
        ]);
        $result = perform($kit, $calls, $handle);
        if ($result !== CURLE_OK) {
            return unanswered($kit, $handle, $result);
        }
        $status = curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
        if ($status !== 200) {
            $refused[$status] = ($refused[$status] ?? 0) + 1;
            $kit->reason = "HTTP status $status";
            return false;
        }
        return $reply(curl_multi_getcontent($handle));
    };
    try {
        announceClient($kit, $kit->probe($call));
        $kit->calls($call);
    } finally {
        logRefused($refused);
    }
}

/** Writes to the log how many responses had a status other than 200. */
function logRefused(array $refused): void
{
    foreach ($refused as $status => $count) {
        fwrite(STDERR, "HTTP status $status instead of 200: $count responses\n");
    }
}

/** Does what curl_exec() does and checks standard input every 100 ms; returns curl's code. */
function perform(Kit $kit, CurlMultiHandle $calls, CurlHandle $handle): int
{
    static $checked_ns = 0;
    curl_multi_add_handle($calls, $handle);
    while (curl_multi_exec($calls, $running) === CURLM_OK && $running > 0 && !$kit->stopped) {
        curl_multi_select($calls, CHECK_NS / 1e9);
        if (hrtime(true) - $checked_ns >= CHECK_NS) {
            $kit->wait(0);
            $checked_ns = hrtime(true);
        }
    }
    $message = curl_multi_info_read($calls);
    curl_multi_remove_handle($calls, $handle);
    return $message['result'] ?? CURLE_OPERATION_TIMEDOUT;
}

/** Returns null if no response came in time, false if the request was not sent. */
function unanswered(Kit $kit, CurlHandle $handle, int $result): ?bool
{
    $kit->reason = 'curl: ' . curl_error($handle);
    return match (true) {
        $result === CURLE_OPERATION_TIMEDOUT => null,
        in_array($result, NOT_SENT, true) => false,
        default => throw new Refused($kit->reason, 4),
    };
}

function handle(Kit $kit, string $type): CurlHandle
{
    $spec = $kit->spec;
    $close = $spec->settings['keep_alive'] === 'off';
    $handle = curl_init($spec->peers_endpoints[0] ?? '');
    curl_setopt_array($handle, [
        CURLOPT_POST => true, CURLOPT_RETURNTRANSFER => true, CURLOPT_NOPROXY => '*',
        CURLOPT_HTTPHEADER => ["Content-Type: $type", ...($close ? ['Connection: close'] : [])],
        CURLOPT_FORBID_REUSE => $close,
    ]);
    if (($spec->settings['http_version'] ?? 'default') === '1.1') {
        curl_setopt($handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    }
    if ($spec->settings['tcp_nodelay'] !== 'default') {
        curl_setopt($handle, CURLOPT_TCP_NODELAY, $spec->settings['tcp_nodelay'] === 'on');
    }
    if ($spec->tls_authority !== '') {
        // This folder has no certificates, so curl does not trust the system's authorities.
        $trust = [CURLOPT_CAINFO => $spec->tls_authority, CURLOPT_CAPATH => __DIR__];
        curl_setopt_array($handle, $trust);
    }
    return $handle;
}

function announceClient(Kit $kit, int $discovery_ns): void
{
    $spec = $kit->spec;
    $curl = curl_version();
    $library = ['name' => 'curl', 'version' => $curl['version'], 'build' => 'PHP ' . PHP_VERSION
        . ', ' . ($spec->settings['tls'] ? $curl['ssl_version'] : 'no TLS')];
    ready($kit, 1, $discovery_ns, $library, [
        'keep_alive' => $spec->settings['keep_alive'] === 'off' ? 'off' : 'on',
        'tcp_nodelay' => $spec->settings['tcp_nodelay'] !== 'off', 'tls' => $spec->settings['tls'],
        'transport' => 'tcp/ipv4',
    ]);
}

/** Prints READY with the guarantee of HTTP. */
function ready(
    Kit $kit,
    ?int $matched,
    ?int $discovery_ns,
    array $library,
    array $effective
): void {
    $guarantee = ['delivery' => 'reliable', 'ordering' => 'none', 'overload' => 'block'];
    $effective += ['http_version' => '1.1'];
    $kit->ready($matched, $discovery_ns, $library, $effective, $guarantee);
}
