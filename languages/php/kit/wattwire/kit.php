<?php
declare(strict_types=1);
namespace Wattwire;

define('Wattwire\BEGIN_NS', hrtime(true)); // CLOCK_MONOTONIC, before the rest is loaded
require 'wattwire/message.php';

const KEYS = 'contract:integer run:string cell:string pattern:string role:string node:integer
    index:integer peers.nodes:array peers.count:integer peers.endpoints:array loop:string
    period_ns:integer phase_ns:integer duration_ns:integer count:integer
    count_beyond:integer warmup_ns:integer
    overrun_ns:integer timeout_ns:integer outstanding_max:integer quiet_ms:integer
    linger_ms:integer ready_timeout_ms:integer pacing:string spin_ns:integer
    payload.bytes:integer payload.encoding:string payload.seed:integer payload.literal:string
    reply:string reply.literal:string verify:string action.feedback:integer
    record.capacity:integer tls.authority:string tls.certificate:string tls.key:string ';
const ROLES = ['server' => 2, 'client' => 3, 'ping' => 6, 'pong' => 7];
const CALL = 1, WARM_UP = 1, FAILED = 2, TIMEOUT = 4;

/** Ends the node with its code, 2 to 4; with 2 the reason begins with the key and a colon. */
final class Refused extends \Exception {}

/** The spec; $settings is written as KEYS is, with settings.NAME:TYPE. */
function readSpec(string $path, string $settings): array {
    $spec = json_decode(file_get_contents($path));
    is_object($spec) || throw new Refused("--spec: $path holds no JSON object", 2);
    preg_match_all('/(\S+):(\S+)/', KEYS . $settings, $table);
    $types = array_combine($table[1], $table[2]);
    $types += array_fill_keys(preg_grep('/^settings\./', array_keys((array) $spec)), 'no key');
    foreach ($types as $key => $type) {
        $found = $spec->$key ?? null;
        gettype($found) === $type && ($key !== 'contract' || $found === 2)
            || throw new Refused("$key: found " . json_encode($found) . "; allowed: $type", 2);
    }
    return (array) $spec;
}

/** Ends the node with 3 where the spec asks for what the cell does not have. */
function checkCapabilities(array $spec, array $has, array $bounds): void {
    $literal = $spec['payload.literal'] !== '';
    $asked = ["encoding.{$spec['payload.encoding']}", "loop.{$spec['loop']}",
        "pacing.{$spec['pacing']}", "reply.{$spec['reply']}", $literal ? 'literal' : 'loop.open',
        $spec['loop'] === 'open' && $spec['outstanding_max'] > 1 ? 'async_client' : 'loop.open'];
    $missing = implode(', ', array_diff($asked, $has));
    $missing === '' || throw new Refused("found $missing; allowed: " . implode(', ', $has), 3);
    [$least, $most] = $bounds[$spec['payload.encoding']];
    $literal || ($spec['payload.bytes'] >= $least && $spec['payload.bytes'] <= $most)
        || throw new Refused("found {$spec['payload.bytes']}; allowed: $least to $most bytes", 3);
}

function line(string $keyword, array $fields): void {
    $flags = JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE;
    file_put_contents('php://fd/3', "$keyword " . json_encode((object) $fields, $flags) . "\n");
}

/** One node of one run. Times are ns of CLOCK_MONOTONIC. */
final class Kit {
    public readonly Payload|Record $message;
    public bool $stopped = false;
    public string $reason = ''; // a cell's: why its last call was not sent
    private readonly bool $calls;
    private $records; // the sample file after its header: written after the window (C-26)
    private int $start_ns = PHP_INT_MAX >> 1, $stop_ns = PHP_INT_MAX >> 1;
    private int $quiet_ns = PHP_INT_MAX >> 1; // when STOP, or after it the last arrival, came
    private bool $beyond = false; // the count: the schedule goes on until STOP
    private array $pending = [];
    public array $counts = ['sent' => 0, 'received' => 0, 'foreign' => 0, 'corrupt' => 0,
        'probes' => 0, 'recorded' => 0, 'overflow' => 0];

    public function __construct(public readonly array $spec) {
        $this->calls = in_array($spec['role'], ['client', 'ping'], true);
        $nodes = $this->calls ? [$spec['node']] : $spec['peers.nodes']; // replies name the caller
        $class = $spec['payload.encoding'] === 'record' ? Record::class : Payload::class;
        $this->message = new $class($spec, $nodes);
        $this->records = fopen('php://memory', 'w+b');
        fwrite($this->records, str_repeat("\0", 40 * $spec['record.capacity']));
        rewind($this->records); // no page of it is new in the window
    }

