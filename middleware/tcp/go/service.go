package main

import (
	"os"
	"sync"
	"time"

	"wattwire"
)

func call(kit *wattwire.Kit) {
	s := connect(kit)
	begin := blocking(s)
	if kit.Workers > 1 {
		begin = overlapping(s)
	}
	discoveryNs := kit.Probe(begin)
	ready(kit, s.raw, 1, discoveryNs)
	kit.Calls(begin)
}

// blocking makes calls that wait for their reply and skips late replies to earlier calls.
func blocking(s *stream) wattwire.Call {
	number := ^uint64(0)
	return func(request []byte, timeout time.Duration) ([]byte, error) {
		number++
		deadline := time.Now().Add(timeout)
		if err := s.send(requestFrame, number, request); err != nil {
			return nil, err
		}
		for {
			f, err := s.receive(deadline)
			if err != nil || f.kind == replyFrame && f.number == number {
				return f.payload, err
			}
		}
	}
}

// overlapping makes overlapping calls; a goroutine passes each reply to its call.
func overlapping(s *stream) wattwire.Call {
	var sending, mutex sync.Mutex // separate, so replies are read while a send is blocked
	waiting, number := map[uint64]chan []byte{}, ^uint64(0)
	go func() {
		defer wattwire.Guard()
		for {
			f, err := s.receive(time.Time{})
			if err != nil {
				s.conn.Close() // open calls time out, later calls are not sent
				return
			}
			mutex.Lock()
			if reply := waiting[f.number]; reply != nil && f.kind == replyFrame {
				reply <- append([]byte(nil), f.payload...)
			}
			delete(waiting, f.number)
			mutex.Unlock()
		}
	}()
	return func(request []byte, timeout time.Duration) ([]byte, error) {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		mutex.Lock()
		number++
		own, reply := number, make(chan []byte, 1)
		waiting[own] = reply
		mutex.Unlock()
		sending.Lock()
		err := s.send(requestFrame, own, request)
		sending.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case found := <-reply:
			return found, nil
		case <-timer.C:
			mutex.Lock()
			delete(waiting, own)
			mutex.Unlock()
			return nil, os.ErrDeadlineExceeded
		}
	}
}

func serve(kit *wattwire.Kit) {
	listen(kit, func(s *stream) {
		for {
			f, err := s.receive(time.Time{})
			if err != nil {
				s.conn.Close() // the client has ended; only its own record remains
				return
			}
			kit.Serve(f.payload, func(reply []byte) error {
				return s.send(replyFrame, f.number, reply)
			})
		}
	})
	kit.Drain()
}
