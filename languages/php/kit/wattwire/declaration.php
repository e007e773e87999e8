<?php

/** The check of a spec against what it declares (C-03). */

declare(strict_types=1);

namespace Wattwire;

/** Refuses a run that needs more than the spec declares, or a role that is not in $roles. */
function checkDeclaration(Spec $spec, array $roles): void
{
    $missing = array_diff(neededCapabilities($spec), $spec->declared_capabilities);
    if ($missing !== []) {
        $allowed = implode(', ', $spec->declared_capabilities);
        throw new Refused('found ' . implode(', ', $missing) . "; allowed: $allowed", UNSUPPORTED);
    }
    $declared = array_intersect($spec->declared_roles, $roles);
    if (!in_array($spec->role, $declared, true)) {
        $allowed = implode(', ', $declared);
        throw new Refused("found the role $spec->role; allowed: $allowed", UNSUPPORTED);
    }
    [$shortest, $longest] = declaredSizes($spec);
    $bytes = $spec->payload_bytes;
    if ($bytes < $shortest || $bytes > $longest) {
        throw new Refused("found $bytes; allowed: $shortest to $longest bytes", UNSUPPORTED);
    }
    foreach ($spec->allowed as $name => $allowed) {
        $value = $spec->settings[$name] ?? null;
        if (!in_array($value, $allowed, true)) {
            [$found, $values] = array_map(json_encode(...), [$value, $allowed]);
            throw new Refused("found $name = $found; allowed: $values", UNSUPPORTED);
        }
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

/** @return int[] the declared shortest and longest payload in bytes, for the spec's encoding */
function declaredSizes(Spec $spec): array
{
    if ($spec->payload_encoding === 'record') {
        return [0, $spec->declared_record_bytes_max];
    }
    $unit = $spec->payload_encoding === 'text' ? 2 : 1;
    $shortest = $spec->payload_literal === '' ? $unit * $spec->declared_payload_bytes_min : 0;
    return [$shortest, $spec->declared_payload_bytes_max];
}
