<?php
/** Client and ping: JSON-RPC 2.0 by one curl handle, which keeps its connection. */
declare(strict_types=1);

use Wattwire\{Kit, Record, Refused};

const NOT_SENT = [CURLE_COULDNT_CONNECT, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING];
const JSON_TYPE = 'Content-Type: application/json';
const JSON_FLAGS = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE;
const LOOK_NS = 100_000_000;

function client(Kit $kit): void {
    $handle = handle($kit, $kit->spec['peers.endpoints'][0] ?? '');
    $calls = curl_multi_init(); // holds the connection
    $record = $kit->spec['payload.encoding'] === 'record';
    $id = 0;
    $call = function (string|array $message, int $until_ns) use (
        $kit, $calls, $handle, $record, &$id,
    ) {
        $method = $record ? 'echo_record' : 'echo';
        $request = ['jsonrpc' => '2.0', 'id' => ++$id, 'method' => $method, 'params' => [$message]];
        curl_setopt_array($handle, [
            CURLOPT_POSTFIELDS => json_encode($request, JSON_FLAGS),
            CURLOPT_TIMEOUT_MS => max(1, intdiv($until_ns - hrtime(true) + 999_999, 1_000_000)),
        ]);
        $result = perform($kit, $calls, $handle);
        if ($result !== CURLE_OK) {
            return unanswered($handle, $result);
        }
        $answered = curl_getinfo($handle, CURLINFO_RESPONSE_CODE) === 200;
        $response = json_decode($answered ? curl_multi_getcontent($handle) : '', true);
        $found = ($response['id'] ?? null) === $id ? $response['result'] ?? null : null;
        return $record ? Record::decode(json_encode($found)) : (is_string($found) ? $found : '');
    };
    $discovery_ns = $kit->probe($call);
    announceClient($kit, $handle, $discovery_ns);
    $kit->calls($call);
}

/** As curl_exec() does it, but looks at standard input every 100 ms; a number of curl's. */
function perform(Kit $kit, CurlMultiHandle $calls, CurlHandle $handle): int {
    static $looked_ns = 0;
    curl_multi_add_handle($calls, $handle);
    while (curl_multi_exec($calls, $running) === CURLM_OK && $running > 0 && !$kit->stopped) {
        curl_multi_select($calls, LOOK_NS / 1e9);
        if (hrtime(true) - $looked_ns >= LOOK_NS) {
            $kit->wait(0);
            $looked_ns = hrtime(true);
        }
    }
    $message = curl_multi_info_read($calls);
    curl_multi_remove_handle($calls, $handle);
    return $message['result'] ?? CURLE_OPERATION_TIMEDOUT;
}

/** null where no answer came in time, false where the request was not sent. */
function unanswered(CurlHandle $handle, int $result): ?bool {
    return match (true) {
        $result === CURLE_OPERATION_TIMEDOUT => null,
        in_array($result, NOT_SENT, true) => false,
        default => throw new Refused('curl: ' . curl_error($handle), 4),
    };
}

function handle(Kit $kit, string $url): CurlHandle {
    $spec = $kit->spec;
    $close = $spec['settings.keep_alive'] === 'off';
    $handle = curl_init($url);
    curl_setopt_array($handle, [
        CURLOPT_POST => true, CURLOPT_RETURNTRANSFER => true, CURLOPT_NOPROXY => '*',
        CURLOPT_HTTPHEADER => [JSON_TYPE, ...($close ? ['Connection: close'] : [])],
        CURLOPT_FORBID_REUSE => $close,
    ]);
    if ($spec['settings.tcp_nodelay'] !== 'default') {
        curl_setopt($handle, CURLOPT_TCP_NODELAY, $spec['settings.tcp_nodelay'] === 'on');
    }
    if ($spec['tls.authority'] !== '') {
        // The folder is one without certificates: the system's authorities count for nothing.
        $trust = [CURLOPT_CAINFO => $spec['tls.authority'], CURLOPT_CAPATH => __DIR__];
        curl_setopt_array($handle, $trust);
    }
    return $handle;
}

function announceClient(Kit $kit, CurlHandle $handle, int $discovery_ns): void {
    $spec = $kit->spec;
    $curl = curl_version();
    $nodelay = $spec['settings.tcp_nodelay'];
    $effective = [
        'keep_alive' => $spec['settings.keep_alive'] === 'off' ? 'off' : 'on',
        'tcp_nodelay' => $nodelay !== 'off', 'tls' => $spec['settings.tls'],
        'server_workers' => $spec['settings.server_workers'], 'transport' => 'tcp/ipv4',
    ];
    $library = ['name' => 'curl', 'version' => $curl['version'], 'build' => 'PHP ' . PHP_VERSION
        . ', ' . ($spec['settings.tls'] ? $curl['ssl_version'] : 'no TLS')];
    ready(1, $discovery_ns, $library, $effective);
}

/** READY, with the guarantee of HTTP. */
function ready(?int $matched, ?int $discovery_ns, array $library, array $effective): void {
    Wattwire\line('READY', [
        'matched' => $matched, 'startup_ns' => hrtime(true) - Wattwire\BEGIN_NS,
        'discovery_ns' => $discovery_ns, 'library' => $library, 'effective' => $effective,
        'guarantee' => ['delivery' => 'reliable', 'ordering' => 'none', 'overload' => 'block'],
    ]);
}
