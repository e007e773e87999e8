<?php

/** Messages that are records (C-32): arrays with its names, [] for an arrival that is no record. */

declare(strict_types=1);

namespace Wattwire;

require_once __DIR__ . '/integers.php';
require_once __DIR__ . '/verdicts.php';

final class Record
{
    private const HEADER_BYTES = 96;
    private const SAMPLE_BYTES = 16;

    private readonly array $record;
    private readonly bool $is_full;
    private readonly string $reply;
    private readonly string $reply_literal;

    /** @param int[] $nodes */
    public function __construct(Spec $spec, private readonly array $nodes)
    {
        $seed = $spec->payload_seed;
        $count = intdiv($spec->payload_bytes - self::HEADER_BYTES, self::SAMPLE_BYTES);
        $words = array_values(unpack('P*', fillBytes($seed, 72 + 8 * $count)));
        $v = array_map(fn (int $word): float => ($word >> 32) / 1024.0, $words);
        $sample = fn (int $i) => ['id' => $i - 9, 'state' => $words[$i] & 0xFF, 'value' => $v[$i]];
        $this->record = [
            'name' => fillText($seed, 16),
            'pose' => [
                'position' => array_combine(['x', 'y', 'z'], array_slice($v, 2, 3)),
                'orientation' => array_combine(['x', 'y', 'z', 'w'], array_slice($v, 5, 4)),
            ],
            'samples' => array_map($sample, array_keys(array_slice($v, 9, null, true))),
        ];
        $this->is_full = $spec->verify === 'full';
        $this->reply = $spec->reply;
        $this->reply_literal = $spec->reply_literal;
    }

    public function stamp(int $seq, int $send_ns): array
    {
        $digits = sprintf('%u', $seq);
        $header = ['seq' => $digits, 'send_ns' => (string) $send_ns];
        return ['header' => $header] + $this->record + ['trailer' => ['seq' => $digits]];
    }

    public function check(array $arrival): array
    {
        if ($arrival === []) {
            return [CORRUPT, null];
        }
        $seq = integer($arrival['header']['seq']);
        $expected = $this->stamp($seq, (int) $arrival['header']['send_ns']);
        $is_known = in_array($seq >> 48 & 0xFFFF, $this->nodes, true);
        if (!$is_known || $arrival['name'] !== $expected['name']) {
            return [FOREIGN, $seq];
        }
        $is_intact = count($arrival['samples']) === count($expected['samples'])
            && $arrival['trailer'] === $expected['trailer']
            && (!$this->is_full || $arrival === $expected);
        return [$is_intact ? OK : CORRUPT, $seq];
    }

    public function reply(array $request): array
    {
        $zeros = fn (array $axes): array => array_map(fn () => 0.0, $axes);
        $blank = ['pose' => array_map($zeros, $this->record['pose']), 'samples' => []];
        return match ($this->reply) {
            'echo' => $request,
            'ack' => array_replace($request, $blank, ['name' => '']),
            'literal' => array_replace(
                $this->stamp(0, 0),
                $blank,
                ['name' => $this->reply_literal],
            ),
        };
    }

    public function isReplyTo(array $arrival, array $message, int $seq): bool
    {
        return $this->reply === 'echo'
            ? $this->check($arrival) === [OK, $seq] : $arrival === $this->reply($message);
    }

    public function bytes(array $message): int
    {
        return self::HEADER_BYTES + self::SAMPLE_BYTES * count($message['samples']);
    }

    /** Returns the record in a JSON text, or []. Parameters are the names and types of C-32. */
    public static function decode(string $json): array
    {
        $record = fn (array $header, string $name, array $pose, array $samples, array $trailer)
            => get_defined_vars();
        $header = fn (string $seq, string $send_ns) => get_defined_vars();
        $position = fn (float $x, float $y, float $z) => get_defined_vars();
        $orientation = fn (float $x, float $y, float $z, float $w) => get_defined_vars();
        $sample = fn (int $id, int $state, float $value) => get_defined_vars();
        $trailer = fn (string $seq) => get_defined_vars();
        try {
            $decoded = $record(...json_decode($json, true));
            $decoded['header'] = $header(...$decoded['header']);
            $decoded['pose'] = [
                'position' => $position(...$decoded['pose']['position'] ?? null),
                'orientation' => $orientation(...$decoded['pose']['orientation'] ?? null),
            ];
            $decoded['samples'] = array_map(
                fn (array $fields) => $sample(...$fields),
                $decoded['samples'],
            );
            $decoded['trailer'] = $trailer(...$decoded['trailer']);
            $is_counter = ctype_digit($decoded['header']['seq'] . $decoded['trailer']['seq']);
            $least_id = min([0, ...array_column($decoded['samples'], 'id')]);
            return $is_counter && $least_id === 0 ? $decoded : [];
        } catch (\Error) {
            return [];
        }
    }
}