    /** Calls as calls() does until a reply comes (C-07), at most ready_timeout_ms; ns it took. */
    public function probe(callable $call): int {
        [$begin_ns, $bound_ms] = [hrtime(true), $this->spec['ready_timeout_ms']];
        do {
            [$now_ns, $why] = [hrtime(true), $this->reason ? "; the last one: $this->reason" : ''];
            $now_ns < BEGIN_NS + $bound_ms * 1_000_000
                || throw new Refused(
                    "no reply to a probe within ready_timeout_ms = $bound_ms$why", 4);
            $this->counts['probes']++;
            $message = $this->message->stamp($this->spec['node'] << 48 | PROBE, $now_ns);
            $reply = $call($message, $now_ns + 1_000_000_000);
            $this->wait($reply === false ? $now_ns + 5_000_000 : 0);
        } while ($reply === false || $reply === null);
        return hrtime(true) - $begin_ns;
    }

    /** The streams that are ready; [] at $until_ns, after a second, or where a line came. */
    public function wait(int $until_ns, array $read = [], array $write = []): array {
        $left_us = min(max(0, intdiv($until_ns - hrtime(true) + 999, 1000)), 999_999);
        [$read['input'], $none] = [STDIN, null];
        $ready = @stream_select($read, $write, $none, 0, $left_us) > 0;
        if (!$ready || !isset($read['input'])) {
            return $ready ? [...$read, ...$write] : [];
        }
        [$line, $now_ns] = [fgets(STDIN) ?: exit(5), hrtime(true)];
        if ($line === "STOP\n") {
            [$this->stop_ns, $this->quiet_ns] = [$now_ns, $now_ns];
            $this->stopped = !$this->beyond; // a call beyond the count may end (C-15)
        } elseif (preg_match('/^GO (\d+)$/', $line, $go) && (int) $go[1] >= $now_ns) {
            $this->start_ns = (int) $go[1];
        } else {
            throw new Refused("GO: found $line at $now_ns; allowed: STOP, or GO <ns> to come", 2);
        }
        return [];
    }

    /** $call(message, until_ns) gives the reply, null at the timeout or STOP, false: failed. */
    public function calls(callable $call): void {
        $closed = $this->spec['loop'] === 'closed';
        ['period_ns' => $period_ns, 'phase_ns' => $phase_ns, 'spin_ns' => $spin_ns] = $this->spec;
        $left_ns = max(0, $this->spec['duration_ns'] - $phase_ns);
        $scheduled = $closed ? $this->spec['count'] : (int) ceil($left_ns / $period_ns);
        $bound_ns = $closed ? PHP_INT_MAX : $left_ns + $phase_ns + $this->spec['overrun_ns'];
        [$begin_ns, $end_ns] = [null, null];
        for ($k = 0; $k < $scheduled + $this->spec['count_beyond']; $k++) {
            $offset_ns = $closed ? 0 : $phase_ns + $k * $period_ns;
            while (($now_ns = hrtime(true)) < $this->start_ns + $offset_ns && !$this->stopped) {
                $this->wait($this->start_ns + $offset_ns - $spin_ns); // GO may come here
            }
            if ($this->stop_ns <= $now_ns || $now_ns - $this->start_ns > $bound_ns) {
                break;
            }
            if ($k === $scheduled) {
                line('COUNTED', []);
                [$this->beyond, $now_ns] = [true, hrtime(true)];
            }
            $begin_ns ??= $now_ns;
            $intended_ns = $closed ? $now_ns : $this->start_ns + $offset_ns;
            $end_ns = $this->call($call, $this->spec['node'] << 48 | $k, $intended_ns, $now_ns);
        }
        [$this->beyond, $this->stopped] = [false, $this->stop_ns <= hrtime(true)];
        line('SENT', ['begin_ns' => $begin_ns, 'end_ns' => $end_ns, 'skipped' => 0,
            'sent' => $this->counts['sent'], 'scheduled' => $scheduled]);
        while (!$this->stopped) {
            $this->wait(PHP_INT_MAX);
        }
    }

    private function call(callable $call, int $seq, int $intended_ns, int $begin_ns): int {
        $message = $this->message->stamp($seq, $begin_ns);
        $reply = $call($message, $begin_ns + $this->spec['timeout_ns']);
        $end_ns = hrtime(true);
        $echo = $this->spec['reply'] === 'echo' && $this->spec['payload.literal'] === '';
        $flags = match (true) {
            $reply === false => FAILED,
            $reply === null || $end_ns - $begin_ns > $this->spec['timeout_ns'] => TIMEOUT,
            $echo ? $this->message->check($reply) === [OK, $seq]
                : $reply === $this->message->reply($message) => OK,
            default => CORRUPT,
        };
        $this->counts['sent']++;
        $this->counts['corrupt'] += (int) ($flags === CORRUPT);
        $this->counts['received'] += (int) ($flags === OK || $flags === CORRUPT);
        $known_ns = $flags & (FAILED | TIMEOUT) ? UNKNOWN_NS : $end_ns;
        $this->record($seq, $intended_ns, $begin_ns, $known_ns, $message, $flags);
        return $end_ns;
    }

