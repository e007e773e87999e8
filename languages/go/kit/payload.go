package wattwire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

var little = binary.LittleEndian

// Payload is what a run's messages look like. A record is held as the bytes of its fields, in the
// order and of the sizes of C-32's table, so that all verification is of bytes.
type Payload struct {
	Template      []byte
	unit, trailer int   // bytes for a byte of the header (2: hexadecimal), and of the trailer
	first         int   // bytes of the fill that tell this run from others
	nodes         []any // who sends, float64 as JSON has them
	literal, full bool
}

// NewPayload makes the template from the spec's keys.
func NewPayload(seed, length int64, encoding, literal, verify string, nodes []any) *Payload {
	p := &Payload{[]byte(literal), 1, 0, 8, nodes, literal != "", verify == "full"}
	fill := make([]byte, 0, length+8)
	for z := uint64(seed); int64(len(fill)) < length; {
		z += 0x9E3779B97F4A7C15
		word := (z ^ z>>30) * 0xBF58476D1CE4E5B9
		word = (word ^ word>>27) * 0x94D049BB133111EB
		fill = little.AppendUint64(fill, word^word>>31)
	}
	switch encoding {
	case "text":
		p.unit, fill = 2, toText(fill)
	case "record":
		p.first, fill, length = 16, recordFill(fill, int(length-96)/16), length/16*16
	}
	if length >= int64(24*p.unit) {
		p.trailer = 8 * p.unit
	}
	if !p.literal {
		p.Template = append(make([]byte, 16*p.unit), fill...)[:length]
	}
	return p
}

func toText(stream []byte) (text []byte) {
	for _, value := range stream {
		text = append(text, alphabet[value%64])
	}
	return text
}

func recordFill(stream []byte, samples int) []byte {
	fill := toText(stream[:16])
	for j := 2; j < 9+samples; j++ {
		if j >= 9 {
			fill = little.AppendUint32(fill, uint32(j-9))
			fill = little.AppendUint32(fill, uint32(stream[8*j]))
		}
		value := float64(int32(little.Uint32(stream[8*j+4:]))) / 1024
		fill = little.AppendUint64(fill, math.Float64bits(value))
	}
	return append(fill, make([]byte, 8)...)
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

// Arrival is what became known of a message; Seq where it is Known.
type Arrival struct {
	Foreign, Corrupt, Known bool
	Seq                     uint64
}

// Check verifies an arrival (C-21, C-22, C-32).
func (p *Payload) Check(data []byte) Arrival {
	if p.literal {
		return Arrival{Corrupt: !bytes.Equal(data, p.Template), Known: true}
	}
	var head [32]byte
	at, end := copy(head[:16*p.unit], data), len(p.Template)-p.trailer
	count := at
	if p.unit == 2 {
		count, _ = hex.Decode(head[:], head[:at])
	}
	if count < 8 {
		return Arrival{Corrupt: true}
	}
	a := Arrival{Foreign: true, Known: true, Seq: little.Uint64(head[:])}
	for _, node := range p.nodes {
		a.Foreign = a.Foreign && node.(float64) != float64(a.Seq>>48)
	}
	for i := at; i < at+p.first && i < len(data) && i < end; i++ {
		a.Foreign = a.Foreign || data[i] != p.Template[i]
	}
	a.Corrupt = count < 16 || len(data) != len(p.Template) ||
		!bytes.Equal(data[:p.trailer], data[end:]) ||
		p.full && !bytes.Equal(data[at:end], p.Template[at:end])
	return a
}

// Sample is a record of the sample file, in the order of C-25.
type Sample struct {
	Seq                        uint64
	IntendedNs, BeginNs, EndNs int64
	Bytes                      uint32
	Peer                       uint16
	Kind, Flags                byte
}

// Recorder keeps samples in memory until the window is over (C-24, C-26).
type Recorder struct {
	Samples  []Sample
	Overflow int64
}

// NewRecorder makes room, and touches it, so that no page is fetched within the window.
func NewRecorder(capacity int64) *Recorder {
	samples := make([]Sample, capacity)
	for i := range samples {
		samples[i].Flags = 255
	}
	return &Recorder{Samples: samples[:0]}
}

// Add keeps a sample where there is room.
func (r *Recorder) Add(s Sample) {
	if len(r.Samples) == cap(r.Samples) {
		r.Overflow++
	} else {
		r.Samples = append(r.Samples, s)
	}
}

// Write writes the sample file.
func (r *Recorder) Write(path string, role byte, node uint16, seed int64) error {
	var file bytes.Buffer
	for _, part := range []any{[]byte("WATTWIRE\x01\x00\x40\x00\x28\x00"), role, byte(1), node,
		[6]byte{}, uint64(len(r.Samples)), r.Overflow, seed, [16]byte{}, r.Samples} {
		binary.Write(&file, little, part)
	}
	return os.WriteFile(path, file.Bytes(), 0o644)
}
