<?php

/** The process of a node. */

declare(strict_types=1);

namespace Wattwire;

/** Runs this node and ends the process: languages/php/README.md describes the parameters. */
function run(array $roles, array $settings, array $capabilities, array $bounds): void
{
    set_error_handler(raise(...));
    try {
        [$spec_path, $out] = readArguments(array_slice($_SERVER['argv'], 1));
        $spec = readSpec($spec_path, $settings);
        checkCapabilities($spec, $capabilities, $bounds);
        $role = $roles[$spec->role]
            ?? throw new Refused("there is no role $spec->role", UNSUPPORTED);
        $kit = new Kit($spec);
        $role($kit);
        $kit->finish($out);
    } catch (\Throwable $error) {
        fwrite(STDERR, "$error\n");
        $code = $error instanceof Refused ? $error->getCode() : MIDDLEWARE_FAILED;
        $reason = $error->getMessage() ?: $error::class;
        $key = $code === BAD_SPEC ? strstr($reason, ':', true) : null;
        line('ERROR', ['code' => $code, 'key' => $key, 'reason' => $reason]);
        exit($code);
    }
}

/** Throws warnings that are not suppressed. */
function raise(int $level, string $text, string $file, int $line): bool
{
    if (error_reporting() & $level) {
        throw new \ErrorException($text, 0, 1, $file, $line);
    }
    return true;
}

/** Returns the paths of the spec and of the output folder (C-01). */
function readArguments(array $words): array
{
    if (count($words) !== 4 || $words[0] !== '--spec' || $words[2] !== '--out') {
        throw new Refused('command line: allowed: --spec FILE --out DIR', BAD_SPEC);
    }
    return [$words[1], $words[3]];
}
