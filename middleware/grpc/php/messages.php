<?php

/** Conversion between the kit's messages and the generated classes of idl/wattwire.proto. */

declare(strict_types=1);

use Wattwire\BytesPayload;
use Wattwire\Header;
use Wattwire\Orientation;
use Wattwire\Pose;
use Wattwire\Position;
use Wattwire\RecordPayload;
use Wattwire\Sample;
use Wattwire\Spec;
use Wattwire\TextPayload;
use Wattwire\Trailer;

spl_autoload_register(function (string $class): void {
    $path = stream_resolve_include_path(strtr($class, '\\', '/') . '.php');
    $path === false || require $path;
});

/** Returns the name of the service's method for the spec's payload. */
function method(Spec $spec): string
{
    $names = ['bytes' => 'Bytes', 'text' => 'Text', 'record' => 'Record'];
    return $spec->payload_literal !== '' ? 'Text' : $names[$spec->payload_encoding];
}

function encode(string $method, string|array $message): string
{
    if ($method === 'Record') {
        return toRecord($message)->serializeToString();
    }
    $payload = $method === 'Bytes' ? new BytesPayload() : new TextPayload();
    return $payload->setData($message)->serializeToString();
}

/** Returns the kit's message; '' or [] for unreadable bytes. */
function decode(string $method, string $bytes): string|array
{
    $class = "Wattwire\\{$method}Payload";
    $payload = new $class();
    try {
        $payload->mergeFromString($bytes);
    } catch (Exception) {
        return $method === 'Record' ? [] : '';
    }
    return $method === 'Record' ? fromRecord($payload) : $payload->getData();
}

function toRecord(array $record): RecordPayload
{
    $p = $record['pose']['position'];
    $o = $record['pose']['orientation'];
    $header = (new Header())->setSeq(Wattwire\integer($record['header']['seq']))
        ->setSendNs((int) $record['header']['send_ns']);
    $position = (new Position())->setX($p['x'])->setY($p['y'])->setZ($p['z']);
    $orientation = (new Orientation())->setX($o['x'])->setY($o['y'])->setZ($o['z'])->setW($o['w']);
    $sample = fn (array $s): Sample => (new Sample())->setId($s['id'])->setState($s['state'])
        ->setValue($s['value']);
    return (new RecordPayload())->setHeader($header)->setName($record['name'])
        ->setPose((new Pose())->setPosition($position)->setOrientation($orientation))
        ->setSamples(array_map($sample, $record['samples']))
        ->setTrailer((new Trailer())->setSeq(Wattwire\integer($record['trailer']['seq'])));
}

function fromRecord(RecordPayload $payload): array
{
    $header = $payload->getHeader() ?? new Header();
    $p = $payload->getPose()?->getPosition() ?? new Position();
    $o = $payload->getPose()?->getOrientation() ?? new Orientation();
    $samples = [];
    foreach ($payload->getSamples() as $s) {
        $samples[] = ['id' => $s->getId(), 'state' => $s->getState(), 'value' => $s->getValue()];
    }
    return [
        'header' => ['seq' => sprintf('%u', $header->getSeq()),
            'send_ns' => (string) $header->getSendNs()],
        'name' => $payload->getName(),
        'pose' => ['position' => ['x' => $p->getX(), 'y' => $p->getY(), 'z' => $p->getZ()],
            'orientation' => ['x' => $o->getX(), 'y' => $o->getY(), 'z' => $o->getZ(),
                'w' => $o->getW()]],
        'samples' => $samples,
        'trailer' => ['seq' => sprintf('%u', ($payload->getTrailer() ?? new Trailer())->getSeq())],
    ];
}
