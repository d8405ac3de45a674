package creation

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
)

func TestCheckName_RefusesCues(t *testing.T) {
	for name, want := range map[string]fault.Kind{"a": fault.None, ".a": fault.None, ".Site=a": fault.Exists, string(make([]byte, mount.NameMax+1)): fault.NameTooLong} {
		if err := CheckName(name); (err != nil) != (want != fault.None) || err != nil && !fault.Is(err, want) {
			t.Errorf("of %q: got %v, want kind %v", name, err, want)
		}
	}
}

func TestExclusive_AllowsCuesThatAFileDoesNotKeep(t *testing.T) {
	for path, want := range map[string]bool{"": false, "/.SyncLevel=2": false, "/.MaxTime=5/.WholeFile": false, "/.Site=a": true, "/.MaxTime=5/.RepLevel=2": true} {
		set, err := cue.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := keeps(set); got != want {
			t.Errorf("below %q: got %v, want %v", path, got, want)
		}
	}
}
