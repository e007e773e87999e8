<?php
declare(strict_types=1);
namespace Wattwire;

const OK = 0, CORRUPT = 8, FOREIGN = -1; // CORRUPT is also the record's flag
const PROBE = 0xFFFFFFFFFFFF, UNKNOWN_NS = PHP_INT_MIN, UNKNOWN_PEER = 65535;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** $a + $b modulo 2^64: an integer of PHP that overflows becomes a floating-point number. */
function add(int $a, int $b): int {
    $low = ($a & 0xFFFFFFFF) + ($b & 0xFFFFFFFF);
    return (($a >> 32) + ($b >> 32) + ($low >> 32)) << 32 | ($low & 0xFFFFFFFF);
}

/** $a · $b modulo 2^64, from products of 32 bits by 16. */
function multiply(int $a, int $b): int {
    [$a_low, $b_low] = [$a & 0xFFFFFFFF, $b & 0xFFFFFFFF];
    $high = $a_low * ($b >> 32 & 0xFFFF) + (($a_low & 0xFFFF) * ($b >> 48 & 0xFFFF) << 16)
        + $b_low * ($a >> 32 & 0xFFFF) + (($b_low & 0xFFFF) * ($a >> 48 & 0xFFFF) << 16);
    return add(add($a_low * ($b_low & 0xFFFF), $a_low * ($b_low >> 16) << 16), $high << 32);
}

/** The value of a string of digits modulo 2^64; the last one is apart, as 2^63 does not fit. */
function integer(string $digits): int {
    return add(multiply((int) substr($digits, 0, -1), 10), (int) substr($digits, -1));
}

/** The first $count words of the fill; the constants are those of C-19 less 2^64. */
function words(int $seed, int $count): array {
    for ($words = []; count($words) < $count;) {
        $z = $seed = add($seed, -0x61C8864680B583EB);
        $z = multiply($z ^ ($z >> 30 & 0x3FFFFFFFF), -0x40A7B892E31B1A47);
        $z = multiply($z ^ ($z >> 27 & 0x1FFFFFFFFF), -0x6B2FB644ECCEEE15);
        $words[] = $z ^ ($z >> 31 & 0x1FFFFFFFF);
    }
    return $words;
}

/** The first $count bytes of the fill, or as many of its characters (C-20). */
function fill(int $seed, int $count, bool $text): string {
    $bytes = implode(array_map(fn ($word) => pack('P', $word), words($seed, ($count + 7) >> 3)));
    $all = implode(array_map(chr(...), range(0, 255)));
    return substr($text ? strtr($bytes, $all, str_repeat(ALPHABET, 4)) : $bytes, 0, $count);
}

/** Messages of encoding bytes or text are strings. $nodes: those that arrivals may be from. */
final class Payload {
    public readonly int $length;
    public readonly string $fill;
    private readonly int $unit, $trailer;
    private int $arrivals = 0;

    /** $fill: what it was for an earlier object of the same spec; null: it is made. */
    public function __construct(private array $spec, private array $nodes, ?string $fill = null) {
        $this->unit = $spec['payload.encoding'] === 'text' ? 2 : 1;
        $this->length = strlen($spec['payload.literal']) ?: $spec['payload.bytes'];
        $this->trailer = $this->length >= 24 * $this->unit ? 8 * $this->unit : 0;
        $count = max(0, $this->length - 16 * $this->unit - $this->trailer);
        $this->fill = $fill ?? fill($spec['payload.seed'], $count, $this->unit === 2);
    }

    /** The message with this sequence and send time. */
    public function stamp(int $seq, int $send_ns): string {
        $header = pack('PP', $seq, $send_ns);
        $header = $this->unit === 2 ? bin2hex($header) : $header;
        return $this->spec['payload.literal'] !== '' ? $this->spec['payload.literal']
            : $header . $this->fill . substr($header, 0, $this->trailer);
    }

    /** [OK, CORRUPT or FOREIGN; sequence or null] of an arrival (C-21). */
    public function check(string $data): array {
        if ($this->spec['payload.literal'] !== '') {
            $node = count($this->nodes) === 1 ? $this->nodes[0] : UNKNOWN_PEER;
            $verdict = $data === $this->spec['payload.literal'] ? OK : CORRUPT;
            return [$verdict, $node << 48 | $this->arrivals++];
        }
        $head = substr($data, 0, 8 * $this->unit);
        if (strlen($head) < 8 * $this->unit || ($this->unit === 2 && trim($head, '0..9a..f') !== '')) {
            return [CORRUPT, null];
        }
        $seq = unpack('P', $this->unit === 2 ? hex2bin($head) : $head)[1];
        $found = substr($data, 16 * $this->unit, strlen($this->fill));
        $known = in_array($seq >> 48 & 0xFFFF, $this->nodes, true);
        if (!$known || strncmp($found, $this->fill, min(8, strlen($found))) !== 0) {
            return [FOREIGN, $seq];
        }
        $good = strlen($data) === $this->length
            && substr($data, $this->length - $this->trailer) === substr($data, 0, $this->trailer)
            && ($this->spec['verify'] === 'header' || $found === $this->fill);
        return [$good ? OK : CORRUPT, $seq];
    }

