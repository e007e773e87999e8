package main

import (
	"encoding/json"
	"fmt"

	"wattwire/web"
)

// record is the JSON of C-32. Position and orientation are maps, because the keys of a map are
// case-sensitive and the keys of a struct are not.
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

func encoded(message []byte) ([]byte, error) {
	from, name := web.ReadRecord(message)
	r := record{Name: name, Samples: make([]sample, from.Samples())}
	r.Header.Seq, r.Header.SendNs = from.Seq(), from.SendNs()
	r.Pose.Position = map[string]float64{"x": from.Axis(0), "y": from.Axis(1), "z": from.Axis(2)}
	r.Pose.Orientation = map[string]float64{
		"x": from.Axis(3), "y": from.Axis(4), "z": from.Axis(5), "w": from.Axis(6)}
	for i := range r.Samples {
		id, state, value := from.Sample(i)
		r.Samples[i] = sample{id, state, value}
	}
	r.Trailer.Seq = from.TrailerSeq()
	return json.Marshal(r)
}

func decoded(text []byte) ([]byte, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	var pose [7]float64
	for i, axis := range []string{"x", "y", "z", "x", "y", "z", "w"} {
		axes := r.Pose.Position
		if i >= 3 {
			axes = r.Pose.Orientation
		}
		value, is := axes[axis]
		if !is {
			return nil, fmt.Errorf("pose has no %s", axis)
		}
		pose[i] = value
	}
	data := web.WriteRecord(r.Header.Seq, r.Header.SendNs, len(r.Samples), pose[:]...)
	for _, s := range r.Samples {
		data = data.Add(s.ID, s.State, s.Value)
	}
	return data.End(r.Name, r.Trailer.Seq), nil
}
