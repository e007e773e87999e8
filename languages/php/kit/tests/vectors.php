<?php
/** Answers the questions of the contract's golden vectors: a line for each line. */
declare(strict_types=1);

require 'wattwire/kit.php';

use Wattwire\{Kit, Payload, Record, Refused};

const VERDICTS = [
    Wattwire\OK => 'ok', Wattwire\CORRUPT => 'corrupt', Wattwire\FOREIGN => 'foreign',
];

function spec(string $seed, string $encoding, string $bytes, string $verify): array {
    return ['payload.seed' => (int) $seed, 'payload.encoding' => $encoding,
        'payload.bytes' => (int) $bytes, 'payload.literal' => '', 'verify' => $verify,
        'reply' => 'echo', 'reply.literal' => ''];
}

function verdict(Payload|Record $message, string|array $arrival): string {
    [$verdict, $seq] = $message->check($arrival);
    return VERDICTS[$verdict] . ' ' . ($seq === null ? '-' : sprintf('%u', $seq));
}

function bytes(string $hex): string {
    return $hex === '-' ? '' : hex2bin($hex);
}

function samples(
    string $path, int $role, int $node, int $seed, int $capacity, int ...$numbers,
): string {
    $spec = ['role' => 'server', 'node' => $node, 'peers.nodes' => [],
        'record.capacity' => $capacity];
    $kit = new Kit($spec + spec((string) $seed, 'bytes', '64', 'full'));
    foreach (array_chunk($numbers, 8) as $record) {
        $kit->add(...$record);
    }
    ['recorded' => $recorded, 'overflow' => $overflow] = $kit->write($path, $role);
    return "$recorded $overflow";
}

function answer(string $question, array $given): string {
    switch ($question) {
        case 'clock':
            return (string) hrtime(true);
        case 'payload':
            [$seed, $seq, $send_ns, $encoding, $bytes] = $given;
            $payload = new Payload(spec($seed, $encoding, $bytes, 'full'), []);
            return bin2hex($payload->stamp(Wattwire\integer($seq), (int) $send_ns));
        case 'check':
            [$seed, $encoding, $bytes, $node, $verify, $hex] = $given;
            $payload = new Payload(spec($seed, $encoding, $bytes, $verify), [(int) $node]);
            return verdict($payload, bytes($hex));
        case 'record':
            [$seed, $seq, $send_ns, $bytes] = $given;
            $record = new Record(spec($seed, 'record', $bytes, 'full'), []);
            return json_encode($record->stamp(Wattwire\integer($seq), (int) $send_ns));
        case 'check-record':
            [$seed, $bytes, $node, $verify, $hex] = $given;
            $record = new Record(spec($seed, 'record', $bytes, $verify), [(int) $node]);
            return verdict($record, Record::decode(bytes($hex)));
        case 'samples':
            $number = fn (string $n): int => $n[0] === '-' ? (int) $n : Wattwire\integer($n);
            return samples($given[0], ...array_map($number, array_slice($given, 1)));
        case 'spec':
            try {
                Wattwire\readSpec($given[0], '');
                return 'ok';
            } catch (Refused $refused) {
                return strstr($refused->getMessage(), ':', true);
            }
    }
}

while (($line = fgets(STDIN)) !== false) {
    $given = explode(' ', rtrim($line, "\n"));
    echo answer(array_shift($given), $given), "\n";
}
