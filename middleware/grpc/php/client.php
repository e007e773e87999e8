<?php
/** Client and ping: one channel, one call open. */
declare(strict_types=1);

use Wattwire\{Kit, Refused};

// How long the core may wait before standard input is looked at (C-08, C-09).
const LOOK_NS = 10_000_000;

final class Client {
    private ?FFI\CData $channel = null;
    private readonly string $method;

    public function __construct(private Kit $kit, private Core $core, private string $target) {
        $this->method = method($kit->spec);
    }

    /** As Kit::calls() wants it. */
    public function call(string|array $message, int $until_ns): string|array|null|false {
        $c = $this->core->c;
        $this->channel ??= $c->grpc_channel_create($this->target,
            $c->grpc_insecure_credentials_create(), null);
        $name = "/wattwire.Calls/$this->method";
        $path = $c->grpc_slice_from_copied_buffer($name, strlen($name));
        $call = $this->core->call();
        $call->call = $c->grpc_channel_create_call($this->channel, null, PROPAGATE_DEFAULTS,
            $this->core->queue, $path, null, $this->core->time($until_ns), null);
        $buffer = $this->core->buffer(encode($this->method, $message));
        $this->core->start($call, 1, [
            SEND_INITIAL_METADATA => [], SEND_MESSAGE => [$buffer], SEND_CLOSE_FROM_CLIENT => [],
            RECV_INITIAL_METADATA => [FFI::addr($call->first)],
            RECV_MESSAGE => [FFI::addr($call->received)],
            RECV_STATUS_ON_CLIENT => [FFI::addr($call->last), FFI::addr($call->status),
                FFI::addr($call->status_details), null],
        ]);
        $this->await($call);
        $reply = $this->reply($call);
        $this->core->destroy($buffer);
        $c->grpc_slice_unref($path);
        $c->grpc_slice_unref($call->status_details);
        $this->core->free($call);
        if ($this->kit->spec['settings.keep_alive'] === 'off') {
            $c->grpc_channel_destroy($this->channel);
            $this->channel = null;
        }
        return $reply;
    }

    /** Until the call has ended, as it does at its deadline, or at STOP. */
    private function await(FFI\CData $call): void {
        static $looked_ns = 0;
        $cancelled = false;
        do {
            $event = $this->core->next(hrtime(true) + LOOK_NS);
            if (hrtime(true) - $looked_ns >= LOOK_NS) {
                $this->kit->wait(0);
                $looked_ns = hrtime(true);
            }
            if ($event === null && $this->kit->stopped && !$cancelled) {
                $this->core->c->grpc_call_cancel($call->call, null);
                $cancelled = true;
            }
        } while ($event === null);
    }

    private function reply(FFI\CData $call): string|array|null|false {
        $bytes = $call->received !== null ? $this->core->read($call->received) : '';
        return match (true) {
            $call->status === STATUS_OK => decode($this->method, $bytes),
            $call->status === DEADLINE_EXCEEDED || $this->kit->stopped => null,
            $call->status === UNAVAILABLE => false,
            default => $this->method === 'Record' ? [] : '',
        };
    }
}

/** Ends the node with 3 where a setting has a value that node.toml excludes. */
function checkSettings(Kit $kit): void {
    $kit->spec['settings.tls'] && throw new Refused('settings.tls: allowed is false', 3);
    $kit->spec['settings.server_workers'] > 1
        && throw new Refused('settings.server_workers: allowed are 0 and 1', 3);
}

function client(Kit $kit): void {
    checkSettings($kit);
    $core = new Core();
    $client = new Client($kit, $core, $kit->spec['peers.endpoints'][0] ?? '');
    $discovery_ns = $kit->probe($client->call(...));
    ready($kit, $core, 1, $discovery_ns);
    $kit->calls($client->call(...));
}

function ready(Kit $kit, Core $core, ?int $matched, ?int $discovery_ns): void {
    $keep = $kit->spec['settings.keep_alive'] === 'off' ? 'off' : 'on';
    Wattwire\line('READY', [
        'matched' => $matched, 'startup_ns' => hrtime(true) - Wattwire\BEGIN_NS,
        'discovery_ns' => $discovery_ns,
        'library' => ['name' => 'gRPC C core', 'version' => $core->version(),
            'build' => 'PHP ' . PHP_VERSION . ', FFI'],
        'effective' => ['tls' => false, 'keep_alive' => $keep, 'server_workers' => 1,
            'transport' => 'tcp/ipv4'],
        'guarantee' => ['delivery' => 'reliable', 'ordering' => 'none', 'overload' => 'block'],
    ]);
}
