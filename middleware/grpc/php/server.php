<?php

/** Server and pong: one completion queue, read by the only thread of PHP. */

declare(strict_types=1);

use Wattwire\Kit;
use Wattwire\Refused;

final class Server
{
    private readonly FFI\CData $server;
    /** Number of a call => [memory, the buffer of its reply or null, state]. */
    private array $calls = [];
    private int $number = 0;
    private int $checked_ns = 0;
    private readonly string $method;

    public function __construct(private Kit $kit, private Core $core)
    {
        $this->method = method($kit->spec);
        $this->server = $core->c->grpc_server_create(null, null);
        $core->c->grpc_server_register_completion_queue($this->server, $core->queue, null);
    }

    /** Listens, and returns the port. */
    public function listen(): int
    {
        $host = $this->kit->spec->host_address;
        $credentials = $this->core->serverCredentials(
            $this->kit->spec->tls_certificate,
            $this->kit->spec->tls_key
        );
        $port = $this->core->c->grpc_server_add_http2_port(
            $this->server,
            "$host:0",
            $credentials
        );
        $port > 0 || throw new Refused("gRPC cannot listen on $host", 4);
        $this->core->c->grpc_server_start($this->server);
        $this->expect();
        return $port;
    }

    /** Requests the next call from the core. */
    private function expect(): void
    {
        $call = $this->core->call();
        $this->core->c->grpc_call_details_init(FFI::addr($call->details));
        $this->calls[++$this->number] = [$call, null, 'new'];
        $this->core->c->grpc_server_request_call(
            $this->server,
            FFI::addr($call->call),
            FFI::addr($call->details),
            FFI::addr($call->first),
            $this->core->queue,
            $this->core->queue,
            $this->number
        );
    }

    /** Handles one event: the parameter of Kit::drain(). */
    public function poll(int $until_ns): void
    {
        $event = $this->core->next(min($until_ns, hrtime(true) + CHECK_NS));
        if ($event !== null) {
            $this->handle(...$event);
        }
        if (hrtime(true) - $this->checked_ns >= CHECK_NS) {
            $this->kit->wait(0);
            $this->checked_ns = hrtime(true);
        }
    }

    private function handle(int $number, bool $success): void
    {
        [$call, $buffer, $state] = $this->calls[$number];
        if ($state === 'new') {
            $this->expect();
        }
        if (!$success || $state === 'answered') {
            $this->forget($number);
        } elseif ($state === 'new') {
            $this->calls[$number][2] = 'request';
            $this->start($call, $number, [SEND_INITIAL_METADATA => [],
                RECV_MESSAGE => [FFI::addr($call->received)]]);
        } else {
            $this->answer($number, $call);
        }
    }

    private function answer(int $number, FFI\CData $call): void
    {
        $known = $this->core->bytes($call->details->method) === "/wattwire.Calls/$this->method";
        $bytes = $call->received !== null ? $this->core->read($call->received) : null;
        $request = $known && $bytes !== null ? decode($this->method, $bytes) : null;
        $reply = $request !== null ? $this->kit->serve($request) : null;
        $close = [RECV_CLOSE_ON_SERVER => [FFI::addr($call->cancelled)]];
        $this->calls[$number][2] = 'answered';
        if ($reply === null) {
            $status = $known ? FAILED_PRECONDITION : UNIMPLEMENTED;
            $this->start(
                $call,
                $number,
                [SEND_STATUS_FROM_SERVER => [null, null, $status, null]] + $close
            );
            return;
        }
        $buffer = $this->core->buffer(encode($this->method, $reply));
        $this->calls[$number][1] = $buffer;
        $this->start($call, $number, [SEND_MESSAGE => [$buffer],
            SEND_STATUS_FROM_SERVER => [null, null, STATUS_OK, null]] + $close);
        $this->kit->served();
    }

    private function start(FFI\CData $call, int $number, array $operations): void
    {
        $this->core->start($call, $number, $this->core->prepare($call, $operations));
    }

    private function forget(int $number): void
    {
        [$call, $buffer] = $this->calls[$number];
        if ($buffer !== null) {
            $this->core->destroy($buffer);
        }
        $this->core->c->grpc_call_details_destroy(FFI::addr($call->details));
        $this->core->free($call);
        unset($this->calls[$number]);
    }
}

function server(Kit $kit): void
{
    $core = new Core();
    $server = new Server($kit, $core);
    $port = $server->listen();
    Wattwire\line('LISTENING', ['endpoints' => ["{$kit->spec->host_address}:$port"]]);
    ready($kit, $core, null, null);
    $kit->drain($server->poll(...));
}
