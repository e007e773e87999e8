<?php

/** Verdicts of an arrival (C-21); the third is CORRUPT, the record's flag. */

declare(strict_types=1);

namespace Wattwire;

require_once __DIR__ . '/constants.php';

const OK = 0;
const FOREIGN = -1;
