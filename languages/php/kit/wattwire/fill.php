<?php

/** The fill of payloads and records (C-19, C-20). */

declare(strict_types=1);

namespace Wattwire;

require_once __DIR__ . '/integers.php';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const FOUR_STEPS = 0x78DDE6E5FD29F054; // of splitmix64's seed

/** Returns the first $count bytes of the fill (C-19). */
function fillBytes(int $seed, int $count): string
{
    $hex = '';
    while (strlen($hex) < 2 * $count) {
        // PHP seeds this engine with four words of splitmix64.
        $hex .= implode((new \Random\Engine\Xoshiro256StarStar($seed))->__serialize()[1]);
        $seed = add($seed, FOUR_STEPS);
    }
    return substr(hex2bin($hex), 0, $count);
}

/** Returns the first $count characters of the fill (C-20). */
function fillText(int $seed, int $count): string
{
    $all_bytes = implode(array_map(chr(...), range(0, 255)));
    return strtr(fillBytes($seed, $count), $all_bytes, str_repeat(ALPHABET, 4));
}
