package where_test

import (
	"testing"

	"cartwheel.dev/clients/where"
	"cartwheel.dev/geo-config/fault"
)

func TestParse_NamesTheSiteThatIsRead(t *testing.T) {
	v, err := where.Parse("/a", []byte(`{"slice":7,"cues":[".Site=oslo",".Near"],"read":"n2","why":"it is near",
		"active":{"node":"n1","site":"rome","state":"N"},"others":[{"node":"n2","site":"oslo","state":"N"}]}`))
	if err != nil || v.Path != "/a" || v.Slice != 7 || v.Read != (where.Read{Node: "n2", Site: "oslo", Why: "it is near"}) {
		t.Errorf("got %+v, %v", v, err)
	}
	if v.Cues["Site"] != "oslo" || len(v.Cues) != 2 || len(v.Standbys) != 1 || v.Standbys[0].Site != "oslo" || v.Active.Site != "rome" {
		t.Errorf("got %+v", v)
	}
	if _, err := where.Parse("/a", []byte("nonsense")); !fault.Is(err, fault.Corrupt) {
		t.Errorf("of nonsense: got %v, want Corrupt", err)
	}
}
