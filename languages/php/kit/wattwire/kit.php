<?php
declare(strict_types=1);
namespace Wattwire;

define('Wattwire\BEGIN_NS', hrtime(true)); // CLOCK_MONOTONIC, before the rest is loaded
require 'wattwire/message.php';

const KEYS = 'contract:integer run:string cell:string pattern:string role:string node:integer
    index:integer peers.nodes:integers peers.count:integer peers.endpoints:strings loop:string
    period_ns:integer phase_ns:integer duration_ns:integer count:integer warmup_ns:integer
    overrun_ns:integer timeout_ns:integer outstanding_max:integer quiet_ms:integer
    linger_ms:integer ready_timeout_ms:integer pacing:string spin_ns:integer payload.bytes:integer
    payload.encoding:string payload.seed:integer payload.literal:string reply:string
    reply.literal:string verify:string action.feedback:integer record.capacity:integer
    tls.authority:string tls.certificate:string tls.key:string ';
const ROLES = ['server' => 2, 'client' => 3, 'ping' => 6, 'pong' => 7];
const CALL = 1, WARM_UP = 1, FAILED = 2, TIMEOUT = 4;

/** Ends the node with $code: 2 the spec (with its key), 3 unsupported, 4 the middleware failed. */
final class Refused extends \Exception {
    public function __construct(int $code, string $reason, public readonly ?string $key = null) {
        parent::__construct($reason, $code);
    }
}

/** The spec; $settings is written as KEYS is, with settings.NAME:TYPE. */
function readSpec(string $path, string $settings): array {
    $spec = json_decode(file_get_contents($path));
    if (!is_object($spec)) {
        throw new Refused(2, "$path: found no JSON object; allowed: a spec of contract 2", '--spec');
    }
    preg_match_all('/(\S+):(\S+)/', KEYS . $settings, $table);
    $types = array_combine($table[1], $table[2]);
    foreach ($spec as $key => $value) {
        $types += str_starts_with($key, 'settings.') ? [$key => 'no such key'] : [];
    }
    foreach ($types as $key => $type) {
        $found = $spec->$key ?? null;
        $good = !is_array($found) ? gettype($found) === $type : str_ends_with($type, 's')
            && array_diff(array_map(fn ($item) => gettype($item) . 's', $found), [$type]) === [];
        if (!$good || ($key === 'contract' && $found !== 2)) {
            throw new Refused(2, "$key: found " . json_encode($found) . "; allowed: $type", $key);
        }
    }
    return (array) $spec;
}

/** Ends the node with 3 where the spec asks for what the cell does not have; $least in bytes. */
function checkCapabilities(array $spec, array $roles, array $has, int $least): void {
    $least *= ['bytes' => 1, 'text' => 2, 'record' => 0][$spec['payload.encoding']];
    $literal = $spec['payload.literal'] !== '';
    $asked = ["encoding.{$spec['payload.encoding']}", "loop.{$spec['loop']}",
        "pacing.{$spec['pacing']}", "reply.{$spec['reply']}", "role {$spec['role']}",
        $spec['loop'] === 'open' && $spec['outstanding_max'] > 1 ? 'async_client' : '',
        $literal ? 'literal' : ($spec['payload.bytes'] < $least ? "less than $least" : '')];
    $has = ['', ...$has, ...array_map(fn ($role) => "role $role", array_keys($roles))];
    foreach (array_diff($asked, $has) as $missing) {
        throw new Refused(3, "found $missing; allowed: " . implode(', ', $has));
    }
}

/** Prints a line of C-05. */
function line(string $keyword, array $fields): void {
    static $lines = null;
    $lines ??= fopen('php://fd/3', 'wb');
    $flags = JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE;
    fwrite($lines, "$keyword " . json_encode($fields, $flags) . "\n");
}

