package emulator

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// big builds a packet as the kernel hands it over: several segments, with the
// checksum of the pseudo-header.
func big(proto byte, payload, segment int) []byte {
	headers, gso := 8, byte(gsoUDP)
	if proto == protoTCP {
		headers, gso = 32, gsoTCP4
	}
	b := make([]byte, headerSize+20+headers+payload)
	b[0], b[1] = needsChecksum, gso
	binary.LittleEndian.PutUint16(b[4:], uint16(segment))
	binary.LittleEndian.PutUint16(b[6:], 20)
	p := b[headerSize:]
	p[0], p[8], p[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[4:], 100)
	copy(p[12:], []byte{10, 77, 0, 1, 10, 77, 1, 1})
	binary.BigEndian.PutUint16(p[10:], ^fold(sum(0, p[:20])))
	t := p[20:]
	if proto == protoTCP {
		binary.BigEndian.PutUint32(t[4:], 0xfffffff0) // wraps
		t[12], t[13] = 8<<4, 0x99                     // CWR, ACK, PSH, FIN
	} else {
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
	}
	for i := range payload {
		t[headers+i] = byte(i * 7)
	}
	return b
}

// valid reports whether both checksums of a packet are right, by summing as a
// receiver does.
func valid(b []byte) bool {
	q := b[headerSize:]
	s, ok := examine(b)
	return ok && fold(sum(0, q[:20])) == 0xffff && fold(sum(pseudo(q, s), q[20:])) == 0xffff
}

func TestPart_PartsMakeTheWhole(t *testing.T) {
	for _, proto := range []byte{protoTCP, protoUDP} {
		for _, step := range []int{1, 2, 3, 100} {
			b := big(proto, 4100, 1000)
			s, ok := examine(b)
			if !ok || s.segments != 5 || s.wire != 4100+5*s.headers {
				t.Fatalf("shape %+v", s)
			}
			var payload []byte
			for first := 0; first < s.segments; first += step {
				last := min(first+step, s.segments)
				dst := make([]byte, partBytes(b, s, first, last))
				part(dst, b, s, first, last)
				ps, ok := examine(dst)
				if !ok || ps.segments != last-first {
					t.Fatalf("a part of %d segments has the shape %+v", last-first, ps)
				}
				q := dst[headerSize:]
				flags := q[20+13]
				if n := int(binary.BigEndian.Uint16(q[2:])); n != len(q) {
					t.Errorf("a packet of %d bytes says that it has %d", len(q), n)
				}
				if proto == protoTCP {
					if seq := binary.BigEndian.Uint32(q[24:]); seq != 0xfffffff0+uint32(first*1000) {
						t.Errorf("sequence number %x of part from %d", seq, first)
					}
					wanted := byte(0x10)
					if first == 0 {
						wanted |= 0x80
					}
					if last == 5 {
						wanted |= 0x09
					}
					if flags != wanted {
						t.Errorf("flags %x of part %d to %d", flags, first, last)
					}
				}
				payload = append(payload, q[ps.headers:]...)
				finishChecksum(dst, ps)
				if !valid(dst) {
					t.Errorf("the checksums of part %d to %d are wrong", first, last)
				}
			}
			if !bytes.Equal(payload, b[headerSize+s.headers:]) {
				t.Errorf("protocol %d in steps of %d: other bytes", proto, step)
			}
		}
	}
}

// TestPart_ChecksumIsThatOfItsPseudoHeader completes a checksum as the kernel
// does, from what the field holds. That has to be the pseudo-header's.
func TestPart_ChecksumIsThatOfItsPseudoHeader(t *testing.T) {
	b := big(protoTCP, 2000, 1000)
	s, _ := examine(b)
	dst := make([]byte, partBytes(b, s, 1, 2))
	part(dst, b, s, 1, 2)
	q := dst[headerSize:]
	if dst[0] != needsChecksum {
		t.Error("the kernel is not asked to complete the checksum")
	}
	binary.BigEndian.PutUint16(q[36:], ^fold(sum(0, q[20:]))) // what the kernel does
	if !valid(dst) {
		t.Error("the completed checksum is wrong")
	}
}

