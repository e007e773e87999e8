<?php

/** Client and server, ping and pong: the frame's number identifies the call of a reply. */

declare(strict_types=1);

use Wattwire\Kit;
use Wattwire\Refused;

const BACKLOG = 128;

function client(Kit $kit): void
{
    $stream = Stream::connect($kit, $kit->spec->peers_endpoints[0] ?? '');
    $calls = 0;
    $call = function (string $message, int $until_ns) use ($kit, $stream, &$calls) {
        $number = $calls++;
        $stream->send(REQUEST, $number, $message, $until_ns);
        while ($stream->open && !$kit->stopped && hrtime(true) < $until_ns) {
            if ($kit->wait($until_ns, [$stream->handle]) !== []) {
                $stream->read();
            }
            while (($frame = $stream->take()) !== null) {
                if ($frame[0] === REPLY && $frame[1] === $number) {
                    return $frame[2];
                }
            }
        }
        return $stream->open ? null : false;
    };
    announce($kit, $stream->socket, 1, $kit->probe($call));
    $kit->calls($call);
}

/** Returns the address on which this node listens: the setting, or the host's if it is empty. */
function listenAddress(Kit $kit): string
{
    return $kit->spec->settings['bind_address'] ?: $kit->spec->host_address;
}

function server(Kit $kit): void
{
    $listener = prepare($kit);
    $host = listenAddress($kit);
    if (!@socket_bind($listener, $host, 0) || !@socket_listen($listener, BACKLOG)) {
        throw new Refused("listen on $host: " . socket_strerror(socket_last_error($listener)), 4);
    }
    socket_getsockname($listener, $host, $port);
    Wattwire\line('LISTENING', ['endpoints' => ["$host:$port"]]);
    $accepting = socket_export_stream($listener);
    $streams = [];
    $poll = function (int $until_ns) use ($kit, $listener, $accepting, &$streams): void {
        $handles = array_map(fn (Stream $stream) => $stream->handle, $streams);
        foreach ($kit->wait($until_ns, [$accepting, ...$handles]) as $handle) {
            if ($handle !== $accepting) {
                answer($kit, $streams[(int) $handle]);
            } elseif (($socket = @socket_accept($listener)) !== false) {
                $stream = new Stream($kit, $socket);
                $streams[(int) $stream->handle] = $stream;
            }
        }
        $streams = array_filter($streams, fn (Stream $stream): bool => $stream->open);
    };
    announce($kit, $listener, null, null);
    $kit->drain($poll);
}

/** Replies to each request that has arrived completely. */
function answer(Kit $kit, Stream $stream): void
{
    $stream->read();
    while ($stream->open && ($frame = $stream->take()) !== null) {
        $reply = $frame[0] === REQUEST ? $kit->serve($frame[2]) : null;
        $until_ns = hrtime(true) + $kit->spec->timeout_ns;
        if ($reply !== null && $stream->send(REPLY, $frame[1], $reply, $until_ns)) {
            $kit->served();
        }
    }
}

/** Prints READY with the options in force of a socket. */
function announce(Kit $kit, Socket $socket, ?int $matched, ?int $discovery_ns): void
{
    $effective = [
        'tcp_nodelay' => socket_get_option($socket, SOL_TCP, TCP_NODELAY) !== 0,
        'receive_buffer_bytes' => socket_get_option($socket, SOL_SOCKET, SO_RCVBUF),
        'send_buffer_bytes' => socket_get_option($socket, SOL_SOCKET, SO_SNDBUF),
        'segment_bytes' => socket_get_option($socket, SOL_TCP, TCP_MAXSEG),
        'bind_address' => listenAddress($kit),
        'transport' => 'tcp/ipv4',
    ];
    $library = ['name' => 'sockets', 'version' => php_uname('r'), 'build' => 'PHP ' . PHP_VERSION];
    $guarantee = ['delivery' => 'reliable', 'ordering' => 'per_sender', 'overload' => 'block'];
    $kit->ready($matched, $discovery_ns, $library, $effective, $guarantee);
}
