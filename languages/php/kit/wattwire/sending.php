<?php

/** The part of the kit that clients and pings call. */

declare(strict_types=1);

namespace Wattwire;

const PROBE_TIMEOUT_NS = 1_000_000_000;
const PROBE_PAUSE_NS = 5_000_000;

trait Sending
{
    /** Why the last call failed; the cell writes it. */
    public string $reason = '';

    /** Calls as calls() does until a reply comes (C-07); returns the ns it took. */
    public function probe(callable $call): int
    {
        $begin_ns = hrtime(true);
        $bound_ms = $this->spec->ready_timeout_ms;
        do {
            $now_ns = hrtime(true);
            if ($now_ns >= BEGIN_NS + $bound_ms * 1_000_000) {
                $reason = "no reply to a probe within ready_timeout_ms = $bound_ms";
                $reason .= $this->reason === '' ? '' : "; the last attempt: $this->reason";
                throw new Refused($reason, MIDDLEWARE_FAILED);
            }
            $this->probes++;
            $message = $this->message->stamp($this->spec->node << 48 | PROBE_COUNTER, $now_ns);
            $reply = $call($message, $now_ns + PROBE_TIMEOUT_NS);
            $this->wait($reply === false ? $now_ns + PROBE_PAUSE_NS : 0);
        } while ($reply === false || $reply === null);
        return hrtime(true) - $begin_ns;
    }

    /**
     * Sends the messages of the schedule, prints SENT and waits for STOP.
     *
     * $call(message, until_ns) returns the reply, null at the timeout or STOP, false for a failure.
     */
    public function calls(callable $call): void
    {
        $schedule = new Schedule($this->spec);
        $first_seq = $this->spec->node << 48;
        $begin_ns = null;
        $end_ns = null;
        for ($index = 0; $index < $schedule->total; $index++) {
            $offset_ns = $schedule->offsetNs($index);
            $now_ns = $this->waitUntilDue($offset_ns);
            $is_late = $now_ns - $this->start_ns > $schedule->last_offset_ns;
            if ($is_late || $this->stop_ns <= $now_ns) {
                break;
            }
            if ($index === $schedule->scheduled) {
                line('COUNTED', []);
                $this->beyond = true;
                $now_ns = hrtime(true);
            }
            $begin_ns ??= $now_ns;
            $intended_ns = $schedule->is_closed ? $now_ns : $this->start_ns + $offset_ns;
            $end_ns = $this->call($call, $first_seq | $index, $intended_ns, $now_ns);
        }
        $this->beyond = false;
        $this->stopped = $this->stop_ns <= hrtime(true);
        line('SENT', [
            'begin_ns' => $begin_ns, 'end_ns' => $end_ns, 'skipped' => 0, 'sent' => $this->sent,
            'scheduled' => $schedule->scheduled,
        ]);
        while (!$this->stopped) {
            $this->wait(PHP_INT_MAX);
        }
    }

    /** Waits for that time after the start, or STOP; returns the time. GO may come meanwhile. */
    private function waitUntilDue(int $offset_ns): int
    {
        while (($now_ns = hrtime(true)) < $this->start_ns + $offset_ns && !$this->stopped) {
            $this->wait($this->start_ns + $offset_ns - $this->spin_ns);
        }
        return $now_ns;
    }

    private function call(callable $call, int $seq, int $intended_ns, int $begin_ns): int
    {
        $message = $this->message->stamp($seq, $begin_ns);
        $reply = $call($message, $begin_ns + $this->timeout_ns);
        $end_ns = hrtime(true);
        $known_ns = $end_ns;
        $this->sent++;
        if ($reply === false || $reply === null || $end_ns - $begin_ns > $this->timeout_ns) {
            $flags = $reply === false ? FAILED : TIMEOUT;
            $known_ns = UNKNOWN_NS;
        } else {
            $flags = $this->message->isReplyTo($reply, $message, $seq) ? OK : CORRUPT;
            $this->received++;
            $this->corrupt += (int) ($flags === CORRUPT);
        }
        $flags |= $intended_ns < $this->start_ns + $this->warmup_ns ? WARM_UP : 0;
        $bytes = $this->message->bytes($message);
        $this->samples->add(
            $seq,
            $intended_ns,
            $begin_ns,
            $known_ns,
            $bytes,
            $this->peer,
            KIND_CALL,
            $flags,
        );
        return $end_ns;
    }
}
