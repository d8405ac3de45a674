package framing

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// TestFrame_KeepsItsBytes holds the frames of docs/formats/wire.md.
func TestFrame_KeepsItsBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Frame
		want string
	}{
		{"a call with a coordinate", Frame{Kind: Call, Flags: HasCoordinate, Method: 0x0102, Header: 3, Body: 0x10000,
			Time: 1500, ID: 7, HLC: 0x1122334455667788, Coordinate: Coordinate{Vector: [8]float32{1, -2}, Height: 3, Error: 0.5, Dimensions: 2}},
			"0101" + "0201" + "03000000" + "00000100" + "dc050000" + "0700000000000000" + "8877665544332211" +
				"0000803f" + "000000c0" + "00004040" + "0000003f"},
		{"a heartbeat with a wide coordinate", Frame{Kind: Heartbeat, Flags: HasCoordinate | IsWide,
			Coordinate: Coordinate{Vector: [8]float32{1, -2, 3, -4, 5, -6, 7, -8}, Height: 3, Error: 0.5, Dimensions: 8}},
			"0603" + "0000" + "00000000" + "00000000" + "00000000" + "0000000000000000" + "0000000000000000" +
				"0000803f" + "000000c0" + "00004040" + "000080c0" + "0000a040" + "0000c0c0" + "0000e040" + "000000c1" + "00004040" + "0000003f"},
		{"a heartbeat", Frame{Kind: Heartbeat}, "0600" + "0000" + "00000000" + "00000000" + "00000000" + "0000000000000000" + "0000000000000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.in.Append(nil)
			if hex.EncodeToString(got) != tt.want {
				t.Errorf("got %x, want %s", got, tt.want)
			}
			var back Frame
			limits := Limits{Header: 4 << 20, Body: 8 << 20}
			if err := back.Parse(got, limits); err != nil {
				t.Fatal(err)
			}
			if size := FixedSize + back.CoordinateSize(); size != len(got) {
				t.Fatalf("it says that it has %d bytes, and has %d", size, len(got))
			}
			back.ParseCoordinate(got[FixedSize:])
			if back != tt.in {
				t.Errorf("read back %+v, want %+v", back, tt.in)
			}
		})
	}
	f := AppendFault(nil, fault.E(fault.NotFound, "tree.Lookup", "/a", "no"))
	const want = "02000000" + "0b00" + "747265652e4c6f6f6b7570" + "0200" + "2f61" + "0200" + "6e6f"
	if hex.EncodeToString(f) != want {
		t.Errorf("a fault: got %x, want %s", f, want)
	}
}

func TestFrame_RefusedBeyondLimits(t *testing.T) {
	limits := Limits{Header: 100, Body: 1000}
	ok := Frame{Kind: Call, Method: 1, Header: 100, Body: 1000}
	for _, tt := range []struct {
		name   string
		change func(*Frame)
		want   fault.Kind
	}{
		{"at the limits", func(*Frame) {}, fault.None},
		{"a longer message", func(f *Frame) { f.Header++ }, fault.TooLarge},
		{"a longer body", func(f *Frame) { f.Body++ }, fault.TooLarge},
		{"the longest body", func(f *Frame) { f.Body = 1<<32 - 1 }, fault.TooLarge},
		{"kind 0", func(f *Frame) { f.Kind = 0 }, fault.NotSupported},
		{"a kind of the future", func(f *Frame) { f.Kind = endOfKind }, fault.NotSupported},
		{"a flag of the future", func(f *Frame) { f.Flags = 0x80 }, fault.NotSupported},
		{"a wide form of no coordinate", func(f *Frame) { f.Flags = IsWide }, fault.NotSupported},
		{"a wide coordinate", func(f *Frame) { f.Flags = HasCoordinate | IsWide }, fault.None},
		{"a method out of range", func(f *Frame) { f.Method = MaxMethod }, fault.NotSupported},
		{"a cancellation with content", func(f *Frame) { f.Kind = Cancel }, fault.Invalid},
	} {
		f := ok
		tt.change(&f)
		var got Frame
		if err := got.Parse(f.Append(nil), limits); fault.KindOf(err) != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

func FuzzFault(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendFault(nil, fault.E(fault.Busy, "a.B", "subject", "public")))
	f.Add(binary.LittleEndian.AppendUint32(nil, 7))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := ParseFault(data, "peer")
		if e.Kind == fault.None || !Answered(e) {
			t.Errorf("%x became %+v", data, e)
		}
		again := ParseFault(AppendFault(nil, e), "peer")
		if len(e.Public) <= maxFaultText && len(e.Subject) <= maxFaultText && len(e.Op) <= maxFaultText &&
			(again.Kind != e.Kind || again.Op != e.Op || again.Subject != e.Subject || again.Public != e.Public) {
			t.Errorf("%+v became %+v", e, again)
		}
	})
}
