<?php

/** Client and ping: one channel, one call open. */

declare(strict_types=1);

use Wattwire\Kit;

// The longest wait of the core between two checks of standard input (C-08, C-09).
const CHECK_NS = 10_000_000;

final class Client
{
    private ?FFI\CData $channel = null;
    private readonly FFI\CData $credentials;
    private readonly FFI\CData $path;
    private readonly FFI\CData $call;
    private readonly string $method;
    private readonly bool $keeps;
    private readonly int $operations;
    private int $checked_ns = 0;

    public function __construct(private Kit $kit, private Core $core, private string $target)
    {
        $this->method = method($kit->spec);
        $this->keeps = $kit->spec->settings['keep_alive'] !== 'off';
        $this->credentials = $core->clientCredentials($kit->spec->tls_authority);
        $path = "/wattwire.Calls/$this->method";
        $this->path = $core->c->grpc_slice_from_copied_buffer($path, strlen($path));
        // One call is open at a time, so its memory and its operations are written once.
        $call = $this->call = $core->call();
        $this->operations = $core->prepare($call, [
            SEND_INITIAL_METADATA => [], SEND_MESSAGE => [], SEND_CLOSE_FROM_CLIENT => [],
            RECV_INITIAL_METADATA => [FFI::addr($call->first)],
            RECV_MESSAGE => [FFI::addr($call->received)],
            RECV_STATUS_ON_CLIENT => [FFI::addr($call->last), FFI::addr($call->status),
                FFI::addr($call->status_details), null],
        ]);
    }

    /** Makes a call: the parameter of Kit::calls(). */
    public function call(string|array $message, int $until_ns): string|array|null|false
    {
        $c = $this->core->c;
        $call = $this->call;
        $this->channel ??= $c->grpc_channel_create($this->target, $this->credentials, null);
        $call->call = $this->core->open($this->channel, $this->path, $until_ns);
        $buffer = $this->core->buffer(encode($this->method, $message));
        $call->ops[SEND_MESSAGE]->data[0] = $buffer; // the operation's index is its code
        $this->core->start($call, 1, $this->operations);
        $this->await();
        $reply = $this->reply();
        $this->core->destroy($buffer);
        $c->grpc_slice_unref($call->status_details);
        $c->grpc_call_unref($call->call);
        $call->first->count = $call->last->count = 0; // the next call reuses them
        if (!$this->keeps) {
            $c->grpc_channel_destroy($this->channel);
            $this->channel = null;
        }
        return $reply;
    }

    /** Waits until the call has ended: with a reply, at its deadline, or at STOP. */
    private function await(): void
    {
        for ($cancelled = false, $event = null; $event === null;) {
            $now_ns = hrtime(true);
            if ($now_ns - $this->checked_ns >= CHECK_NS) {
                $this->kit->wait(0);
                $this->checked_ns = $now_ns;
            }
            if ($this->kit->stopped && !$cancelled) {
                $this->core->c->grpc_call_cancel($this->call->call, null);
                $cancelled = true;
            }
            $event = $this->core->next($now_ns + CHECK_NS);
        }
    }

    private function reply(): string|array|null|false
    {
        $bytes = $this->call->received !== null ? $this->core->read($this->call->received) : '';
        $this->call->received = null;
        $status = $this->call->status;
        if ($status !== STATUS_OK && $status !== DEADLINE_EXCEEDED && !$this->kit->stopped) {
            $details = $this->core->bytes($this->call->status_details);
            $this->kit->reason = "gRPC status $status: $details";
        }
        return match (true) {
            $status === STATUS_OK => decode($this->method, $bytes),
            $status === DEADLINE_EXCEEDED || $this->kit->stopped => null,
            default => false,
        };
    }
}

function client(Kit $kit): void
{
    $core = new Core();
    $client = new Client($kit, $core, $kit->spec->peers_endpoints[0] ?? '');
    $discovery_ns = $kit->probe($client->call(...));
    ready($kit, $core, 1, $discovery_ns);
    $kit->calls($client->call(...));
}

function ready(Kit $kit, Core $core, ?int $matched, ?int $discovery_ns): void
{
    $tls = $kit->spec->tls_authority !== '' ? 'on' : 'none';
    $keep = $kit->spec->settings['keep_alive'] === 'off' ? 'off' : 'on';
    $kit->ready(
        $matched,
        $discovery_ns,
        ['name' => 'gRPC C core', 'version' => $core->version(),
            'build' => 'PHP ' . PHP_VERSION . ', FFI'],
        ['tls' => $tls, 'keep_alive' => $keep, 'server_workers' => 1, 'transport' => 'tcp/ipv4'],
        ['delivery' => 'reliable', 'ordering' => 'none', 'overload' => 'block'],
    );
}