    /** The reply to a request in hand; null: it is not answered. */
    public function serve(string|array $request): string|array|null {
        $now_ns = hrtime(true);
        [$verdict, $seq] = $this->message->check($request);
        $literal = $this->spec['payload.literal'] !== '';
        $count = match (true) {
            $verdict === FOREIGN => 'foreign',
            $literal ? $now_ns < $this->start_ns : ($seq & PROBE) === PROBE => 'probes',
            default => $seq === null ? 'corrupt' : 'received',
        };
        $this->counts[$count]++;
        $this->counts['corrupt'] += (int) ($count === 'received' && $verdict === CORRUPT);
        $this->pending = $count === 'received' ? [$seq, $now_ns, $request, $verdict] : [];
        $this->quiet_ns = max($this->quiet_ns, $now_ns);
        return $count === 'foreign' || $request === [] ? null : $this->message->reply($request);
    }

    /** The reply of the last serve() was handed over. */
    public function served(): void {
        if ($this->pending !== []) {
            [$seq, $begin_ns, $request, $flags] = $this->pending;
            $this->record($seq, UNKNOWN_NS, $begin_ns, hrtime(true), $request, $flags);
        }
    }

    private function record(int $seq, int $intended_ns, int $begin_ns, int $end_ns,
        string|array $message, int $flags): void {
        $peers = $this->calls ? $this->spec['peers.nodes'] : [$seq >> 48 & 0xFFFF];
        $peer = count($peers) === 1 ? $peers[0] : UNKNOWN_PEER;
        $warm_ns = $this->start_ns + $this->spec['warmup_ns'];
        $flags |= ($this->calls ? $intended_ns : $end_ns) < $warm_ns ? WARM_UP : 0;
        $bytes = is_string($message) ? strlen($message) : 96 + 16 * count($message['samples']);
        $this->add($seq, $intended_ns, $begin_ns, $end_ns, $bytes, $peer, CALL, $flags);
    }

    public function add(int ...$fields): void {
        if ($this->counts['recorded'] === $this->spec['record.capacity']) {
            $this->counts['overflow']++;
        } else {
            $this->counts['recorded']++;
            fwrite($this->records, pack('PPPPVvCC', ...$fields));
        }
    }

    /** A server's window: $poll(until_ns) until the drain is over (C-15). */
    public function drain(callable $poll): void {
        while (hrtime(true) < ($end_ns = min($this->quiet_ns + 1_000_000 * $this->spec['quiet_ms'],
            $this->stop_ns + 1_000_000 * $this->spec['linger_ms']))) {
            $poll($end_ns);
        }
    }

    public function write(string $path, int $role): array {
        ['recorded' => $recorded, 'overflow' => $overflow] = $this->counts;
        rewind($this->records);
        file_put_contents($path, pack('a8vvvCCvvVPPPx16', 'WATTWIRE', 1, 64, 40, $role, 1,
            $this->spec['node'], 0, 0, $recorded, $overflow, $this->spec['payload.seed'])
            . stream_get_contents($this->records, 40 * $recorded));
        return $this->counts;
    }
}

/** Runs this node and ends the process: languages/php/README.md. */
function run(array $roles, string $settings, array $capabilities, array $bounds): void {
    set_error_handler(fn (int $level, string $text, string $file, int $at): bool =>
        error_reporting() & $level ? throw new \ErrorException($text, 0, 1, $file, $at) : true);
    try {
        $given = array_slice($_SERVER['argv'], 1);
        if (count($given) !== 4 || $given[0] !== '--spec' || $given[2] !== '--out') {
            throw new Refused('command line: allowed is --spec FILE --out DIR', 2);
        }
        $spec = readSpec($given[1], $settings);
        checkCapabilities($spec, $capabilities, $bounds);
        $role = $roles[$spec['role']] ?? throw new Refused("there is no role {$spec['role']}", 3);
        $role($kit = new Kit($spec));
        line('DONE', $kit->write("$given[3]/samples.bin", ROLES[$spec['role']]));
    } catch (\Throwable $error) {
        fwrite(STDERR, "$error\n");
        $code = $error instanceof Refused ? $error->getCode() : 4;
        $reason = $error->getMessage() ?: $error::class;
        $key = $code === 2 ? strstr($reason, ':', true) : null;
        line('ERROR', ['code' => $code, 'key' => $key, 'reason' => $reason]);
        exit($code);
    }
}
