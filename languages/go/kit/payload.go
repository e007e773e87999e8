package wattwire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"slices"
	"sync/atomic"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

var little = binary.LittleEndian

// Payload is what a run's messages look like. A record is held as the bytes of C-32's table, so
// that only bytes are verified; a cell carries its values in its middleware's own types.
type Payload struct {
	Template             []byte
	unit, first, trailer int   // bytes: a header's byte, the fill that tells the run, the trailer
	nodes                []any // who sends, float64 as JSON has them
	literal, full        bool
	arrived              atomic.Uint64 // of a literal, which carries no sequence
}

// NewPayload makes the template of a spec.
func NewPayload(s Spec, nodes []any) *Payload {
	encoding, literal := s.String("payload.encoding"), s.String("payload.literal")
	shape := map[string][3]int{"bytes": {1, 8, 1}, "text": {2, 8, 1}, "record": {1, 16, 16}}[encoding]
	p := &Payload{Template: []byte(literal), unit: shape[0], first: shape[1], nodes: nodes,
		literal: literal != "", full: s["verify"] == "full"}
	if p.literal {
		return p
	}
	length, z, fill := int(s.Integer("payload.bytes")), uint64(s.Integer("payload.seed")), []byte{}
	for j := 0; len(fill) < length; j++ {
		z += 0x9E3779B97F4A7C15
		word := (z ^ z>>30) * 0xBF58476D1CE4E5B9
		word = (word ^ word>>27) * 0x94D049BB133111EB
		word ^= word >> 31
		if encoding == "text" || encoding == "record" && j < 2 { // a record's name
			for i := range 8 {
				fill = append(fill, alphabet[word>>(8*i)%64])
			}
			continue
		}
		if encoding == "record" && j >= 9 { // a sample's id and state
			fill = little.AppendUint64(fill, uint64(j-9)|word%256<<32)
		}
		if encoding == "record" {
			word = math.Float64bits(float64(int32(word>>32)) / 1024)
		}
		fill = little.AppendUint64(fill, word)
	}
	if length >= 24*p.unit {
		p.trailer = 8 * p.unit
	}
	p.Template = append(make([]byte, 16*p.unit), fill...)[:length/shape[2]*shape[2]]
	return p
}

// Stamp writes sequence and send time into a copy of the template.
func (p *Payload) Stamp(message []byte, seq uint64, sendNs int64) {
	var head, text [32]byte
	little.PutUint64(head[:], seq)
	little.PutUint64(head[8:], uint64(sendNs))
	if p.unit == 2 {
		hex.Encode(text[:], head[:16])
		head = text
	}
	if !p.literal {
		copy(message, head[:16*p.unit])
		copy(message[len(message)-p.trailer:], head[:])
	}
}

// Check gives ok, corrupt, foreign, unreadable or probe, and the sequence of what is readable (C-21).
func (p *Payload) Check(data []byte) (verdict string, seq uint64) {
	var head [32]byte
	at, end := copy(head[:16*p.unit], data), len(p.Template)-p.trailer
	count := at
	if p.unit == 2 {
		count, _ = hex.Decode(head[:], head[:at])
	}
	switch seq = little.Uint64(head[:]); {
	case p.literal && bytes.Equal(data, p.Template):
		return "ok", 65535<<48 | p.arrived.Add(1)
	case p.literal:
		return "corrupt", 65535<<48 | p.arrived.Add(1)
	case count < 8:
		return "unreadable", 0
	case !slices.Contains(p.nodes, any(float64(seq>>48))),
		!bytes.HasPrefix(data[at:], p.Template[at:max(at, min(at+p.first, end, len(data)))]):
		return "foreign", seq
	case seq&probe == probe:
		return "probe", seq
	case count < 16, len(data) != len(p.Template), !bytes.HasSuffix(data, data[:p.trailer]),
		p.full && !bytes.Equal(data[at:end], p.Template[at:end]):
		return "corrupt", seq
	}
	return "ok", seq
}

// Sample is a record of the sample file, in the order of C-25.
type Sample struct {
	Seq                        uint64
	IntendedNs, BeginNs, EndNs int64
	Bytes                      uint32
	Peer                       uint16
	Kind, Flags                byte
}

// WriteSamples writes the sample file (C-24).
func WriteSamples(path string, role byte, node uint16, seed, overflow int64, all []Sample) error {
	var file bytes.Buffer
	for _, part := range []any{[]byte("WATTWIRE\x01\x00\x40\x00\x28\x00"), role, byte(1), node,
		[6]byte{}, int64(len(all)), overflow, seed, [16]byte{}, all} {
		binary.Write(&file, little, part)
	}
	return os.WriteFile(path, file.Bytes(), 0o644)
}
