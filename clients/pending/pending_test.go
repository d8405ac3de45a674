package pending

import (
	"context"
	"errors"
	"testing"

	"cartwheel.dev/geo-config/ids"
)

func yes() bool { return true }

func TestTable_PublishesAFileOnce(t *testing.T) {
	table := New(0)
	f := &File{Object: ids.NewObject(1, 7), Dir: 3, Name: "f"}
	if table.Add(f, func() bool { return false }) || table.Len() != 0 {
		t.Fatal("a file is taken in against the check")
	}
	if !table.Add(f, yes) || table.Of(f.Object) != f || table.At(3, "f") != f || table.At(3, "g") != nil {
		t.Fatal("it is not found")
	}
	if table.Add(&File{Object: 8, Dir: 3, Name: "f"}, yes) {
		t.Error("a name is made twice")
	}
	if !table.Claim(f) || table.Claim(f) {
		t.Error("not exactly one tells of it")
	}
	table.Release(f)
	if !table.Claim(f) {
		t.Error("a claim that was given back is not to be had")
	}
	refused := errors.New("refused")
	table.Finish(f, refused)
	if table.Claim(f) || table.Len() != 0 || table.Of(f.Object) != nil || table.At(3, "f") != nil {
		t.Error("it is there after its end")
	}
	if err := f.Wait(context.Background()); !errors.Is(err, refused) {
		t.Errorf("who waits hears %v", err)
	}
}

func TestTable_IsBounded(t *testing.T) {
	table := New(0)
	for i := range MaxFiles + 10 {
		ok := table.Add(&File{Object: ids.Object(i + 1), Dir: ids.Object(i)}, yes)
		if ok != (i < MaxFiles) {
			t.Fatalf("file %d is taken in: %v", i, ok)
		}
	}
	if n := len(table.Which(func(f *File) bool { return f.Dir < 5 })); n != 5 {
		t.Errorf("%d files found, want 5", n)
	}
}

func TestNumbers_ComeOnce(t *testing.T) {
	table := New(0)
	a, b := ids.NewObject(1, 100), ids.NewObject(2, 100)
	table.Give(a, 2)
	table.Give(b, 1)
	table.Give(a+50, 1)
	table.Give(a, 0)
	var got []ids.Object
	for {
		o, ok := table.ID(1)
		if !ok {
			break
		}
		got = append(got, o)
	}
	if len(got) != 3 || got[0] != a || got[1] != a+1 || got[2] != a+50 || table.Left(1) != 0 || table.Left(2) != 1 {
		t.Errorf("got %v, left are %d and %d", got, table.Left(1), table.Left(2))
	}
}