/** READY; $library: name, version, build; $guarantee: delivery, ordering, overload (C-07). */
function ready(?int $matched, ?int $discovery_ns, array $library, array $effective, array $guarantee): void {
    line('READY', ['matched' => $matched, 'startup_ns' => hrtime(true) - BEGIN_NS,
        'discovery_ns' => $discovery_ns, 'effective' => (object) $effective,
        'library' => array_combine(['name', 'version', 'build'], $library),
        'guarantee' => array_combine(['delivery', 'ordering', 'overload'], $guarantee)]);
}

/** The sample file: records in memory during the window, written after it (C-24 to C-26). */
final class Samples {
    public int $recorded = 0, $overflow = 0;
    private $memory;

    public function __construct(private int $capacity) {
        $this->memory = fopen('php://memory', 'w+b');
        fwrite($this->memory, str_repeat("\0", 40 * $capacity)); // no page is new in the window
        rewind($this->memory);
    }

    /** The eight fields of C-25. */
    public function add(int ...$fields): void {
        if ($this->recorded === $this->capacity) {
            $this->overflow++;
        } else {
            $this->recorded++;
            fwrite($this->memory, pack('PPPPVvCC', ...$fields));
        }
    }

    public function write(string $path, int $role, int $node, int $seed): void {
        $header = pack('a8vvvCCvvVPPPx16', 'WATTWIRE', 1, 64, 40, $role, 1, $node, 0, 0,
            $this->recorded, $this->overflow, $seed);
        rewind($this->memory);
        file_put_contents($path, $header . stream_get_contents($this->memory, 40 * $this->recorded));
    }
}

/** One node of one run. Times are ns of CLOCK_MONOTONIC. */
final class Kit {
    public readonly Payload|Record $message;
    public bool $stopped = false;
    private Samples $samples;
    private int $start_ns = PHP_INT_MAX;
    private int $stop_ns = PHP_INT_MAX >> 1;
    private int $quiet_ns = PHP_INT_MAX >> 1; // when STOP or after it the last arrival came
    private ?array $pending = null;
    private array $counts = ['sent' => 0, 'received' => 0, 'recorded' => 0, 'overflow' => 0,
        'foreign' => 0, 'corrupt' => 0, 'probes' => 0];

    public function __construct(public readonly array $spec) {
        // What comes to a client are replies to itself.
        $calls = in_array($spec['role'], ['client', 'ping'], true);
        $nodes = $calls ? [$spec['node']] : $spec['peers.nodes'];
        $class = $spec['payload.encoding'] === 'record' ? Record::class : Payload::class;
        $this->message = new $class($spec, $nodes);
        $this->samples = new Samples($spec['record.capacity']);
    }

    /** Calls $there(until_ns) until it is true, ends with 4 at ready_timeout_ms; ns it took. */
    public function await(callable $there): int {
        [$begin_ns, $bound_ms] = [hrtime(true), $this->spec['ready_timeout_ms']];
        $end_ns = BEGIN_NS + $bound_ms * 1_000_000;
        while (!$there(min($end_ns, hrtime(true) + 250_000_000))) {
            if (hrtime(true) > $end_ns) {
                throw new Refused(4, "nobody within ready_timeout_ms = $bound_ms; does it run?");
            }
        }
        return hrtime(true) - $begin_ns;
    }

    /** $call(message, until_ns) until it gives a reply (C-07); ns it took. */
    public function probe(callable $call): int {
        return $this->await(function (int $until_ns) use ($call): bool {
            $this->counts['probes']++;
            $seq = $this->spec['node'] << 48 | PROBE;
            $reply = $call($this->message->stamp($seq, hrtime(true)), $until_ns);
            $this->wait($reply === false ? hrtime(true) + 5_000_000 : 0);
            return $reply !== false && $reply !== null;
        });
    }

