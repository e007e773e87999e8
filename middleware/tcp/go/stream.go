package main

import (
	"encoding/binary"
	"errors"
	"net"
	"syscall"
	"time"

	"wattwire"
)

const (
	requestFrame, replyFrame = 1, 2
	headBytes                = 13
	payloadBytesMax          = 67_108_864
	readBytes                = 65_536
)

type frame struct {
	kind    byte
	number  uint64
	payload []byte // valid until the next frame is received
}

// stream is a connection that carries frames, which README.md describes. One goroutine sends and
// one goroutine receives.
type stream struct {
	conn                *net.TCPConn
	raw                 syscall.RawConn
	timeout             time.Duration
	twoWrites, quickack bool
	head                [headBytes]byte
	in                  []byte // each read takes all available bytes, so a small frame is one call
	begin, end          int
}

func newStream(kit *wattwire.Kit, conn *net.TCPConn) (*stream, error) {
	settings := kit.Spec.Settings
	raw, err := conn.SyscallConn()
	if err == nil { // Go sets TCP_NODELAY by default
		err = conn.SetNoDelay(settings.Flag("tcp_nodelay"))
	}
	return &stream{conn: conn, raw: raw, in: make([]byte, headBytes+readBytes),
		timeout:   time.Duration(kit.Spec.TimeoutNs),
		twoWrites: settings.Integer("writes") == 2,
		quickack:  settings.Text("tcp_quickack") == "on"}, err
}

// send passes a frame to the kernel. It fails if the send takes longer than timeout_ns or the peer
// has closed the connection; a partly sent frame then breaks the stream.
func (s *stream) send(kind byte, number uint64, payload []byte) error {
	binary.LittleEndian.PutUint32(s.head[:], uint32(len(payload)))
	s.head[4] = kind
	binary.LittleEndian.PutUint64(s.head[5:], number)
	err := s.conn.SetWriteDeadline(time.Now().Add(s.timeout))
	switch {
	case err != nil:
	case s.twoWrites:
		if _, err = s.conn.Write(s.head[:]); err == nil && len(payload) > 0 {
			_, err = s.conn.Write(payload)
		}
	default:
		_, err = (&net.Buffers{s.head[:], payload}).WriteTo(s.conn)
	}
	if err != nil {
		s.conn.Close()
		return errors.New("not sent: " + err.Error()) // hides that the error is a timeout
	}
	return nil
}

// receive waits for the next frame until the deadline (zero: no deadline).
func (s *stream) receive(deadline time.Time) (frame, error) {
	if err := s.conn.SetReadDeadline(deadline); err != nil {
		return frame{}, err
	}
	for {
		wanted, unread := headBytes, s.in[s.begin:s.end]
		if len(unread) >= headBytes {
			wanted += int(binary.LittleEndian.Uint32(unread))
			if unread[4] > replyFrame || wanted > headBytes+payloadBytesMax {
				s.conn.Close()
				return frame{}, errors.New("what arrived is no frame")
			}
			if len(unread) >= wanted {
				s.begin += wanted
				number := binary.LittleEndian.Uint64(unread[5:])
				return frame{unread[4], number, unread[headBytes:wanted]}, nil
			}
		}
		if err := s.read(wanted); err != nil {
			return frame{}, err
		}
	}
}

// read reads the available bytes into a buffer with room for a frame of the given size.
func (s *stream) read(wanted int) error {
	if s.begin == s.end {
		s.begin, s.end = 0, 0
	}
	if unread := s.in[s.begin:s.end]; s.begin+wanted > len(s.in) {
		if wanted > len(s.in) {
			s.in = make([]byte, wanted+readBytes)
		}
		s.begin, s.end = 0, copy(s.in, unread)
	}
	count, err := s.conn.Read(s.in[s.end:])
	s.end += count
	if err == nil && s.quickack { // Linux resets this mode by itself (tcp(7))
		failed := s.raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
		if failed != nil {
			return failed
		}
	}
	return err
}
