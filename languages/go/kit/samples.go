package wattwire

import (
	"bufio"
	"encoding/binary"
	"os"
	"slices"
)

// samples stores the records of a node in memory that is allocated and touched before the window.
type samples struct {
	kept     []Sample
	overflow int64
}

func newSamples(capacity int64) *samples {
	touched := slices.Repeat([]Sample{{Kind: kindCall}}, int(capacity))
	return &samples{kept: touched[:0:capacity]}
}

func (s *samples) add(sample Sample) {
	if len(s.kept) == cap(s.kept) {
		s.overflow++
		return
	}
	s.kept = append(s.kept, sample)
}

// WriteSamples writes a sample file (C-24).
func WriteSamples(path string, role byte, node uint16, seed, overflow int64, kept []Sample) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	header := sampleHeader{
		Version:     fileVersion,
		HeaderBytes: headerBytes,
		RecordBytes: sampleBytes,
		Role:        role,
		Clock:       fileClock,
		Node:        node,
		Count:       uint64(len(kept)),
		Overflow:    uint64(overflow),
		Seed:        uint64(seed),
	}
	copy(header.Magic[:], fileMagic)
	out := bufio.NewWriter(file)
	for _, part := range []any{header, kept} {
		if err := binary.Write(out, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}
