package main

import (
	"encoding/binary"
	"math"
	"strings"

	"node/pb"
)

var little = binary.LittleEndian

// toRecord takes what the kit holds as bytes; fewer than 96 are a literal, which is the name of a
// record of zeros.
func toRecord(data []byte) *pb.RecordPayload {
	name := string(data)
	if len(data) < 96 {
		data = make([]byte, 96)
	} else {
		name = strings.TrimRight(string(data[16:32]), "\x00")
	}
	float := func(at int) float64 { return math.Float64frombits(little.Uint64(data[at:])) }
	samples := make([]pb.Sample, (len(data)-96)/16) // in one piece
	r := &pb.RecordPayload{
		Header: &pb.Header{Seq: little.Uint64(data), SendNs: int64(little.Uint64(data[8:]))},
		Name:   name,
		Pose: &pb.Pose{
			Position:    &pb.Position{X: float(32), Y: float(40), Z: float(48)},
			Orientation: &pb.Orientation{X: float(56), Y: float(64), Z: float(72), W: float(80)},
		},
		Samples: make([]*pb.Sample, len(samples)),
		Trailer: &pb.Trailer{Seq: little.Uint64(data[len(data)-8:])},
	}
	for i := range samples {
		at := 88 + 16*i
		r.Samples[i] = &samples[i]
		samples[i].Id, samples[i].State = little.Uint32(data[at:]), little.Uint32(data[at+4:])
		samples[i].Value = float(at + 8)
	}
	return r
}

// toBytes is the reverse. A name that is not of 16 characters is nobody's, so that it is left out.
func toBytes(r *pb.RecordPayload) []byte {
	h, p, o := r.GetHeader(), r.GetPose().GetPosition(), r.GetPose().GetOrientation()
	trailer := r.GetTrailer().GetSeq()
	if h.GetSeq() == 0 && h.GetSendNs() == 0 && trailer == 0 && len(r.GetSamples()) == 0 {
		return []byte(r.GetName()) // of a literal
	}
	data := little.AppendUint64(make([]byte, 0, 96+16*len(r.GetSamples())), h.GetSeq())
	data = little.AppendUint64(data, uint64(h.GetSendNs()))
	name := make([]byte, 16)
	if len(r.GetName()) == len(name) {
		copy(name, r.GetName())
	}
	data = append(data, name...)
	for _, value := range []float64{p.GetX(), p.GetY(), p.GetZ(),
		o.GetX(), o.GetY(), o.GetZ(), o.GetW()} {
		data = little.AppendUint64(data, math.Float64bits(value))
	}
	for _, s := range r.GetSamples() {
		data = little.AppendUint32(little.AppendUint32(data, s.GetId()), s.GetState())
		data = little.AppendUint64(data, math.Float64bits(s.GetValue()))
	}
	return little.AppendUint64(data, trailer)
}
