<?php

/** Whether a cell's capabilities suffice for a run (C-03). */

declare(strict_types=1);

namespace Wattwire;

/**
 * Refuses a run that needs more than the cell has.
 *
 * $bounds: encoding => [shortest, longest] payload in bytes.
 */
function checkCapabilities(Spec $spec, array $capabilities, array $bounds): void
{
    $missing = array_diff(neededCapabilities($spec), $capabilities);
    if ($missing !== []) {
        $allowed = implode(', ', $capabilities);
        throw new Refused('found ' . implode(', ', $missing) . "; allowed: $allowed", UNSUPPORTED);
    }
    [$shortest, $longest] = $bounds[$spec->payload_encoding];
    $bytes = $spec->payload_bytes;
    if ($spec->payload_literal === '' && ($bytes < $shortest || $bytes > $longest)) {
        throw new Refused("found $bytes; allowed: $shortest to $longest bytes", UNSUPPORTED);
    }
}

/** @return string[] */
function neededCapabilities(Spec $spec): array
{
    $needed = [
        "encoding.$spec->payload_encoding", "loop.$spec->loop", "pacing.$spec->pacing",
        "reply.$spec->reply",
    ];
    if ($spec->payload_literal !== '') {
        $needed[] = 'literal';
    }
    if ($spec->loop === 'open' && $spec->outstanding_max > 1) {
        $needed[] = 'async_client';
    }
    return $needed;
}
