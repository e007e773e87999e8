<?php

/** Records in memory during the window, and their file after it (C-24 to C-26). */

declare(strict_types=1);

namespace Wattwire;

final class Samples
{
    public int $recorded = 0;
    public int $overflow = 0;
    /** @var resource the file after its header */
    private $records;

    public function __construct(private readonly int $capacity)
    {
        $this->records = fopen('php://memory', 'w+b');
        fwrite($this->records, str_repeat("\0", RECORD_BYTES * $capacity));
        rewind($this->records); // the window touches no new page
    }

    public function add(
        int $seq,
        int $intended_ns,
        int $begin_ns,
        int $end_ns,
        int $bytes,
        int $peer,
        int $kind,
        int $flags,
    ): void {
        if ($this->recorded === $this->capacity) {
            $this->overflow++;
            return;
        }
        $this->recorded++;
        fwrite($this->records, pack(
            RECORD_FORMAT,
            $seq,
            $intended_ns,
            $begin_ns,
            $end_ns,
            $bytes,
            $peer,
            $kind,
            $flags,
        ));
    }

    public function write(string $path, int $role, int $node, int $seed): void
    {
        $sizes = [HEADER_BYTES, RECORD_BYTES];
        $counts = [$this->recorded, $this->overflow, $seed];
        $header = [FILE_MAGIC, FILE_VERSION, ...$sizes, $role, FILE_CLOCK, $node, 0, 0, ...$counts];
        rewind($this->records);
        $records = stream_get_contents($this->records, RECORD_BYTES * $this->recorded);
        file_put_contents($path, pack(HEADER_FORMAT, ...$header) . $records);
    }
}
