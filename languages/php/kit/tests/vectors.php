<?php

/** Answers the questions of the contract's golden vectors: a line for each line. */

declare(strict_types=1);

require 'wattwire/kit.php';

use Wattwire\Literal;
use Wattwire\Payload;
use Wattwire\Record;
use Wattwire\Refused;
use Wattwire\Samples;
use Wattwire\Spec;
use Wattwire\Values;

const VERDICTS = [
    Wattwire\OK => 'ok', Wattwire\CORRUPT => 'corrupt', Wattwire\FOREIGN => 'foreign',
];

/** The values of a spec whose other keys are empty or zero. */
final class Given extends Values
{
    public function __construct(private array $given)
    {
        parent::__construct([], []);
    }

    public function string(string $key): string
    {
        return $this->given[$key] ?? '';
    }

    public function integer(string $key): int
    {
        return $this->given[$key] ?? 0;
    }

    public function strings(string $key): array
    {
        return [];
    }

    public function integers(string $key): array
    {
        return [];
    }
}

function messages(
    string $seed,
    string $encoding,
    string $bytes,
    string $verify = 'full',
    string $node = '0',
): Payload|Literal|Record {
    $spec = new Spec(new Given([
        'payload.seed' => (int) $seed, 'payload.encoding' => $encoding,
        'payload.bytes' => (int) $bytes, 'verify' => $verify, 'reply' => 'echo',
    ]));
    return Wattwire\messagesOf($spec, [(int) $node]);
}

function verdict(Payload|Record $messages, string|array $arrival): string
{
    [$verdict, $seq] = $messages->check($arrival);
    return VERDICTS[$verdict] . ' ' . ($seq === null ? '-' : sprintf('%u', $seq));
}

function bytes(string $hex): string
{
    return $hex === '-' ? '' : hex2bin($hex);
}

function number(string $digits): int
{
    return $digits[0] === '-' ? (int) $digits : Wattwire\integer($digits);
}

function writeSamples(
    string $path,
    int $role,
    int $node,
    int $seed,
    int $capacity,
    int ...$numbers,
): string {
    $samples = new Samples($capacity);
    foreach (array_chunk($numbers, 8) as $record) {
        $samples->add(...$record);
    }
    $samples->write($path, $role, $node, $seed);
    return "$samples->recorded $samples->overflow";
}

function answer(string $question, array $arguments): string
{
    switch ($question) {
        case 'clock':
            return (string) hrtime(true);
        case 'payload':
            [$seed, $seq, $send_ns, $encoding, $bytes] = $arguments;
            $payload = messages($seed, $encoding, $bytes);
            return bin2hex($payload->stamp(Wattwire\integer($seq), (int) $send_ns));
        case 'check':
            [$seed, $encoding, $bytes, $node, $verify, $hex] = $arguments;
            return verdict(messages($seed, $encoding, $bytes, $verify, $node), bytes($hex));
        case 'record':
            [$seed, $seq, $send_ns, $bytes] = $arguments;
            $record = messages($seed, 'record', $bytes);
            return json_encode($record->stamp(Wattwire\integer($seq), (int) $send_ns));
        case 'check-record':
            [$seed, $bytes, $node, $verify, $hex] = $arguments;
            $record = messages($seed, 'record', $bytes, $verify, $node);
            return verdict($record, Record::decode(bytes($hex)));
        case 'samples':
            $path = array_shift($arguments);
            return writeSamples($path, ...array_map(number(...), $arguments));
        case 'spec':
            try {
                Wattwire\readSpec($arguments[0]);
                return 'ok';
            } catch (Refused $refused) {
                return strstr($refused->getMessage(), ':', true);
            }
    }
    throw new ValueError("unknown question $question");
}

while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', rtrim($line, "\n"));
    echo answer(array_shift($words), $words), "\n";
}
