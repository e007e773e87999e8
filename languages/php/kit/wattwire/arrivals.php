<?php

/** The part of the kit that servers and pongs call. */

declare(strict_types=1);

namespace Wattwire;

trait Arrivals
{
    /** [sequence, arrival in ns, request, verdict] of the request that is being served, or []. */
    private array $pending = [];

    /** Counts a request; returns the reply, or null if it is not answered. */
    public function serve(string|array $request): string|array|null
    {
        $now_ns = hrtime(true);
        [$verdict, $seq] = $this->message->check($request);
        $this->quiet_ns = max($this->quiet_ns, $now_ns);
        $this->pending = [];
        if ($verdict === FOREIGN) {
            $this->foreign++;
            return null;
        }
        if ($this->isProbe($seq, $now_ns)) {
            $this->probes++;
        } else {
            // A literal has no sequence: its arrivals are counted (C-22).
            $seq = $this->is_literal ? $this->peer << 48 | $this->received : $seq;
            $this->corrupt += (int) ($verdict === CORRUPT);
            if ($seq !== null) {
                $this->received++;
                $this->pending = [$seq, $now_ns, $request, $verdict];
            }
        }
        return $request === [] ? null : $this->message->reply($request);
    }

    private function isProbe(?int $seq, int $now_ns): bool
    {
        if ($this->is_literal) {
            return $now_ns < $this->start_ns;
        }
        return $seq !== null && ($seq & PROBE_COUNTER) === PROBE_COUNTER;
    }

    /** Records that the reply of the last serve() was handed over. */
    public function served(): void
    {
        $end_ns = hrtime(true);
        if ($this->pending === []) {
            return;
        }
        [$seq, $begin_ns, $request, $flags] = $this->pending;
        $flags |= $end_ns < $this->start_ns + $this->warmup_ns ? WARM_UP : 0;
        $bytes = $this->message->bytes($request);
        $this->samples->add(
            $seq,
            UNKNOWN_NS,
            $begin_ns,
            $end_ns,
            $bytes,
            $seq >> 48 & 0xFFFF,
            KIND_CALL,
            $flags,
        );
        $this->pending = [];
    }

    /** Calls $poll(until_ns) until a server may end (C-15). */
    public function drain(callable $poll): void
    {
        $quiet_ns = 1_000_000 * $this->spec->quiet_ms;
        $linger_ns = 1_000_000 * $this->spec->linger_ms;
        do {
            $end_ns = min($this->quiet_ns + $quiet_ns, $this->stop_ns + $linger_ns);
            if (hrtime(true) >= $end_ns) {
                return;
            }
            $poll($end_ns);
        } while (true);
    }
}