    /** The reply to a request (C-23). */
    public function reply(string $request): string {
        return match ($this->spec['reply']) {
            'echo' => $request,
            'ack' => substr($request, 0, 8 * $this->unit),
            'literal' => $this->spec['reply.literal'],
        };
    }
}

/** Messages of encoding record are arrays as SHAPE, or null where an arrival is none. */
final class Record {
    private const SHAPE = [
        'header' => ['seq' => '0', 'send_ns' => '0'],
        'name' => '',
        'pose' => ['position' => ['x' => 0.0, 'y' => 0.0, 'z' => 0.0],
            'orientation' => ['x' => 0.0, 'y' => 0.0, 'z' => 0.0, 'w' => 0.0]],
        'samples' => [['id' => 0, 'state' => 0, 'value' => 0.0]],
        'trailer' => ['seq' => '0'],
    ];
    public readonly int $length;
    private array $record = self::SHAPE;

    public function __construct(private array $spec, private array $nodes) {
        $this->length = $spec['payload.bytes'] & ~15;
        $words = words($spec['payload.seed'], 3 + ($this->length >> 4));
        $v = array_map(fn (int $word): float => ($word >> 32) / 1024.0, $words);
        $this->record['name'] = fill($spec['payload.seed'], 16, true);
        $this->record['pose'] = [
            'position' => array_combine(['x', 'y', 'z'], array_slice($v, 2, 3)),
            'orientation' => array_combine(['x', 'y', 'z', 'w'], array_slice($v, 5, 4)),
        ];
        $sample = fn (int $word, int $id): array => [
            'id' => $id, 'state' => $word & 0xFF, 'value' => $v[9 + $id],
        ];
        $last = array_slice($words, 9);
        $this->record['samples'] = array_map($sample, $last, array_keys($last));
    }

    public function stamp(int $seq, int $send_ns): array {
        $digits = sprintf('%u', $seq);
        $header = ['seq' => $digits, 'send_ns' => (string) $send_ns];
        return array_replace($this->record, ['header' => $header, 'trailer' => ['seq' => $digits]]);
    }

    public function check(?array $record): array {
        if ($record === null) {
            return [CORRUPT, null];
        }
        $seq = integer($record['header']['seq']);
        $due = $this->stamp($seq, (int) $record['header']['send_ns']);
        $known = in_array($seq >> 48 & 0xFFFF, $this->nodes, true);
        if (!$known || $record['name'] !== $due['name']) {
            return [FOREIGN, $seq];
        }
        $good = count($record['samples']) === count($due['samples'])
            && $record['trailer'] === $due['trailer']
            && ($this->spec['verify'] === 'header' || $record == $due); // 2.0 may come as 2
        return [$good ? OK : CORRUPT, $seq];
    }

    public function reply(array $request): array {
        $blank = ['name' => $this->spec['reply.literal'], 'samples' => []] + self::SHAPE;
        return match ($this->spec['reply']) {
            'echo' => $request,
            'ack' => ['header' => $request['header'], 'trailer' => $request['trailer']] + $blank,
            'literal' => $blank,
        };
    }

    /** The record in a JSON text, or null where a field is missing or of another type. */
    public static function decode(string $json): ?array {
        $record = json_decode($json, true);
        return self::fits($record, self::SHAPE) ? $record : null;
    }

    private static function fits(mixed $found, mixed $shape): bool {
        $list = is_array($shape) && array_is_list($shape);
        $parts = $list ? array_fill_keys(array_keys((array) $found), $shape[0]) : $shape;
        return match (gettype($shape)) {
            'integer' => is_int($found) && $found >> 32 === 0,
            'double' => is_int($found) || is_float($found),
            'string' => is_string($found) && ($shape === '' || ctype_digit(ltrim($found, '-'))),
            'array' => is_array($found) && array_is_list($found) === $list && array_filter($parts,
                fn ($part, $key) => !self::fits($found[$key] ?? null, $part), ARRAY_FILTER_USE_BOTH) === [],
        };
    }
}
