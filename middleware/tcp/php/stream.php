<?php

/** A connection that carries frames: middleware/tcp/README.md defines their bytes. */

declare(strict_types=1);

use Wattwire\Kit;
use Wattwire\Refused;

const REQUEST = 1, REPLY = 2;
const HEAD_BYTES = 13, PAYLOAD_BYTES_MAX = 67_108_864;
const READ_BYTES = 65_536, WRITE_BYTES = 1_048_576;
const TCP_MAXSEG = 2, TCP_QUICKACK = 12; // of <linux/tcp.h>; PHP 8.2 does not name them

/** Returns an unconnected socket: buffer sizes must be set before the handshake. */
function prepare(Kit $kit): Socket
{
    $socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
    $buffers = ['receive_buffer_bytes' => SO_RCVBUF, 'send_buffer_bytes' => SO_SNDBUF];
    foreach ($buffers as $name => $option) {
        if ($kit->spec->settings[$name] !== 0) {
            socket_set_option($socket, SOL_SOCKET, $option, $kit->spec->settings[$name]);
        }
    }
    socket_set_option($socket, SOL_TCP, TCP_NODELAY, (int) $kit->spec->settings['tcp_nodelay']);
    return $socket;
}

/** Returns the two parts of "HOST:PORT". */
function address(string $endpoint): array
{
    if (!preg_match('/^(.+):(\d{1,5})$/D', $endpoint, $match)) {
        throw new Refused("peers.endpoints: found $endpoint; allowed: HOST:PORT", 2);
    }
    return [$match[1], (int) $match[2]];
}

final class Stream
{
    public bool $open = true;
    /** For Kit::wait(). */
    public readonly mixed $handle;
    private string $unread = '';
    private readonly bool $writes_once;
    private readonly bool $quickack;

    public function __construct(private Kit $kit, public readonly Socket $socket)
    {
        socket_set_nonblock($socket);
        $this->handle = socket_export_stream($socket);
        $this->writes_once = $kit->spec->settings['writes'] === 1;
        $this->quickack = $kit->spec->settings['tcp_quickack'] === 'on';
        $this->acknowledge();
    }

    /** Connects to the endpoint within ready_timeout_ms. */
    public static function connect(Kit $kit, string $endpoint): self
    {
        $socket = prepare($kit);
        $timeout_ms = $kit->spec->ready_timeout_ms;
        $timeout = ['sec' => intdiv($timeout_ms, 1000), 'usec' => $timeout_ms % 1000 * 1000];
        socket_set_option($socket, SOL_SOCKET, SO_SNDTIMEO, $timeout);
        if (!@socket_connect($socket, ...address($endpoint))) {
            $reason = socket_strerror(socket_last_error($socket));
            throw new Refused("connect $endpoint: $reason", 4);
        }
        return new self($kit, $socket);
    }

    /** Hands a frame to the kernel; returns false if the kernel did not take it until $until_ns. */
    public function send(int $kind, int $number, string $payload, int $until_ns): bool
    {
        $head = pack('VCP', strlen($payload), $kind, $number);
        $pieces = $this->writes_once ? [$head . $payload] : [$head, $payload];
        foreach (array_filter($pieces, strlen(...)) as $piece) {
            $this->open = $this->open && $this->write($piece, $until_ns);
        }
        return $this->open;
    }

    private function write(string $bytes, int $until_ns): bool
    {
        for ($at = 0; $at < strlen($bytes); $at += $sent ?: 0) {
            $part = $at === 0 ? $bytes : substr($bytes, $at, WRITE_BYTES);
            $sent = @socket_send($this->socket, $part, strlen($part), 0);
            if ($sent === false) {
                $full = socket_last_error($this->socket) === SOCKET_EAGAIN;
                if (!$full || hrtime(true) > $until_ns) {
                    return false; // a frame sent in part makes the stream unusable
                }
                $this->kit->wait($until_ns, [], [$this->handle]);
            }
        }
        return true;
    }

    /** Reads the bytes that have arrived; the end of the stream or an error closes it. */
    public function read(): void
    {
        $count = @socket_recv($this->socket, $chunk, READ_BYTES, 0);
        if ($count === false && socket_last_error($this->socket) === SOCKET_EAGAIN) {
            return;
        }
        $this->open = $this->open && (int) $count > 0;
        $this->unread .= $chunk ?? '';
        $this->acknowledge();
    }

    /** Returns the next complete frame, [kind, number, payload], or null. */
    public function take(): ?array
    {
        if (strlen($this->unread) < HEAD_BYTES) {
            return null;
        }
        ['length' => $length, 'kind' => $kind, 'number' => $number] =
            unpack('Vlength/Ckind/Pnumber', $this->unread);
        if ($kind > REPLY || $length > PAYLOAD_BYTES_MAX) {
            $this->open = false;
            return null;
        }
        if (strlen($this->unread) < HEAD_BYTES + $length) {
            return null;
        }
        $payload = substr($this->unread, HEAD_BYTES, $length);
        $this->unread = substr($this->unread, HEAD_BYTES + $length);
        return [$kind, $number, $payload];
    }

    private function acknowledge(): void
    {
        if ($this->open && $this->quickack) {
            // Linux leaves this mode by itself (tcp(7)), so the option is set after each read.
            socket_set_option($this->socket, SOL_TCP, TCP_QUICKACK, 1);
        }
    }
}
