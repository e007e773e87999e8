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

/** The value modulo 2^64 of a string of digits, which may be above PHP_INT_MAX. */
function integer(string $digits): int {
    $tens = (int) substr($digits, 0, -1);
    return add(add($tens << 3, $tens << 1), (int) substr($digits, -1));
}

/** The first $count bytes of the fill (C-19), or as many of its characters (C-20). */
function fill(int $seed, int $count, bool $text): string {
    for ($hex = ''; strlen($hex) < 2 * $count; $seed = add($seed, 0x78DDE6E5FD29F054)) {
        // PHP seeds this engine with four words of splitmix64: four steps of the seed.
        $hex .= implode((new \Random\Engine\Xoshiro256StarStar($seed))->__serialize()[1]);
    }
    $bytes = substr(hex2bin($hex), 0, $count);
    $all = implode(array_map(chr(...), range(0, 255)));
    return $text ? strtr($bytes, $all, str_repeat(ALPHABET, 4)) : $bytes;
}

/** Messages of encoding bytes or text are strings. $nodes: those that arrivals may be from. */
final class Payload {
    private readonly int $unit, $length, $trailer;
    private readonly string $fill;
    private int $arrivals = 0;

    public function __construct(private array $spec, private array $nodes) {
        $this->unit = $spec['payload.encoding'] === 'text' ? 2 : 1;
        $this->length = strlen($spec['payload.literal']) ?: $spec['payload.bytes'];
        $this->trailer = $this->length >= 24 * $this->unit ? 8 * $this->unit : 0;
        $count = max(0, $this->length - 16 * $this->unit - $this->trailer);
        $this->fill = fill($spec['payload.seed'], $count, $this->unit === 2);
    }

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
            $good = $data === $this->spec['payload.literal'];
            return [$good ? OK : CORRUPT, $node << 48 | $this->arrivals++];
        }
        $head = substr($data, 0, 8 * $this->unit);
        if ($this->unit === 2 ? !preg_match('/^[0-9a-f]{16}$/D', $head) : strlen($head) < 8) {
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

    public function reply(string $request): string {
        return match ($this->spec['reply']) {
            'echo' => $request,
            'ack' => substr($request, 0, 8 * $this->unit),
            'literal' => $this->spec['reply.literal'],
        };
    }
}

/** Messages of encoding record are arrays with C-32's names, or [] where an arrival is none. */
final class Record {
    private readonly array $record;

    public function __construct(private array $spec, private array $nodes) {
        $count = ($spec['payload.bytes'] - 96) >> 4;
        $words = array_values(unpack('P*', fill($spec['payload.seed'], 72 + 8 * $count, false)));
        $v = array_map(fn (int $word): float => ($word >> 32) / 1024.0, $words);
        $sample = fn (int $i) => ['id' => $i - 9, 'state' => $words[$i] & 0xFF, 'value' => $v[$i]];
        $this->record = ['name' => fill($spec['payload.seed'], 16, true), 'pose' => [
            'position' => array_combine(['x', 'y', 'z'], array_slice($v, 2, 3)),
            'orientation' => array_combine(['x', 'y', 'z', 'w'], array_slice($v, 5, 4)),
        ], 'samples' => array_map($sample, array_keys(array_slice($v, 9, null, true)))];
    }

    public function stamp(int $seq, int $send_ns): array {
        $digits = sprintf('%u', $seq);
        $header = ['seq' => $digits, 'send_ns' => (string) $send_ns];
        return ['header' => $header] + $this->record + ['trailer' => ['seq' => $digits]];
    }

    public function check(array $record): array {
        if ($record === []) {
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
            && ($this->spec['verify'] === 'header' || $record === $due);
        return [$good ? OK : CORRUPT, $seq];
    }

    public function reply(array $request): array {
        $zeros = fn (array $axes): array => array_map(fn () => 0.0, $axes);
        $blank = ['pose' => array_map($zeros, $this->record['pose']), 'samples' => []];
        $name = ['name' => $this->spec['reply'] === 'literal' ? $this->spec['reply.literal'] : ''];
        return match ($this->spec['reply']) {
            'echo' => $request,
            'ack' => array_replace($request, $blank, $name),
            'literal' => array_replace($this->stamp(0, 0), $blank, $name),
        };
    }

    /** The record in a JSON text, or []: the parameters of these functions are names and types. */
    public static function decode(string $json): array {
        $record = fn (array $header, string $name, array $pose, array $samples, array $trailer)
            => get_defined_vars();
        $header = fn (string $seq, string $send_ns) => get_defined_vars();
        $position = fn (float $x, float $y, float $z) => get_defined_vars();
        $orientation = fn (float $x, float $y, float $z, float $w) => get_defined_vars();
        $sample = fn (int $id, int $state, float $value) => get_defined_vars();
        $trailer = fn (string $seq) => get_defined_vars();
        try {
            $found = $record(...json_decode($json, true));
            $found['header'] = $header(...$found['header']);
            $found['pose'] = ['position' => $position(...$found['pose']['position'] ?? null),
                'orientation' => $orientation(...$found['pose']['orientation'] ?? null)];
            $found['samples'] = array_map(fn (array $of) => $sample(...$of), $found['samples']);
            $found['trailer'] = $trailer(...$found['trailer']);
            $whole = ctype_digit($found['header']['seq'] . $found['trailer']['seq']);
            $least = min([0, ...array_column($found['samples'], 'id')]);
            return $whole && $least === 0 ? $found : [];
        } catch (\Error) {
            return [];
        }
    }
}
