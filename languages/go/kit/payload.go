package wattwire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"sync/atomic"
)

const (
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

	recordNameBytes   = 16
	recordStepBytes   = 16 // of each sample: id, state, value
	recordBytesMin    = 96
	recordFirstSample = 9 // its word in the stream of C-32; those before are name and pose
)

// Verdict says what an arrival is (C-21).
type Verdict int

// An arrival is Unreadable where no sequence can be read from it, which is a kind of corrupt.
const (
	Valid Verdict = iota
	Corrupt
	Foreign
	Unreadable
	Probe
)

// Payload makes, checks and answers the messages of one run. Messages are bytes; those of a record
// are the fields of C-32's table in its order and of their nominal sizes.
type Payload struct {
	template     []byte // without sequence and send time
	literalReply []byte

	isLiteral, isText, isRecord bool
	checksFill                  bool // verify = full

	wordBytes    int // of the sequence, and of the send time
	headBytes    int // of both
	tokenBytes   int // of the fill that tells this run's messages from those of others
	trailerBytes int
	fillEnd      int

	reply    string
	senders  []uint16
	arrivals atomic.Uint64 // the sequence of literals, which carry none
}

// NewPayload makes the payload that a spec describes; the senders are those of what arrives.
func NewPayload(spec *Spec, senders []int64) *Payload {
	p := &Payload{
		literalReply: []byte(spec.ReplyLiteral),
		isLiteral:    spec.PayloadLiteral != "",
		isText:       spec.PayloadEncoding == "text",
		isRecord:     spec.PayloadEncoding == "record",
		checksFill:   spec.Verify == "full",
		wordBytes:    8,
		tokenBytes:   8,
		reply:        spec.Reply,
	}
	for _, node := range senders {
		p.senders = append(p.senders, uint16(node))
	}
	if p.isText {
		p.wordBytes = 16
	}
	if p.isRecord {
		p.tokenBytes = recordNameBytes
	}
	if p.isLiteral {
		p.template = []byte(spec.PayloadLiteral)
		return p
	}
	length := int(spec.PayloadBytes)
	p.headBytes = 2 * p.wordBytes
	if length >= 3*p.wordBytes {
		p.trailerBytes = p.wordBytes
	}
	p.template = p.fill(uint64(spec.PayloadSeed), length)
	p.fillEnd = len(p.template) - p.trailerBytes
	return p
}

// New returns a message to be stamped.
func (p *Payload) New() []byte { return slices.Clone(p.template) }

// isTooShort says whether the header of C-19 does not fit, which this kit cannot carry (C-03).
func (p *Payload) isTooShort() bool { return len(p.template) < p.headBytes }

// fill returns an empty header and what follows it, as bytes, characters or the fields of a record.
func (p *Payload) fill(seed uint64, length int) []byte {
	if p.isRecord {
		length -= length % recordStepBytes
	}
	data := make([]byte, p.headBytes, length+recordStepBytes)
	words := splitmix64{seed}
	for j := 0; len(data) < length; j++ {
		word := words.next()
		switch {
		case p.isText, p.isRecord && len(data) < p.headBytes+recordNameBytes:
			for i := range 8 {
				data = append(data, alphabet[word>>(8*i)%64])
			}
		case p.isRecord:
			if j >= recordFirstSample {
				id, state := uint32(j-recordFirstSample), uint32(word%256)
				data = binary.LittleEndian.AppendUint32(data, id)
				data = binary.LittleEndian.AppendUint32(data, state)
			}
			value := float64(int32(word>>32)) / 1024
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(value))
		default:
			data = binary.LittleEndian.AppendUint64(data, word)
		}
	}
	return data[:length]
}

// splitmix64 is the stream of C-19.
type splitmix64 struct{ state uint64 }

func (s *splitmix64) next() uint64 {
	s.state += 0x9E3779B97F4A7C15
	z := s.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Stamp writes sequence and send time into a message; a literal has no place for them.
func (p *Payload) Stamp(message []byte, seq uint64, sendNs int64) {
	if p.isLiteral {
		return
	}
	if p.isText {
		var head [16]byte
		binary.LittleEndian.PutUint64(head[:], seq)
		binary.LittleEndian.PutUint64(head[8:], uint64(sendNs))
		hex.Encode(message, head[:])
	} else {
		binary.LittleEndian.PutUint64(message, seq)
		binary.LittleEndian.PutUint64(message[8:], uint64(sendNs))
	}
	copy(message[len(message)-p.trailerBytes:], message)
}

// Check returns what an arrival is, and its sequence.
func (p *Payload) Check(data []byte) (Verdict, uint64) {
	if p.isLiteral {
		seq := unknownPeer<<48 | p.arrivals.Add(1)
		if bytes.Equal(data, p.template) {
			return Valid, seq
		}
		return Corrupt, seq
	}
	seq, headBytesRead := p.sequence(data)
	switch {
	case headBytesRead < 8:
		return Unreadable, 0
	case !slices.Contains(p.senders, uint16(seq>>48)), !p.hasToken(data):
		return Foreign, seq
	case seq&probeCounter == probeCounter:
		return Probe, seq
	case headBytesRead < 16, len(data) != len(p.template), !p.hasTrailer(data),
		p.checksFill && !p.hasFill(data):
		return Corrupt, seq
	}
	return Valid, seq
}

// sequence reads the sequence, and says how many of the header's 16 bytes are there.
func (p *Payload) sequence(data []byte) (seq uint64, bytesRead int) {
	var head [16]byte
	if p.isText {
		// What is no digit ends the header, as the end of the data does.
		bytesRead, _ = hex.Decode(head[:], data[:min(p.headBytes, len(data))])
	} else {
		bytesRead = copy(head[:], data)
	}
	return binary.LittleEndian.Uint64(head[:]), bytesRead
}

func (p *Payload) hasToken(data []byte) bool {
	begin := min(p.headBytes, len(data))
	end := max(begin, min(begin+p.tokenBytes, p.fillEnd, len(data)))
	return bytes.Equal(data[begin:end], p.template[begin:end])
}

func (p *Payload) hasTrailer(data []byte) bool {
	return bytes.HasSuffix(data, data[:p.trailerBytes])
}

// hasFill compares data of the right length.
func (p *Payload) hasFill(data []byte) bool {
	fill := p.template[p.headBytes:p.fillEnd]
	return bytes.Equal(data[p.headBytes:p.fillEnd], fill)
}

// Reply returns the reply to a request (C-23); it may be the request itself, written over.
func (p *Payload) Reply(request []byte) []byte {
	switch {
	case p.reply == "literal":
		return p.literalReply
	case p.reply == "ack" && p.isRecord && len(request) >= recordBytesMin:
		ack := request[:recordBytesMin]
		trailer := copy(ack[recordBytesMin-8:], request[len(request)-8:])
		clear(ack[p.headBytes : recordBytesMin-trailer])
		return ack
	case p.reply == "ack":
		return request[:min(p.wordBytes, len(request))]
	}
	return request
}

// isReply says whether a reply is the one to a message with that sequence.
func (p *Payload) isReply(reply, message []byte, seq uint64) bool {
	switch {
	case p.reply == "echo" && !p.isLiteral:
		verdict, found := p.Check(reply)
		return verdict == Valid && found == seq
	case p.reply == "ack" && p.isRecord:
		return len(reply) == recordBytesMin && p.hasTrailer(reply) &&
			bytes.Equal(reply[:p.headBytes], message[:p.headBytes]) &&
			isZero(reply[p.headBytes:recordBytesMin-8])
	}
	return bytes.Equal(reply, p.Reply(message)) // of these kinds none is written over
}

func isZero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}
