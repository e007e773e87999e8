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
	recordStepBytes   = 16 // size of a sample: id, state, value
	recordBytesMin    = 96
	recordFirstSample = 9 // the first sample's word (C-32), after those of name and pose
)

// Verdict classifies an arrival (C-21).
type Verdict int

// Verdicts of an arrival. An Unreadable arrival is corrupt and has no readable sequence.
const (
	Valid Verdict = iota
	Corrupt
	Foreign
	Unreadable
	Probe
)

// Payload creates, checks and answers the messages of one run. Messages are bytes. A record's bytes
// are the fields of C-32's table in the table's order and with their nominal sizes.
type Payload struct {
	template     []byte // without sequence and send time
	literalReply []byte

	isLiteral, isText, isRecord bool
	checksFill                  bool // verify = full

	wordBytes    int // size of the sequence, and of the send time
	headBytes    int // size of the header
	tokenBytes   int // size of the part of the fill that identifies this run's messages
	trailerBytes int
	fillEnd      int

	reply    string
	senders  []uint16
	arrivals atomic.Uint64 // numbers literals, which carry no sequence
}

// NewPayload creates the payload of a spec; senders are the nodes whose messages arrive.
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

// New returns a message that can be stamped.
func (p *Payload) New() []byte { return slices.Clone(p.template) }

// fill returns an empty header, followed by bytes, characters or the fields of a record.
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

// splitmix64 generates the words of C-19.
type splitmix64 struct{ state uint64 }

func (s *splitmix64) next() uint64 {
	s.state += 0x9E3779B97F4A7C15
	z := s.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Stamp writes sequence and send time into a message; it does not change literals.
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

// Check returns an arrival's verdict and sequence.
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

// sequence returns the sequence, and the number of the header's 16 bytes that are present.
func (p *Payload) sequence(data []byte) (seq uint64, bytesRead int) {
	var head [16]byte
	if p.isText {
		// A character that is not a digit ends the header, like the end of the data.
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

// hasFill reports whether the fill of data with the correct length is correct.
func (p *Payload) hasFill(data []byte) bool {
	fill := p.template[p.headBytes:p.fillEnd]
	return bytes.Equal(data[p.headBytes:p.fillEnd], fill)
}

// Reply returns the reply to a request (C-23). It may reuse and overwrite the request's bytes.
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

// isReply reports whether a reply answers the message with this sequence.
func (p *Payload) isReply(reply, message []byte, seq uint64) bool {
	switch {
	case p.reply == "echo" && !p.isLiteral:
		verdict, replySeq := p.Check(reply)
		return verdict == Valid && replySeq == seq
	case p.reply == "ack" && p.isRecord:
		return len(reply) == recordBytesMin && p.hasTrailer(reply) &&
			bytes.Equal(reply[:p.headBytes], message[:p.headBytes]) &&
			isZero(reply[p.headBytes:recordBytesMin-8])
	}
	return bytes.Equal(reply, p.Reply(message)) // these kinds do not overwrite the message
}

func isZero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}
