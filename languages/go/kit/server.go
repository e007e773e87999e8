package wattwire

// Serve passes the reply to handOver and records the call. It returns false if the request must not
// be answered. Pass nil for a request that the decoder rejected (C-32). Serve may overwrite the
// request's bytes.
func (k *Kit) Serve(request []byte, handOver func(reply []byte) error) bool {
	beginNs := NowNs()
	verdict, seq := k.Payload.Check(request)
	if k.Payload.isLiteral && beginNs < k.window.startNs.Load() {
		verdict = Probe // before the start, only probes arrive (C-17)
	}
	k.lastArrivalNs.Store(beginNs)
	sample := Sample{
		Seq:        seq,
		IntendedNs: unknownNs,
		BeginNs:    beginNs,
		Bytes:      uint32(len(request)),
		Peer:       uint16(seq >> 48),
	}

	isAnswered := request != nil && verdict != Foreign &&
		(verdict != Unreadable || !k.Payload.isRecord)
	isHandedOver := isAnswered && handOver(k.Payload.Reply(request)) == nil
	sample.EndNs = NowNs()
	k.recordRequest(sample, verdict, isHandedOver || !isAnswered)
	return isAnswered
}

// recordRequest counts a request. If the client left before its reply was handed over, the request
// is received but not recorded.
func (k *Kit) recordRequest(sample Sample, verdict Verdict, isServed bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if !isServed {
		k.counts.received++
		return
	}
	switch verdict {
	case Foreign:
		k.counts.foreign++
	case Probe:
		k.counts.probes++
	case Unreadable:
		k.counts.corrupt++
	case Corrupt:
		k.counts.corrupt++
		k.counts.received++
		sample.Flags = flagCorrupt
		k.recordSample(sample, sample.EndNs)
	case Valid:
		k.counts.received++
		k.recordSample(sample, sample.EndNs)
	}
}

// Drain waits for STOP, and then for quiet or linger (C-15).
func (k *Kit) Drain() {
	<-k.window.over
	stopNs := NowNs()
	lingerEndNs := stopNs + k.Spec.LingerMs*msNs
	poll(func() bool {
		quietEndNs := max(stopNs, k.lastArrivalNs.Load()) + k.Spec.QuietMs*msNs
		return NowNs() >= min(lingerEndNs, quietEndNs)
	})
}
