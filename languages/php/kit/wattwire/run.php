<?php

/** The process of a node. */

declare(strict_types=1);

namespace Wattwire;

/** Runs this node and ends the process; $roles: name => function that gets the kit. */
function run(array $roles): void
{
    set_error_handler(raise(...));
    try {
        [$spec_path, $out] = readArguments(array_slice($_SERVER['argv'], 1));
        $spec = readSpec($spec_path);
        checkDeclaration($spec, array_keys($roles));
        $kit = new Kit($spec);
        $roles[$spec->role]($kit);
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
