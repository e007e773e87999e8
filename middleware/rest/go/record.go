package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// record is the JSON of C-32. What has three axes or four is a table, as a table's keys must be
// spelt as they are, where a struct's need not.
type record struct {
	Header struct {
		Seq    uint64 `json:"seq,string"`
		SendNs int64  `json:"send_ns,string"`
	} `json:"header"`
	Name string `json:"name"`
	Pose struct {
		Position    map[string]float64 `json:"position"`
		Orientation map[string]float64 `json:"orientation"`
	} `json:"pose"`
	Samples []sample `json:"samples"`
	Trailer struct {
		Seq uint64 `json:"seq,string"`
	} `json:"trailer"`
}

type sample struct {
	ID    uint32  `json:"id"`
	State uint32  `json:"state"`
	Value float64 `json:"value"`
}

var little = binary.LittleEndian

// encoded is the JSON of a record that the kit holds as bytes; of fewer than 96 it is a literal,
// which is the name of a record of zeros.
func encoded(data []byte) ([]byte, error) {
	r := record{Name: string(data), Samples: []sample{}}
	if len(data) < 96 {
		data = make([]byte, 96)
	} else {
		r.Name = strings.TrimRight(string(data[16:32]), "\x00")
	}
	float := func(at int) float64 { return math.Float64frombits(little.Uint64(data[at:])) }
	r.Header.Seq, r.Header.SendNs = little.Uint64(data), int64(little.Uint64(data[8:]))
	r.Pose.Position = map[string]float64{"x": float(32), "y": float(40), "z": float(48)}
	r.Pose.Orientation = map[string]float64{
		"x": float(56), "y": float(64), "z": float(72), "w": float(80)}
	for at := 88; at+16 < len(data); at += 16 {
		id, state := little.Uint32(data[at:]), little.Uint32(data[at+4:])
		r.Samples = append(r.Samples, sample{id, state, float(at + 8)})
	}
	r.Trailer.Seq = little.Uint64(data[len(data)-8:])
	return json.Marshal(r)
}

// decoded is the reverse. A name that is not of 16 characters is nobody's, so that it is left out.
func decoded(text []byte) ([]byte, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.Header.Seq == 0 && r.Header.SendNs == 0 && r.Trailer.Seq == 0 && len(r.Samples) == 0 {
		return []byte(r.Name), nil // of a literal
	}
	data := little.AppendUint64(make([]byte, 0, 96+16*len(r.Samples)), r.Header.Seq)
	data = little.AppendUint64(data, uint64(r.Header.SendNs))
	name := make([]byte, 16)
	if len(r.Name) == len(name) {
		copy(name, r.Name)
	}
	data = append(data, name...)
	for i, axis := range []string{"x", "y", "z", "x", "y", "z", "w"} {
		axes := r.Pose.Position
		if i >= 3 {
			axes = r.Pose.Orientation
		}
		value, is := axes[axis]
		if !is {
			return nil, fmt.Errorf("pose has no %s", axis)
		}
		data = little.AppendUint64(data, math.Float64bits(value))
	}
	for _, s := range r.Samples {
		data = little.AppendUint32(little.AppendUint32(data, s.ID), s.State)
		data = little.AppendUint64(data, math.Float64bits(s.Value))
	}
	return little.AppendUint64(data, r.Trailer.Seq), nil
}