    /** The streams that are ready; [] at $until_ns, after a second, or where a line came. */
    public function wait(int $until_ns, array $read = [], array $write = []): array {
        $left_us = min(max(0, intdiv($until_ns - hrtime(true) + 999, 1000)), 999_999);
        [$read['input'], $none] = [STDIN, null];
        if (!@stream_select($read, $write, $none, 0, $left_us)) {
            return [];
        }
        if (isset($read['input'])) {
            $this->obey(fgets(STDIN) ?: exit(5));
            unset($read['input']);
        }
        return [...$read, ...$write];
    }

    private function obey(string $line): void {
        $now_ns = hrtime(true);
        if ($line === "STOP\n") {
            [$this->stopped, $this->stop_ns, $this->quiet_ns] = [true, $now_ns, $now_ns];
        } elseif (preg_match('/^GO (\d+)$/', $line, $go) && (int) $go[1] >= $now_ns) {
            $this->start_ns = (int) $go[1];
        } else {
            throw new Refused(2, "found $line at $now_ns; allowed: STOP, GO <ns> to come", 'GO');
        }
    }

    /** A client's window: $call(message, until_ns) gives the reply, null at the timeout or STOP,
     *  false where the message was not sent. */
    public function calls(callable $call): void {
        while ($this->start_ns === PHP_INT_MAX && !$this->stopped) {
            $this->wait(PHP_INT_MAX);
        }
        $spec = $this->spec;
        $closed = $spec['loop'] === 'closed';
        $span_ns = $spec['duration_ns'] - $spec['phase_ns'];
        $scheduled = $closed ? $spec['count'] : max(0, (int) ceil($span_ns / $spec['period_ns']));
        [$begin_ns, $end_ns] = [null, null];
        for ($k = 0; $k < $scheduled; $k++) {
            $due_ns = $this->start_ns + ($closed ? 0 : $spec['phase_ns'] + $k * $spec['period_ns']);
            while (($now_ns = hrtime(true)) < $due_ns && !$this->stopped) {
                $this->wait($due_ns - $spec['spin_ns']);
            }
            $past_ns = $now_ns - $this->start_ns - $spec['duration_ns'] - $spec['overrun_ns'];
            if ($this->stopped || (!$closed && $past_ns > 0)) {
                break;
            }
            $begin_ns ??= $now_ns;
            $end_ns = $this->call($call, $k, $closed ? $now_ns : $due_ns, $now_ns);
        }
        line('SENT', ['begin_ns' => $begin_ns, 'end_ns' => $end_ns, 'skipped' => 0,
            'sent' => $this->counts['sent'], 'scheduled' => $scheduled]);
        while (!$this->stopped) {
            $this->wait(PHP_INT_MAX);
        }
    }

    /** One call; returns when it ended. */
    private function call(callable $call, int $k, int $intended_ns, int $begin_ns): int {
        $seq = $this->spec['node'] << 48 | $k;
        $message = $this->message->stamp($seq, $begin_ns);
        $reply = $call($message, $begin_ns + $this->spec['timeout_ns']);
        $end_ns = hrtime(true);
        $late = $reply === null || $end_ns - $begin_ns > $this->spec['timeout_ns'];
        $flags = $reply === false ? FAILED : ($late ? TIMEOUT : OK);
        $this->counts['sent'] += $reply === false ? 0 : 1;
        if ($flags === OK) {
            $this->counts['received']++;
            $echo = $this->spec['reply'] === 'echo' && $this->spec['payload.literal'] === '';
            $good = $echo ? $this->message->check($reply) === [OK, $seq]
                : $reply == $this->message->reply($message);
            $this->counts['corrupt'] += $good ? 0 : 1;
            $flags = $good ? OK : CORRUPT;
        }
        $peers = $this->spec['peers.nodes'];
        $peer = count($peers) === 1 ? $peers[0] : UNKNOWN_PEER;
        $known_ns = $flags & (FAILED | TIMEOUT) ? UNKNOWN_NS : $end_ns;
        $flags |= $intended_ns < $this->start_ns + $this->spec['warmup_ns'] ? WARM_UP : 0;
        $this->samples->add($seq, $intended_ns, $begin_ns, $known_ns,
            $this->message->length, $peer, CALL, $flags);
        return $end_ns;
    }

