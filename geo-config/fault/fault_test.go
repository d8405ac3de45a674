package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// The stored and sent numbers. A line of this list never changes.
const golden = `0 none OK 200 0
1 other EIO 500 1
2 not found ENOENT 404 3
3 exists EEXIST 409 4
4 permission denied EACCES 403 7
5 operation not permitted EPERM 403 7
6 not a directory ENOTDIR 400 1
7 is a directory EISDIR 400 1
8 directory not empty ENOTEMPTY 409 6
9 invalid EINVAL 400 2
10 name too long ENAMETOOLONG 400 2
11 too many links EMLINK 409 1
12 across slices EXDEV 400 1
13 no space ENOSPC 507 11
14 quota exceeded EDQUOT 507 11
15 too large EFBIG 413 1
16 not supported ENOTSUP 501 1
17 stale ESTALE 410 3
18 busy EBUSY 409 8
19 try again EAGAIN 503 5
20 interrupted EINTR 503 130
21 timed out ETIMEDOUT 504 5
22 canceled EINTR 499 130
23 unreachable EHOSTUNREACH 502 5
24 wrong epoch EAGAIN 409 4
25 not the active EAGAIN 421 5
26 conflict EAGAIN 409 4
27 duplicate EALREADY 409 4
28 expired ESTALE 410 5
29 unauthorized EACCES 401 7
30 corrupt EIO 500 9
31 input/output error EIO 500 9
32 closed EBADF 503 5
33 overloaded EAGAIN 429 5
34 no such attribute NOATTR 404 3
35 buffer too small ERANGE 400 1
36 deadlock EDEADLK 409 1
37 loop ELOOP 400 1
38 read-only EROFS 403 6
39 newer version EPROTONOSUPPORT 426 10
40 wrong cluster EACCES 421 6
41 no locks ENOLCK 503 5
42 text file busy ETXTBSY 409 8
43 missing chunks EIO 424 1
44 lock lost EIO 409 1
45 usage EINVAL 400 2
46 no such device ENXIO 404 3
47 bad handle EBADF 400 1
48 clock skew EIO 500 6`

func TestKinds_NumbersAndTablesNeverChange(t *testing.T) {
	want := strings.Split(golden, "\n")
	if len(want) != len(Kinds()) {
		t.Fatalf("got %d kinds, want %d: append a line for each new one", len(Kinds()), len(want))
	}
	for i, k := range Kinds() {
		name := strings.ReplaceAll(k.ErrnoName(), noAttributeName, "NOATTR")
		got := fmt.Sprintf("%d %s %s %d %d", uint32(k), k, name, k.HTTPStatus(), k.ExitCode())
		if got != want[i] {
			t.Errorf("got %q, want %q", got, want[i])
		}
	}
}

func TestKinds_AreInEveryTable(t *testing.T) {
	for _, k := range Kinds() {
		if k == None {
			if k.Errno() != 0 || k.ExitCode() != 0 {
				t.Errorf("success has errno %d and exit code %d", k.Errno(), k.ExitCode())
			}
			continue
		}
		if k.Errno() == 0 || k.ErrnoName() == "" {
			t.Errorf("%v has no errno", k)
		}
		if s := k.HTTPStatus(); s < 400 || s > 599 {
			t.Errorf("%v has HTTP status %d", k, s)
		}
		if k.ExitCode() == 0 {
			t.Errorf("%v has no exit code", k)
		}
	}
	newer := Kind(9999)
	if newer.Errno() != syscall.EIO || newer.HTTPStatus() != 500 || newer.ExitCode() != 1 {
		t.Errorf("a kind of a newer peer is not treated as Other")
	}
}

func TestEncode_LeavesTheCauseOut(t *testing.T) {
	inner := E(NoSpace, "disk.Write", "/a/b", "free some space")
	err := Wrap(IO, "store.Put", "", fmt.Errorf("writing the pack: %w", inner))
	sent, derr := Decode(append(Encode(nil, err), "later fields"...))
	if derr != nil {
		t.Fatal(derr)
	}
	var got *Error
	if !errors.As(sent, &got) {
		t.Fatalf("got %T", sent)
	}
	want := Error{Kind: NoSpace, Op: "store.Put", Subject: "/a/b", Public: "free some space"}
	if *got != want {
		t.Fatalf("got %+v, want %+v", *got, want)
	}
	if sent, derr := Decode(Encode(nil, nil)); sent != nil || derr != nil {
		t.Fatalf("nil arrives as %v, %v", sent, derr)
	}
	secret := Encode(nil, errors.New("password"))
	if strings.Contains(string(secret), "password") {
		t.Fatal("the text of a foreign error crossed the wire")
	}
	if sent, _ := Decode(Encode(nil, context.DeadlineExceeded)); !Is(sent, TimedOut) {
		t.Fatalf("a deadline arrives as %v", sent)
	}
}

func TestDecode_SurvivesAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		if sent, err := Decode(b); err != nil && (sent != nil || !Is(err, Corrupt)) {
			t.Fatalf("got %v, %v", sent, err)
		}
	})
	long := E(Invalid, "a.B", strings.Repeat("x", 3*MaxText), "")
	sent, err := Decode(Encode(nil, long))
	if err != nil || !Is(sent, Invalid) {
		t.Fatalf("a long subject: %v, %v", sent, err)
	}
	for _, short := range [][]byte{nil, {1}, {1, 5, 'a'}, {1, 0xff, 0xff, 0xff, 0xff, 0x0f}} {
		if _, err := Decode(short); !Is(err, Corrupt) {
			t.Errorf("%v: got %v, want kind %v", short, err, Corrupt)
		}
	}
}

func TestKindOf_ReadsTheChain(t *testing.T) {
	_, notExist := os.Open(filepath.Join(t.TempDir(), "none"))
	for _, c := range []struct {
		what string
		err  error
		want Kind
	}{
		{"nothing", nil, None},
		{"foreign", errors.New("x"), Other},
		{"canceled", fmt.Errorf("x: %w", context.Canceled), Canceled},
		{"wrapped keeps its kind", Wrap(IO, "a.B", "", E(Stale, "c.D", "", "")), Stale},
		{"wrapped foreign", Wrap(IO, "a.B", "", errors.New("x")), IO},
		{"missing file", FromOS("a.B", "none", notExist), NotFound},
		{"full disk", FromOS("a.B", "f", &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}), NoSpace},
		{"closed file", FromOS("a.B", "f", fs.ErrClosed), Closed},
		{"device error", FromOS("a.B", "f", syscall.EIO), IO},
		{"no error", FromOS("a.B", "f", nil), None},
	} {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
	if !errors.Is(Wrap(IO, "a.B", "s", E(Busy, "c.D", "x", "y")), E(Busy, "", "", "")) {
		t.Error("errors.Is does not find the kind in the chain")
	}
}
