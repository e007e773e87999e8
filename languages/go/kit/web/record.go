package web

import (
	"encoding/binary"
	"math"
	"strings"
)

var little = binary.LittleEndian

// Record is a record in the kit's form: the fields of C-32's table in the table's order and with
// their nominal sizes.
type Record []byte

// ReadRecord returns a record and its name. A message of fewer than 96 bytes is a literal: the name
// of a record of zeros.
func ReadRecord(message []byte) (r Record, name string) {
	if len(message) < 96 {
		return make(Record, 96), string(message)
	}
	return message, strings.TrimRight(string(message[16:32]), "\x00")
}

func (r Record) float(at int) float64 { return math.Float64frombits(little.Uint64(r[at:])) }

// Seq returns the header's sequence.
func (r Record) Seq() uint64 { return little.Uint64(r) }

// SendNs returns the send time.
func (r Record) SendNs() int64 { return int64(little.Uint64(r[8:])) }

// Axis returns one of the seven numbers of the pose: x, y, z of the position, then x, y, z, w of
// the orientation.
func (r Record) Axis(i int) float64 { return r.float(32 + 8*i) }

// Samples returns the number of samples.
func (r Record) Samples() int { return (len(r) - 96) / 16 }

// Sample returns the sample with the given index.
func (r Record) Sample(i int) (id, state uint32, value float64) {
	at := 88 + 16*i
	return little.Uint32(r[at:]), little.Uint32(r[at+4:]), r.float(at + 8)
}

// TrailerSeq returns the trailer's sequence.
func (r Record) TrailerSeq() uint64 { return little.Uint64(r[len(r)-8:]) }

// WriteRecord returns the beginning of a record with capacity for its samples.
func WriteRecord(seq uint64, sendNs int64, samples int, axes ...float64) Record {
	r := little.AppendUint64(make([]byte, 0, 96+16*samples), seq)
	r = append(little.AppendUint64(r, uint64(sendNs)), make([]byte, 16)...)
	for _, axis := range axes {
		r = little.AppendUint64(r, math.Float64bits(axis))
	}
	return r
}

// Add appends a sample.
func (r Record) Add(id, state uint32, value float64) Record {
	r = little.AppendUint32(little.AppendUint32(r, id), state)
	return little.AppendUint64(r, math.Float64bits(value))
}

// End completes the record and returns the kit's message. A record of zeros is a literal, for which
// End returns the name. Otherwise End omits a name that does not have 16 characters, which makes
// the record foreign.

func (r Record) End(name string, trailerSeq uint64) []byte {
	if r.Seq() == 0 && r.SendNs() == 0 && trailerSeq == 0 && len(r) == 88 {
		return []byte(name)
	}
	if len(name) == 16 {
		copy(r[16:], name)
	}
	return little.AppendUint64(r, trailerSeq)
}