    /** The reply to a request in hand; null: it is not answered. */
    public function serve(mixed $request): mixed {
        $now_ns = hrtime(true);
        [$verdict, $seq] = $this->message->check($request);
        $this->pending = null;
        if ($verdict === FOREIGN) {
            $this->counts['foreign']++;
            return null;
        }
        $literal = $this->spec['payload.literal'] !== '';
        if ($literal ? $now_ns < $this->start_ns : $seq !== null && ($seq & PROBE) === PROBE) {
            $this->counts['probes']++;
        } else {
            $this->quiet_ns = max($this->quiet_ns, $now_ns);
            $this->counts['corrupt'] += $verdict === CORRUPT ? 1 : 0;
            $this->counts['received'] += $seq === null ? 0 : 1;
            $this->pending = $seq === null ? null : [$seq, $now_ns, $request, $verdict];
        }
        return $request === null ? null : $this->message->reply($request);
    }

    /** The reply of the last serve() was handed over. */
    public function served(): void {
        [$seq, $begin_ns, $request, $flags] = $this->pending ?? [null, 0, '', 0];
        if ($seq !== null) {
            $end_ns = hrtime(true);
            $flags |= $end_ns < $this->start_ns + $this->spec['warmup_ns'] ? WARM_UP : 0;
            $bytes = is_string($request) ? strlen($request) : 96 + 16 * count($request['samples']);
            $this->samples->add($seq, UNKNOWN_NS, $begin_ns, $end_ns, $bytes, $seq >> 48 & 0xFFFF,
                CALL, $flags);
        }
    }

    /** A server's window: $poll(until_ns) until the drain is over (C-15). */
    public function drain(callable $poll): void {
        [$quiet_ns, $linger_ns] = [$this->spec['quiet_ms'] * 1_000_000, $this->spec['linger_ms'] * 1_000_000];
        do {
            $end_ns = min($this->quiet_ns + $quiet_ns, $this->stop_ns + $linger_ns);
            $poll($end_ns);
        } while (hrtime(true) < $end_ns);
    }

    /** Samples and DONE; $unrecorded: other processes answered, and nobody counted (C-34). */
    public function finish(string $out): void {
        $spec = $this->spec;
        $this->samples->write("$out/samples.bin", ROLES[$spec['role']], $spec['node'], $spec['payload.seed']);
        $counts = ['recorded' => $this->samples->recorded, 'overflow' => $this->samples->overflow];
        line('DONE', $counts + $this->counts);
    }
}

/** Runs this node and ends the process: languages/php/README.md. */
function run(array $roles, string $settings, array $capabilities, int $least = 16): never {
    set_error_handler(function (int $level, string $text, string $file, int $at): bool {
        error_reporting() & $level && throw new \ErrorException($text, 0, $level, $file, $at);
        return true;
    });
    try {
        $given = array_slice($_SERVER['argv'], 1);
        if (count($given) !== 4 || [$given[0], $given[2]] !== ['--spec', '--out']) {
            $reason = 'found ' . implode(' ', $given) . '; allowed: --spec FILE --out DIR';
            throw new Refused(2, $reason, 'command line');
        }
        $spec = readSpec($given[1], $settings);
        checkCapabilities($spec, $roles, $capabilities, $least);
        $kit = new Kit($spec);
        $roles[$spec['role']]($kit);
        $kit->finish($given[3]);
        exit(0);
    } catch (\Throwable $error) {
        fwrite(STDERR, "$error\n");
        $code = $error instanceof Refused ? $error->getCode() : 4;
        line('ERROR', ['code' => $code, 'key' => $error->key ?? null, 'reason' => $error->getMessage()]);
        exit($code);
    }
}
