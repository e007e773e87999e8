<?php

/** The dialogue with the harness: lines on descriptor 3, GO and STOP (C-05, C-08, C-09). */

declare(strict_types=1);

namespace Wattwire;

const BAD_SPEC = 2;
const UNSUPPORTED = 3;
const MIDDLEWARE_FAILED = 4;
const END_OF_INPUT = 5;

const NEVER_NS = PHP_INT_MAX >> 1; // a sum of two does not overflow
const WAIT_US_MAX = 999_999;

/** Ends the node with its code, 2 to 4; with 2 the reason begins with the key and a colon. */
final class Refused extends \Exception
{
}

/** Prints a line with a keyword. */
function line(string $keyword, array $fields): void
{
    $flags = JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE;
    file_put_contents('php://fd/3', "$keyword " . json_encode((object) $fields, $flags) . "\n");
}

/** The part of the kit that waits. Standard input is read during waits: PHP has no threads. */
trait Dialogue
{
    /** True after STOP: an open call gives up. */
    public bool $stopped = false;
    private int $start_ns = NEVER_NS;
    private int $stop_ns = NEVER_NS;
    /** Time of STOP or, after it, of the last arrival. */
    private int $quiet_ns = NEVER_NS;
    /** Whether the closed loop has reached its count and continues until STOP. */
    private bool $beyond = false;

    /** Returns the streams that are ready; [] at $until_ns, after a second, or after a line. */
    public function wait(int $until_ns, array $read = [], array $write = []): array
    {
        $left_us = min(max(0, intdiv($until_ns - hrtime(true) + 999, 1000)), WAIT_US_MAX);
        $read['input'] = STDIN;
        $except = null;
        if (@stream_select($read, $write, $except, 0, $left_us) < 1) {
            return [];
        }
        if (!isset($read['input'])) {
            return [...$read, ...$write];
        }
        $this->obey(fgets(STDIN) ?: exit(END_OF_INPUT), hrtime(true));
        return [];
    }

    private function obey(string $line, int $now_ns): void
    {
        if ($line === "STOP\n") {
            $this->stop_ns = $now_ns;
            $this->quiet_ns = $now_ns;
            $this->stopped = !$this->beyond; // an open call beyond the count may end (C-15)
        } elseif (preg_match('/^GO (\d+)$/', $line, $match) && (int) $match[1] >= $now_ns) {
            $this->start_ns = (int) $match[1];
        } else {
            $allowed = 'STOP, or GO <ns in the future>';
            throw new Refused("GO: found $line at $now_ns; allowed: $allowed", BAD_SPEC);
        }
    }
}
