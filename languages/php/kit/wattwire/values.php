<?php

/** Reading a spec (C-02). The harness has checked the values: only wrong types are refused. */

declare(strict_types=1);

namespace Wattwire;

const SETTINGS_PREFIX = 'settings.';

/** The values of a spec's JSON object. Spec takes them by key once, at the start. */
class Values
{
    /** @param array<string, string> $setting_types name => bool, int or string */
    public function __construct(private array $document, private array $setting_types)
    {
    }

    public function string(string $key): string
    {
        return $this->checked($key, 'string', is_string(...));
    }

    public function integer(string $key): int
    {
        return $this->checked($key, 'integer', is_int(...));
    }

    /** @return string[] */
    public function strings(string $key): array
    {
        return $this->checked($key, 'list of strings', listOf(is_string(...)));
    }

    /** @return int[] */
    public function integers(string $key): array
    {
        return $this->checked($key, 'list of integers', listOf(is_int(...)));
    }

    /** @return array<string, bool|int|string> the settings, all of which the cell must know */
    public function settings(): array
    {
        $settings = [];
        foreach ($this->setting_types as $name => $type) {
            $key = SETTINGS_PREFIX . $name;
            $is_type = fn (mixed $value): bool => get_debug_type($value) === $type;
            $settings[$name] = $this->checked($key, $type, $is_type);
        }
        foreach ($this->document as $key => $value) {
            if (str_starts_with($key, SETTINGS_PREFIX)) {
                $is_known = isset($settings[substr($key, strlen(SETTINGS_PREFIX))]);
                $this->checked($key, 'no such setting', fn () => $is_known);
            }
        }
        return $settings;
    }

    private function checked(string $key, string $type, callable $is_type): mixed
    {
        $value = $this->document[$key] ?? null;
        if ($is_type($value)) {
            return $value;
        }
        throw new Refused("$key: found " . json_encode($value) . "; allowed: $type", BAD_SPEC);
    }
}

/** Returns a function that tests for a list whose items pass $is_type. */
function listOf(callable $is_type): callable
{
    return fn (mixed $value): bool => is_array($value) && array_filter($value, $is_type) === $value;
}

/** Returns the spec in a file; $setting_types: name => bool, int or string. */
function readSpec(string $path, array $setting_types): Spec
{
    $document = json_decode(file_get_contents($path));
    if (!is_object($document)) {
        throw new Refused("--spec: found $path; allowed: a file with a JSON object", BAD_SPEC);
    }
    $spec = new Spec(new Values((array) $document, $setting_types));
    if ($spec->contract !== CONTRACT) {
        $allowed = CONTRACT;
        throw new Refused("contract: found $spec->contract; allowed: $allowed", BAD_SPEC);
    }
    checkAddress('host.address', $spec->host_address);
    foreach ($spec->peers_addresses as $address) {
        checkAddress('peers.addresses', $address);
    }
    return $spec;
}

/** Refuses a text that is no IPv4 address (C-38). */
function checkAddress(string $key, string $address): void
{
    if (filter_var($address, FILTER_VALIDATE_IP, FILTER_FLAG_IPV4) === false) {
        $found = json_encode($address);
        throw new Refused("$key: found $found; allowed: an IPv4 address", BAD_SPEC);
    }
}
