package reading

import (
	"fmt"
	"reflect"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// told renders versions with what objects are called.
func told(out *pb.HistoryResponse, numbers map[uint64]string) (list []string) {
	last := ^uint64(0)
	for _, v := range out.GetVersions() {
		if v.Hlc >= last {
			list = append(list, "not newest first")
		}
		last = v.Hlc
		what := "gone"
		if v.Object != 0 {
			what = fmt.Sprintf("%s of %d", numbers[v.Object], v.Size)
		}
		list = append(list, what)
	}
	return list
}

func TestHistory_TellsWhatNamesMeantAndFilesWere(t *testing.T) {
	b := newBench(t)
	b.past()
	d := b.mkdir(ids.RootObject, "d", 0o755, ann)
	f := b.file(d, "f", 0o644, ann, "one")
	b.write(f, "longer")
	at := b.clock
	b.unlink(d, "f")
	g := b.file(d, "f", 0o644, ann, "")
	numbers := map[uint64]string{uint64(f): "f", uint64(g): "g"}
	ask := func(who Asker, o ids.Object, name string) *pb.HistoryResponse {
		t.Helper()
		out, err := b.History(t.Context(), who, &pb.HistoryRequest{Object: uint64(o), Name: []byte(name)})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got, want := told(ask(asBob(), d, "f"), numbers), []string{"g of 0", "gone", "f of 0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the name: got %q, want %q", got, want)
	}
	got := told(ask(asBob().asOf(at), f, ""), numbers)
	if want := []string{"gone", "f of 6", "f of 3", "f of 0"}; len(got) < 4 || !reflect.DeepEqual(append(got[:3:3], got[len(got)-1]), want) {
		t.Errorf("the file: got %q, want %q", got, want)
	}
	since, _, err := tree.WholeSince(b.view(rootSlice))
	if out := ask(node(), d, "none"); err != nil || len(out.Versions) > 0 || out.More || out.Since != uint64(since) {
		t.Errorf("a name that never was: got %v, %v", out, err)
	}
}

func TestHistory_IsForThoseWhoMaySee(t *testing.T) {
	b := newBench(t)
	b.past()
	shut := b.mkdir(ids.RootObject, "shut", 0o711, ann)
	in := b.file(shut, "in", 0o644, ann, "")
	b.unlink(shut, "in")
	for what, c := range map[string]struct {
		who  Asker
		o    ids.Object
		name string
		want fault.Kind
	}{
		"the owner":                      {asAnn(), shut, "in", fault.None},
		"who may not read the names":     {asBob(), shut, "in", fault.Permission},
		"of an object that is gone":      {asBob(), in, "", fault.Stale},
		"a name of what is no directory": {node(), b.file(ids.RootObject, "file", 0o644, root, ""), "x", fault.NotDirectory},
	} {
		_, err := b.History(t.Context(), c.who, &pb.HistoryRequest{Object: uint64(c.o), Name: []byte(c.name)})
		b.fails(what, err, c.want)
	}
	b.lose(rootSlice)
	if out, err := b.History(t.Context(), node(), &pb.HistoryRequest{Object: uint64(shut)}); err != nil || out.Refusal == nil {
		t.Errorf("a node that does not act: got %v, %v, want a refusal", out, err)
	}
}
