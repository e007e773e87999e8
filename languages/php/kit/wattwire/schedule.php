<?php

/** When each message of a sender is due (C-10, C-11). */

declare(strict_types=1);

namespace Wattwire;

final class Schedule
{
    public readonly bool $is_closed;
    /** Messages of the spec. */
    public readonly int $scheduled;
    /** All messages, with those beyond the count of a closed loop. */
    public readonly int $total;
    /** No message is sent later than this after the start. */
    public readonly int $last_offset_ns;
    private readonly int $phase_ns;
    private readonly int $step_ns;

    public function __construct(Spec $spec)
    {
        $left_ns = max(0, $spec->duration_ns - $spec->phase_ns);
        $this->is_closed = $spec->loop === 'closed';
        $this->phase_ns = $this->is_closed ? 0 : $spec->phase_ns;
        // Each message of a closed loop is due at the start.
        $this->step_ns = $this->is_closed ? 0 : $spec->period_ns;
        $this->scheduled = $this->is_closed
            ? $spec->count : (int) ceil($left_ns / $spec->period_ns);
        $this->total = $this->scheduled + $spec->count_beyond;
        $this->last_offset_ns = $this->is_closed
            ? PHP_INT_MAX : $left_ns + $spec->phase_ns + $spec->overrun_ns;
    }

    /** Returns when the message is due, in ns after the start. */
    public function offsetNs(int $index): int
    {
        return $this->phase_ns + $index * $this->step_ns;
    }
}
