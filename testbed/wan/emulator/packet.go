package emulator

import "encoding/binary"

// A packet from a TUN device is a struct virtio_net_hdr (10 bytes, in the
// machine's order, which is little-endian on all that Go and KVM run on) and an
// IP packet. What follows reads and makes these two.
const (
	needsChecksum = 1 // the transport's checksum is that of the pseudo-header only
	gsoNone       = 0
	gsoTCP4       = 1
	gsoUDP        = 5 // VIRTIO_NET_HDR_GSO_UDP_L4
	gsoECN        = 0x80

	protoICMP = 1
	protoTCP  = 6
	protoUDP  = 17
)

// shape is what has to be known of a packet to pass it on in parts.
type shape struct {
	to       uint32 // destination
	proto    byte
	ip       int // bytes of the IP header
	headers  int // bytes of both headers
	segment  int // payload bytes of a segment; 0 if it is one packet
	segments int
	wire     int // bytes of all segments with their headers
}

// examine tells the shape of an IPv4 packet behind its header; ok is false for
// anything else.
func examine(b []byte) (s shape, ok bool) {
	p := b[headerSize:]
	if len(p) < 20 || p[0]>>4 != 4 {
		return s, false
	}
	s = shape{to: binary.BigEndian.Uint32(p[16:]), proto: p[9], ip: int(p[0]&15) * 4, segments: 1, wire: len(p)}
	if s.ip < 20 || s.ip > len(p) {
		return s, false
	}
	s.headers = s.ip
	rest := p[s.ip:]
	switch {
	case s.proto == protoTCP && len(rest) >= 20:
		s.headers += int(rest[12]>>4) * 4
	case (s.proto == protoUDP || s.proto == protoICMP) && len(rest) >= 8:
		s.headers += 8
	}
	if s.headers > len(p) {
		return s, false
	}
	gso := b[1] &^ gsoECN
	size := int(binary.LittleEndian.Uint16(b[4:]))
	if gso == gsoNone || size == 0 {
		return s, true
	}
	if gso == gsoTCP4 && s.proto != protoTCP || gso == gsoUDP && s.proto != protoUDP || gso != gsoTCP4 && gso != gsoUDP {
		return s, false
	}
	s.segment = size
	s.segments = max(1, (len(p)-s.headers+size-1)/size)
	s.wire = len(p) + (s.segments-1)*s.headers
	return s, true
}

// part writes segments first to last-1 of a big packet to dst, which has room
// for the headers and them, as a packet of its own.
func part(dst, b []byte, s shape, first, last int) {
	p := b[headerSize:]
	from := s.headers + first*s.segment
	to := min(s.headers+last*s.segment, len(p))
	copy(dst, b[:headerSize+s.headers])
	copy(dst[headerSize+s.headers:], p[from:to])
	if last-first == 1 {
		dst[1] = gsoNone
		binary.LittleEndian.PutUint16(dst[4:], 0)
	}
	q := dst[headerSize:]
	binary.BigEndian.PutUint16(q[2:], uint16(len(q)))
	binary.BigEndian.PutUint16(q[4:], binary.BigEndian.Uint16(p[4:])+uint16(first))
	binary.BigEndian.PutUint16(q[10:], 0)
	binary.BigEndian.PutUint16(q[10:], ^fold(sum(0, q[:s.ip])))
	t := q[s.ip:]
	check := 16
	if s.proto == protoTCP {
		binary.BigEndian.PutUint32(t[4:], binary.BigEndian.Uint32(t[4:])+uint32(first*s.segment))
		if to < len(p) {
			t[13] &^= 0x09 // FIN and PSH belong to the last
		}
		if first > 0 {
			t[13] &^= 0x80 // CWR to the first
		}
	} else {
		check = 6
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
	}
	binary.BigEndian.PutUint16(t[check:], fold(pseudo(q, s)))
}

// partBytes returns how many bytes part writes.
func partBytes(b []byte, s shape, first, last int) int {
	payload := len(b) - headerSize - s.headers
	return headerSize + s.headers + min(last*s.segment, payload) - first*s.segment
}

// finishChecksum makes the transport's checksum right, whatever it was.
func finishChecksum(b []byte, s shape) {
	q := b[headerSize:]
	t := q[s.ip:]
	b[0] = 0
	var check int
	start := uint32(0)
	switch {
	case s.proto == protoTCP && len(t) >= 20:
		check, start = 16, pseudo(q, s)
	case s.proto == protoUDP && len(t) >= 8:
		check, start = 6, pseudo(q, s)
	case s.proto == protoICMP && len(t) >= 8:
		check = 2
	default:
		return
	}
	binary.BigEndian.PutUint16(t[check:], 0)
	v := ^fold(sum(start, t))
	if v == 0 && s.proto == protoUDP {
		v = 0xffff
	}
	binary.BigEndian.PutUint16(t[check:], v)
}

// corrupt flips any bit of a packet whose checksums were right.
func corrupt(b []byte, s shape, chance uint32) {
	if b[0]&needsChecksum != 0 {
		finishChecksum(b, s)
	}
	b[0] = 0
	flip(b[headerSize:], chance)
}

// garble flips a bit of the payload, if there is any, and makes the checksum
// right: a fault that only the application can see.
func garble(b []byte, s shape, chance uint32) {
	if payload := b[headerSize+s.headers:]; len(payload) > 0 {
		flip(payload, chance)
		finishChecksum(b, s)
	}
}

func flip(b []byte, chance uint32) {
	bit := chance % uint32(8*len(b))
	b[bit/8] ^= 1 << (bit % 8)
}

// pseudo sums the pseudo-header of a packet (RFC 9293, section 3.1).
func pseudo(q []byte, s shape) uint32 {
	return sum(uint32(s.proto)+uint32(len(q)-s.ip), q[12:20])
}

// sum adds 16-bit words in one's complement.
func sum(start uint32, b []byte) uint32 {
	total := uint64(start)
	for len(b) >= 4 {
		total += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		total += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) > 0 {
		total += uint64(b[0]) << 8
	}
	for total>>16 > 0xffff {
		total = total>>32 + total&0xffffffff
		total = total>>16 + total&0xffff
	}
	return uint32(total>>16 + total&0xffff)
}

func fold(v uint32) uint16 {
	for v > 0xffff {
		v = v>>16 + v&0xffff
	}
	return uint16(v)
}
