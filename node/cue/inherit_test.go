package cue

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

func persistent(t *testing.T, path string) *pb.Cues {
	t.Helper()
	s, err := ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	return s.Persistent()
}

func TestInherit_GivesWhatThePathDoesNotName(t *testing.T) {
	tests := []struct{ parent, own, want string }{
		{"", "", ""},
		{"", ".SyncLevel=2/.MaxTime=5/.WholeFile", ""},
		{".Site=a/.RepLevel=2", "", ".Site=a/.RepLevel=2"},
		{"", ".Site=b", ".Site=b"},
		{".Site=a/.RepLevel=2", ".Site=b", ".Site=b/.RepLevel=2"},
		{".KeepTogether", ".RepSites=2", ".KeepTogether/.RepSites=2"},
		{".Coherence=5/.WriteOnce", ".Coherence=9", ".WriteOnce/.Coherence=9"},
		{".EventualConsistency", ".RepLevel=1", ".RepLevel=1"},
	}
	for _, tt := range tests {
		parent, own := persistent(t, tt.parent), persistent(t, tt.own)
		before := proto.Clone(parent)
		got := Inherit(parent, own)
		if text := Join(Kept(got)); text != tt.want {
			t.Errorf("%q under %q keeps %q, want %q", tt.own, tt.parent, text, tt.want)
		}
		if (got == nil) != (tt.want == "") {
			t.Errorf("%q under %q: got nil %v", tt.own, tt.parent, got == nil)
		}
		if got != nil {
			got.Site = "changed"
		}
		if parent != nil && !proto.Equal(parent, before) {
			t.Errorf("%q under %q changed the parent", tt.own, tt.parent)
		}
	}
}

func TestPolicy_FollowsPersistentCues(t *testing.T) {
	tests := []struct {
		path string
		want geoconfig.Policy
	}{
		{"", geoconfig.Policy{Home: "here", Level: 3, Kind: geoconfig.Ordinary}},
		{".Site=B/.RepLevel=2", geoconfig.Policy{Home: "B", Level: 2, Kind: geoconfig.Ordinary}},
		{".RepSites=2", geoconfig.Policy{Home: "here", Level: 3, Sites: 2, Kind: geoconfig.Ordinary}},
		{".RepSites=5/.RepLevel=2", geoconfig.Policy{Home: "here", Level: 2, Sites: 2, Kind: geoconfig.Ordinary}},
		{".WriteOnce/.Coherence=2", geoconfig.Policy{Home: "here", Level: 3, Kind: geoconfig.WriteOnce, Coherence: 2 * time.Second}},
	}
	for _, tt := range tests {
		if got := Policy(persistent(t, tt.path), "here"); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.path, got, tt.want)
		}
	}
}

func TestCheck_RefusesWhatAPathMayNotHave(t *testing.T) {
	for _, tt := range []struct {
		cues *pb.Cues
		want fault.Kind
	}{
		{nil, fault.None},
		{&pb.Cues{Site: "a", RepLevel: MaxCopies, RepSites: MaxCopies, KeepTogether: true}, fault.None},
		{&pb.Cues{RepLevel: MaxCopies + 1}, fault.Invalid},
		{&pb.Cues{RepSites: 1_000_000}, fault.Invalid},
		{&pb.Cues{Site: string(make([]byte, MaxValue+1))}, fault.Invalid},
		{&pb.Cues{CoherenceNs: 1}, fault.Invalid},
		{&pb.Cues{CoherenceNs: -int64(time.Second)}, fault.Invalid},
		{&pb.Cues{CoherenceNs: int64(time.Second)}, fault.None},
		{&pb.Cues{CoherenceNs: int64(time.Second), WriteOnce: true}, fault.Invalid},
		{&pb.Cues{WriteOnce: true}, fault.None},
		{&pb.Cues{EventualMerge: true}, fault.NotSupported},
	} {
		if err := Check(tt.cues); fault.KindOf(err) != tt.want {
			t.Errorf("%v: got %v, want %v", tt.cues, err, tt.want)
		}
	}
}
