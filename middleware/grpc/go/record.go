package main

import (
	"node/pb"
	"wattwire/web"
)

func toRecord(message []byte) *pb.RecordPayload {
	from, name := web.ReadRecord(message)
	samples := make([]pb.Sample, from.Samples()) // one allocation
	r := &pb.RecordPayload{
		Header: &pb.Header{Seq: from.Seq(), SendNs: from.SendNs()},
		Name:   name,
		Pose: &pb.Pose{
			Position: &pb.Position{X: from.Axis(0), Y: from.Axis(1), Z: from.Axis(2)},
			Orientation: &pb.Orientation{X: from.Axis(3), Y: from.Axis(4), Z: from.Axis(5),
				W: from.Axis(6)},
		},
		Samples: make([]*pb.Sample, len(samples)),
		Trailer: &pb.Trailer{Seq: from.TrailerSeq()},
	}
	for i := range samples {
		own := &samples[i]
		own.Id, own.State, own.Value = from.Sample(i)
		r.Samples[i] = own
	}
	return r
}

func toBytes(r *pb.RecordPayload) []byte {
	h, p, o := r.GetHeader(), r.GetPose().GetPosition(), r.GetPose().GetOrientation()
	data := web.WriteRecord(h.GetSeq(), h.GetSendNs(), len(r.GetSamples()),
		p.GetX(), p.GetY(), p.GetZ(), o.GetX(), o.GetY(), o.GetZ(), o.GetW())
	for _, s := range r.GetSamples() {
		data = data.Add(s.GetId(), s.GetState(), s.GetValue())
	}
	return data.End(r.GetName(), r.GetTrailer().GetSeq())
}
