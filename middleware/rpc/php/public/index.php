<?php

/** JSON-RPC 2.0 over HTTP: checks the request and passes it to the dispatcher. */

declare(strict_types=1);

require __DIR__ . '/../dispatcher.php';

if ($_SERVER['DOCUMENT_URI'] !== '/index.php' || $_SERVER['REQUEST_URI'] !== '/rpc') {
    http_response_code(404);
} elseif ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    http_response_code(405);
    header('Allow: POST');
} else {
    header('Content-Type: application/json');
    $message = require $_SERVER['WATTWIRE_MESSAGE'];
    $answer = (new Dispatcher($message))->answer(file_get_contents('php://input'));
    echo json_encode($answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
}
