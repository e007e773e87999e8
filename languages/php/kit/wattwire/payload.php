<?php

/** Messages that are strings: bytes, text (C-19 to C-21) and literals (C-22). */

declare(strict_types=1);

namespace Wattwire;

require_once __DIR__ . '/verdicts.php';

final class Payload
{
    /** Bytes of a byte: a text has two characters for each byte of its header. */
    private readonly int $unit;
    private readonly int $length;
    private readonly int $header;
    private readonly int $trailer;
    private readonly string $fill;
    private readonly bool $is_full;
    private readonly string $reply;
    private readonly string $reply_literal;

    /** @param int[] $nodes */
    public function __construct(Spec $spec, private readonly array $nodes)
    {
        $is_text = $spec->payload_encoding === 'text';
        $this->unit = $is_text ? 2 : 1;
        $this->length = $spec->payload_bytes;
        $this->header = 16 * $this->unit;
        $this->trailer = $this->length >= 24 * $this->unit ? 8 * $this->unit : 0;
        $count = max(0, $this->length - $this->header - $this->trailer);
        $this->fill = $is_text
            ? fillText($spec->payload_seed, $count) : fillBytes($spec->payload_seed, $count);
        $this->is_full = $spec->verify === 'full';
        $this->reply = $spec->reply;
        $this->reply_literal = $spec->reply_literal;
    }

    public function stamp(int $seq, int $send_ns): string
    {
        $header = pack('PP', $seq, $send_ns);
        $header = $this->unit === 2 ? bin2hex($header) : $header;
        return $header . $this->fill . substr($header, 0, $this->trailer);
    }

    public function check(string $arrival): array
    {
        $word = substr($arrival, 0, 8 * $this->unit);
        if ($this->unit === 2 ? !preg_match('/^[0-9a-f]{16}$/D', $word) : strlen($word) < 8) {
            return [CORRUPT, null];
        }
        $seq = unpack('P', $this->unit === 2 ? hex2bin($word) : $word)[1];
        $fill = substr($arrival, $this->header, strlen($this->fill));
        $is_known = in_array($seq >> 48 & 0xFFFF, $this->nodes, true);
        if (!$is_known || strncmp($fill, $this->fill, min(8, strlen($fill))) !== 0) {
            return [FOREIGN, $seq];
        }
        $is_intact = strlen($arrival) === $this->length
            && substr($arrival, $this->length - $this->trailer) === substr($word, 0, $this->trailer)
            && (!$this->is_full || $fill === $this->fill);
        return [$is_intact ? OK : CORRUPT, $seq];
    }

    public function reply(string $request): string
    {
        return match ($this->reply) {
            'echo' => $request,
            'ack' => substr($request, 0, 8 * $this->unit),
            'literal' => $this->reply_literal,
        };
    }

    public function isReplyTo(string $arrival, string $message, int $seq): bool
    {
        if ($this->reply !== 'echo') {
            return $arrival === $this->reply($message);
        }
        return $arrival === $message || $this->check($arrival) === [OK, $seq];
    }

    public function bytes(string $message): int
    {
        return strlen($message);
    }
}

/** The same bytes in each message: they carry no sequence. */
final class Literal
{
    private readonly string $literal;
    private readonly int $word;
    private readonly string $reply;
    private readonly string $reply_literal;

    public function __construct(Spec $spec)
    {
        $this->literal = $spec->payload_literal;
        $this->word = $spec->payload_encoding === 'text' ? 16 : 8;
        $this->reply = $spec->reply;
        $this->reply_literal = $spec->reply_literal;
    }

    public function stamp(int $seq, int $send_ns): string
    {
        return $this->literal;
    }

    public function check(string $arrival): array
    {
        return [$arrival === $this->literal ? OK : CORRUPT, null];
    }

    public function reply(string $request): string
    {
        return match ($this->reply) {
            'echo' => $request,
            'ack' => substr($request, 0, $this->word),
            'literal' => $this->reply_literal,
        };
    }

    public function isReplyTo(string $arrival, string $message, int $seq): bool
    {
        return $arrival === $this->reply($message);
    }

    public function bytes(string $message): int
    {
        return strlen($message);
    }
}
