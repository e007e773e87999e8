package main

import (
	"encoding/binary"
	"math"
	"strings"
)

// Record is the nested message of C-32 in Go's own types, which encoding/gob carries.
type Record struct {
	Header struct {
		Seq    uint64
		SendNs int64
	}
	Name string
	Pose struct {
		Position    struct{ X, Y, Z float64 }
		Orientation struct{ X, Y, Z, W float64 }
	}
	Samples []Sample
	Trailer struct{ Seq uint64 }
}

// Sample is one of a record's samples.
type Sample struct {
	ID, State uint32
	Value     float64
}

var little = binary.LittleEndian

// axes are the numbers of a pose, in the order of C-32.
func (r *Record) axes() []*float64 {
	p, o := &r.Pose.Position, &r.Pose.Orientation
	return []*float64{&p.X, &p.Y, &p.Z, &o.X, &o.Y, &o.Z, &o.W}
}

// toRecord takes what the kit holds as bytes; fewer than 96 are a literal, which is the name of a
// record of zeros.
func toRecord(data []byte) Record {
	r := Record{Name: string(data)}
	if len(data) < 96 {
		return r
	}
	r.Header.Seq, r.Header.SendNs = little.Uint64(data), int64(little.Uint64(data[8:]))
	r.Name = strings.TrimRight(string(data[16:32]), "\x00")
	for i, axis := range r.axes() {
		*axis = math.Float64frombits(little.Uint64(data[32+8*i:]))
	}
	r.Samples = make([]Sample, (len(data)-96)/16)
	for i := range r.Samples {
		at := data[88+16*i:]
		value := math.Float64frombits(little.Uint64(at[8:]))
		r.Samples[i] = Sample{little.Uint32(at), little.Uint32(at[4:]), value}
	}
	r.Trailer.Seq = little.Uint64(data[len(data)-8:])
	return r
}

// bytes is the reverse. A name that is not of 16 characters is nobody's, so that it is left out.
func (r *Record) bytes() []byte {
	if r.Header.Seq == 0 && r.Header.SendNs == 0 && r.Trailer.Seq == 0 && len(r.Samples) == 0 {
		return []byte(r.Name) // of a literal
	}
	data := little.AppendUint64(make([]byte, 0, 96+16*len(r.Samples)), r.Header.Seq)
	data = little.AppendUint64(data, uint64(r.Header.SendNs))
	name := make([]byte, 16)
	if len(r.Name) == len(name) {
		copy(name, r.Name)
	}
	data = append(data, name...)
	for _, axis := range r.axes() {
		data = little.AppendUint64(data, math.Float64bits(*axis))
	}
	for _, s := range r.Samples {
		data = little.AppendUint32(little.AppendUint32(data, s.ID), s.State)
		data = little.AppendUint64(data, math.Float64bits(s.Value))
	}
	return little.AppendUint64(data, r.Trailer.Seq)
}
