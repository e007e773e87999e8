<?php

/**
 * Making, checking and answering messages. Payload, Literal and Record have the same methods:
 *
 *   stamp($seq, $send_ns)                the message with this sequence and send time
 *   check($arrival)                      [verdict; sequence or null] of an arrival (C-21)
 *   reply($request)                      the reply to a request (C-23)
 *   isReplyTo($arrival, $message, $seq)  whether an arrival is the correct reply (C-23)
 *   bytes($message)                      its length (C-25)
 */

declare(strict_types=1);

namespace Wattwire;

require_once __DIR__ . '/fill.php';
require_once __DIR__ . '/payload.php';
require_once __DIR__ . '/record.php';

/** Returns the messages of a spec; $nodes are those whose sequences are this run's. */
function messagesOf(Spec $spec, array $nodes): Payload|Literal|Record
{
    if ($spec->payload_literal !== '') {
        return new Literal($spec);
    }
    return $spec->payload_encoding === 'record'
        ? new Record($spec, $nodes) : new Payload($spec, $nodes);
}
