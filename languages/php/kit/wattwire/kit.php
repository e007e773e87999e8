<?php

/** The kit for nodes in PHP: contract/CONTRACT.md has their duties, ../../README.md the API. */

declare(strict_types=1);

namespace Wattwire;

// CLOCK_MONOTONIC, before the rest is loaded: startup_ns counts from here (C-07).
define('Wattwire\BEGIN_NS', hrtime(true));

require __DIR__ . '/constants.php';
require __DIR__ . '/spec.php';
require __DIR__ . '/dialogue.php';
require __DIR__ . '/values.php';
require __DIR__ . '/declaration.php';
require __DIR__ . '/messages.php';
require __DIR__ . '/samples.php';
require __DIR__ . '/schedule.php';
require __DIR__ . '/sending.php';
require __DIR__ . '/arrivals.php';
require __DIR__ . '/run.php';

/** One node of one run. Times are ns of CLOCK_MONOTONIC. */
final class Kit
{
    use Dialogue;
    use Sending;
    use Arrivals;

    public readonly Payload|Literal|Record $message;
    private readonly Samples $samples;
    private readonly bool $is_literal;
    private readonly int $peer;
    private readonly int $spin_ns;
    private readonly int $timeout_ns;
    private readonly int $warmup_ns;
    private int $sent = 0;
    private int $received = 0;
    private int $foreign = 0;
    private int $corrupt = 0;
    private int $probes = 0;
    /** Whether this process counts arrivals: another process may answer them (C-34). */
    private bool $counts_arrivals = true;

    public function __construct(public readonly Spec $spec)
    {
        $peers = $spec->peers_nodes;
        // A sender's arrivals are the echoes of its own messages.
        $nodes = in_array($spec->role, SENDERS, true) ? [$spec->node] : $peers;
        $this->message = messagesOf($spec, $nodes);
        $this->samples = new Samples($spec->record_capacity);
        $this->is_literal = $spec->payload_literal !== '';
        $this->peer = count($peers) === 1 ? $peers[0] : UNKNOWN_PEER;
        $this->spin_ns = $spec->spin_ns;
        $this->timeout_ns = $spec->timeout_ns;
        $this->warmup_ns = $spec->warmup_ns;
    }

    /** Prints READY; adds the settings that $effective lacks, with their requested values. */
    public function ready(
        ?int $matched,
        ?int $discovery_ns,
        array $library,
        array $effective,
        array $guarantee
    ): void {
        line('READY', [
            'matched' => $matched, 'startup_ns' => hrtime(true) - BEGIN_NS,
            'discovery_ns' => $discovery_ns, 'library' => $library,
            'effective' => (object) ($effective + $this->spec->settings),
            'guarantee' => $guarantee,
        ]);
    }

    /** Leaves the counts of arrivals unknown in DONE. */
    public function leaveUncounted(): void
    {
        $this->counts_arrivals = false;
    }

    /** Writes the samples (C-24) and prints DONE. */
    public function finish(string $out): void
    {
        $spec = $this->spec;
        $role = ROLES[$spec->role];
        $this->samples->write("$out/samples.bin", $role, $spec->node, $spec->payload_seed);
        line('DONE', [
            'sent' => $this->sent,
            'received' => $this->counts_arrivals ? $this->received : null,
            'foreign' => $this->counts_arrivals ? $this->foreign : null,
            'corrupt' => $this->counts_arrivals ? $this->corrupt : null,
            'probes' => $this->probes,
            'recorded' => $this->samples->recorded,
            'overflow' => $this->samples->overflow,
        ]);
    }
}
