<?php

/** The application: a Slim route that answers a message (clauses C-21, C-23 and C-34). */

declare(strict_types=1);

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Wattwire\Record;

require 'Slim/autoload.php';

$app = new Slim\App();
$app->post('/echo', function (ServerRequestInterface $request, ResponseInterface $response) {
    $message = require $_SERVER['WATTWIRE_MESSAGE'];
    $record = $message instanceof Record;
    $body = (string) $request->getBody();
    $arrival = $record ? Record::decode($body) : $body;
    if ($arrival === []) {
        return $response->withStatus(400);
    }
    if ($message->check($arrival)[0] === Wattwire\FOREIGN) {
        return $response->withStatus(409);
    }
    $reply = $message->reply($arrival);
    $response->getBody()->write($record ? json_encode($reply) : $reply);
    return $response->withHeader('Content-Type', $request->getHeaderLine('Content-Type'));
});
$app->run();