func TestCorrupt_ShowsWhereGarbleDoesNot(t *testing.T) {
	for _, proto := range []byte{protoTCP, protoUDP} {
		for chance := range uint32(8 * 600) {
			b := big(proto, 500, 0)
			b[1] = gsoNone
			s, _ := examine(b)
			finishChecksum(b, s)
			if !valid(b) {
				t.Fatal("the checksum is wrong to begin with")
			}
			was := bytes.Clone(b)
			corrupt(b, s, chance)
			if b[headerSize]>>4 == 4 && b[headerSize]&15 == 5 && b[headerSize+9] == proto && valid(b) {
				t.Fatalf("bit %d flipped, and no checksum tells", chance)
			}
			garbled := bytes.Clone(was)
			garble(garbled, s, chance)
			if !valid(garbled) || bytes.Equal(garbled[headerSize+s.headers:], was[headerSize+s.headers:]) {
				t.Fatalf("garbled by %d: valid is %v", chance, valid(garbled))
			}
		}
	}
}

func TestCorrupt_IsNotMendedByTheKernel(t *testing.T) {
	// A packet that needs its checksum yet must get it before it is damaged,
	// or the kernel would make a right one for the wrong bytes.
	b := big(protoUDP, 100, 0)
	b[1] = gsoNone
	s, _ := examine(b)
	corrupt(b, s, 8*40)
	if b[0] != 0 || valid(b) {
		t.Error("the kernel would mend it")
	}
	if flip(b[headerSize:], 8*40); !valid(b) {
		t.Error("more is wrong than the bit")
	}
}

func TestExamine_RefusesNonsense(t *testing.T) {
	for name, b := range map[string][]byte{
		"short":        make([]byte, headerSize+19),
		"IPv6":         append(make([]byte, headerSize), append([]byte{0x60}, make([]byte, 60)...)...),
		"long header":  append(make([]byte, headerSize), append([]byte{0x4f}, make([]byte, 25)...)...),
		"UDP as TCP":   func() []byte { b := big(protoUDP, 2000, 1000); b[1] = gsoTCP4; return b }(),
		"unknown kind": func() []byte { b := big(protoTCP, 2000, 1000); b[1] = 3; return b }(),
		"long offset":  func() []byte { b := big(protoTCP, 0, 0); b[headerSize+32] = 0xf0; return b }(),
	} {
		if s, ok := examine(b); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func FuzzExamine(f *testing.F) {
	f.Add(big(protoTCP, 4000, 1000))
	f.Add(big(protoUDP, 4000, 1000))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize || len(b) > largest {
			return
		}
		s, ok := examine(b)
		if !ok || s.segments == 1 || s.segments > 100 {
			return
		}
		for i := range s.segments {
			dst := make([]byte, partBytes(b, s, i, i+1))
			part(dst, b, s, i, i+1)
		}
	})
}

func TestArena_SlotsComeBackAndEnd(t *testing.T) {
	a, err := newArena()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	one, b, ok := a.take(1500)
	if !ok || len(b) != 1500 {
		t.Fatal("no slot")
	}
	b[0] = 9
	two, _, _ := a.take(1500)
	a.keep(one, 2)
	a.keep(two, 1)
	a.drop(one)
	if other, _, _ := a.take(1500); other == one || other == two {
		t.Error("a slot was given twice")
	}
	a.drop(one)
	if again, b, _ := a.take(60 << 10); again == one || len(b) != 60<<10 {
		t.Error("a big packet got a small slot")
	}
	if again, _, _ := a.take(2000); again != one {
		t.Error("a slot did not come back")
	}
	n := 0
	for {
		if _, _, ok := a.take(largest); !ok {
			break
		}
		n++
	}
	if n != mostBytes/largest-1 {
		t.Errorf("%d of the largest, want %d", n, mostBytes/largest-1)
	}
}
