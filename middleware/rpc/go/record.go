package main

import "wattwire/web"

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

func toRecord(message []byte) Record {
	from, name := web.ReadRecord(message)
	r := Record{Name: name, Samples: make([]Sample, from.Samples())}
	r.Header.Seq, r.Header.SendNs = from.Seq(), from.SendNs()
	p, o := &r.Pose.Position, &r.Pose.Orientation
	p.X, p.Y, p.Z = from.Axis(0), from.Axis(1), from.Axis(2)
	o.X, o.Y, o.Z, o.W = from.Axis(3), from.Axis(4), from.Axis(5), from.Axis(6)
	for i := range r.Samples {
		id, state, value := from.Sample(i)
		r.Samples[i] = Sample{id, state, value}
	}
	r.Trailer.Seq = from.TrailerSeq()
	return r
}

func (r *Record) bytes() []byte {
	p, o := &r.Pose.Position, &r.Pose.Orientation
	data := web.WriteRecord(r.Header.Seq, r.Header.SendNs, len(r.Samples),
		p.X, p.Y, p.Z, o.X, o.Y, o.Z, o.W)
	for _, s := range r.Samples {
		data = data.Add(s.ID, s.State, s.Value)
	}
	return data.End(r.Name, r.Trailer.Seq)
}
