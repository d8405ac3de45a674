package history_test

import (
	"testing"

	"cartwheel.dev/clients/history"
	"cartwheel.dev/geo-config/fault"
)

func TestParse_ReadsWhatAMountAnswers(t *testing.T) {
	h, err := history.Parse("f", []byte(`{"versions":[{"what":"written","size":3}],"more":true}`))
	if err != nil || len(h.Versions) != 1 || h.Versions[0].What != history.Written || h.Versions[0].Size != 3 || !h.More {
		t.Errorf("got %+v, %v", h, err)
	}
	if _, err := history.Parse("f", []byte("{")); !fault.Is(err, fault.Corrupt) {
		t.Errorf("what is no JSON: got %v, want Corrupt", err)
	}
}
