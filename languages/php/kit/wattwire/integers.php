<?php

/** Integers modulo 2^64: PHP's become floating-point numbers where they overflow. */

declare(strict_types=1);

namespace Wattwire;

/** Returns $a + $b modulo 2^64. */
function add(int $a, int $b): int
{
    $low = ($a & 0xFFFFFFFF) + ($b & 0xFFFFFFFF);
    return (($a >> 32) + ($b >> 32) + ($low >> 32)) << 32 | ($low & 0xFFFFFFFF);
}

/** Returns the value modulo 2^64 of a string of digits, which may exceed PHP_INT_MAX. */
function integer(string $digits): int
{
    $tens = (int) substr($digits, 0, -1);
    return add(add($tens << 3, $tens << 1), (int) substr($digits, -1));
}
