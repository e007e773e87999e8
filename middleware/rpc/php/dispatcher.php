<?php

/** The procedures and their errors: middleware/rpc/README.md defines them. */

declare(strict_types=1);

use Wattwire\Literal;
use Wattwire\Payload;
use Wattwire\Record;

final class RpcError extends Exception
{
}

final class Dispatcher
{
    public function __construct(private Payload|Literal|Record $message)
    {
    }

    /** Returns the response object to the text of a request. */
    public function answer(string $text): array
    {
        $id = null;
        try {
            $request = json_decode($text, false, 512, JSON_THROW_ON_ERROR);
            $this->check($request);
            $id = $request->id;
            return ['jsonrpc' => '2.0', 'id' => $id, 'result' => $this->dispatch($request)];
        } catch (JsonException) {
            $error = ['code' => -32700, 'message' => 'Parse error'];
        } catch (RpcError $refused) {
            $error = ['code' => $refused->getCode(), 'message' => $refused->getMessage()];
        }
        return ['jsonrpc' => '2.0', 'id' => $id, 'error' => $error];
    }

    private function check(mixed $request): void
    {
        $good = is_object($request) && ($request->jsonrpc ?? null) === '2.0'
            && is_string($request->method ?? null) && property_exists($request, 'id');
        $good || throw new RpcError('Invalid Request', -32600);
    }

    private function dispatch(object $request): string|array
    {
        $procedures = ['echo' => $this->echoText(...), 'echo_record' => $this->echoRecord(...)];
        $procedure = $procedures[$request->method]
            ?? throw new RpcError('Method not found', -32601);
        $params = $request->params ?? null;
        if (!is_array($params) || count($params) !== 1) {
            throw new RpcError('Invalid params', -32602);
        }
        return $procedure($params[0]);
    }

    private function echoText(mixed $text): string
    {
        if (!is_string($text) || $this->message instanceof Record) {
            throw new RpcError('Invalid params', -32602);
        }
        return $this->reply($text);
    }

    private function echoRecord(mixed $param): array
    {
        $is_record = $this->message instanceof Record;
        $record = $is_record ? Record::decode(json_encode($param)) : [];
        if ($record === []) {
            throw new RpcError('Invalid params', -32602);
        }
        return $this->reply($record);
    }

    private function reply(string|array $arrival): string|array
    {
        if ($this->message->check($arrival)[0] === Wattwire\FOREIGN) {
            throw new RpcError('of another run', -32000);
        }
        return $this->message->reply($arrival);
    }
}
