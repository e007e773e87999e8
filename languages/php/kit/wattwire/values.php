<?php

/** Reading a spec (C-02). The harness has checked the values: only wrong types are refused. */

declare(strict_types=1);

namespace Wattwire;

const SETTING = 'settings.';
const ALLOWED = 'declared.allowed.';
/** Lists of settings by the type of their values. */
const SETTING_LISTS = [
    'string' => 'declared.string_settings',
    'int' => 'declared.integer_settings',
    'bool' => 'declared.boolean_settings',
];

/** The values of a spec's JSON object. Spec takes them by key once, at the start. */
class Values
{
    public function __construct(private array $document)
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

    /** @return array<string, bool|int|string> the settings, all of which must be declared */
    public function settings(): array
    {
        $settings = [];
        foreach (SETTING_LISTS as $type => $list) {
            $is_type = fn (mixed $value): bool => get_debug_type($value) === $type;
            foreach ($this->strings($list) as $name) {
                $settings[$name] = $this->checked(SETTING . $name, $type, $is_type);
            }
        }
        $known = 'the settings ' . implode(', ', array_keys($settings));
        foreach ($this->withPrefix(SETTING) as $name => $value) {
            $this->checked(SETTING . $name, $known, fn () => isset($settings[$name]));
        }
        return $settings;
    }

    /** @return array<string, array> the supported values by setting, if there is a list */
    public function allowed(): array
    {
        $allowed = [];
        foreach ($this->withPrefix(ALLOWED) as $name => $value) {
            $allowed[$name] = $this->checked(ALLOWED . $name, 'list', is_array(...));
        }
        return $allowed;
    }

    /** @return array<string, mixed> the values of the keys with a prefix, by the rest of the key */
    private function withPrefix(string $prefix): array
    {
        $values = [];
        foreach ($this->document as $key => $value) {
            if (str_starts_with($key, $prefix)) {
                $values[substr($key, strlen($prefix))] = $value;
            }
        }
        return $values;
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

/** Returns the spec in a file. */
function readSpec(string $path): Spec
{
    $document = json_decode(file_get_contents($path));
    if (!is_object($document)) {
        throw new Refused("--spec: found $path; allowed: a file with a JSON object", BAD_SPEC);
    }
    $contract = $document->contract ?? null;
    if ($contract !== CONTRACT) {
        $found = json_encode($contract);
        throw new Refused("contract: found $found; allowed: " . CONTRACT, BAD_SPEC);
    }
    $spec = new Spec(new Values((array) $document));
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
