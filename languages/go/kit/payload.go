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

// Payload is what a run's messages look like; a record's are the bytes of C-32's table.
type Payload struct {
	Template                   []byte
	word, head, trailer, first int   // bytes: a sequence, header, trailer, what tells the run
	nodes                      []any // who sends, float64 as JSON has them
	full                       bool
	arrived                    atomic.Uint64 // literals carry no sequence
}

// NewPayload makes the template of a spec.
func NewPayload(s Spec, nodes []any) *Payload {
	length, kind := int(s.Integer("payload.bytes")), s.String("payload.encoding")
	shape := map[string][3]int{"bytes": {8, 8, 1}, "text": {16, 8, 1}, "record": {8, 16, 16}}[kind]
	p := &Payload{word: shape[0], first: shape[1], nodes: nodes, full: s["verify"] == "full"}
	if p.Template = []byte(s.String("payload.literal")); len(p.Template) > 0 {
		return p
	}
	z, fill := uint64(s.Integer("payload.seed")), make([]byte, 2*p.word, length+8)
	for j := 0; len(fill) < length; j++ {
		z += 0x9E3779B97F4A7C15
		word := (z ^ z>>30) * 0xBF58476D1CE4E5B9
		word = (word ^ word>>27) * 0x94D049BB133111EB
		word ^= word >> 31
		if kind == "text" || kind == "record" && j < 2 { // a record's name
			for i := range 8 {
				fill = append(fill, alphabet[word>>(8*i)%64])
			}
			continue
		}
		if kind == "record" && j >= 9 { // a sample's id and state
			fill = binary.LittleEndian.AppendUint64(fill, uint64(j-9)|word%256<<32)
		}
		if kind == "record" {
			word = math.Float64bits(float64(int32(word>>32)) / 1024)
		}
		fill = binary.LittleEndian.AppendUint64(fill, word)
	}
	if p.head = 2 * p.word; length >= 3*p.word {
		p.trailer = p.word
	}
	p.Template = fill[:length/shape[2]*shape[2]]
	return p
}

// Stamp writes sequence and send time; a literal has no place for them.
func (p *Payload) Stamp(message []byte, seq uint64, sendNs int64) {
	head := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), seq)
	head = binary.LittleEndian.AppendUint64(head, uint64(sendNs))
	if p.word == 16 {
		head = hex.AppendEncode(make([]byte, 0, 32), head)
	}
	copy(message, head[:p.head])
	copy(message[len(message)-p.trailer:], head)
}

// Check says ok, corrupt, foreign, unreadable or probe (C-21), and the sequence.
func (p *Payload) Check(data []byte) (verdict string, seq uint64) {
	var head [32]byte
	at, end := copy(head[:p.head], data), len(p.Template)-p.trailer
	count := at
	if p.word == 16 {
		count, _ = hex.Decode(head[:], head[:at])
	}
	switch seq = binary.LittleEndian.Uint64(head[:]); {
	case p.head == 0 && bytes.Equal(data, p.Template):
		return "ok", 65535<<48 | p.arrived.Add(1)
	case p.head == 0:
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
func WriteSamples(path string, role byte, node uint16, seed, overflow int64, all []Sample) {
	var file bytes.Buffer
	for _, part := range []any{[]byte("WATTWIRE\x01\x00\x40\x00\x28\x00"), role, byte(1), node,
		[6]byte{}, int64(len(all)), overflow, seed, [16]byte{}, all} {
		binary.Write(&file, binary.LittleEndian, part)
	}
	Must(os.WriteFile(path, file.Bytes(), 0o644) == nil, 4, nil, "cannot write %s", path)
}
