package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// diary is a file of a client with a write journal. The client's process dies
// now and then, and another begins with what its files held: every write that
// a program was told of must be in the file. Where another client wrote the
// file meanwhile, it must keep that, and nothing of the dead one's may lie over it.
type diary struct {
	run    *run
	to     *cluster
	host   *host
	clock  *clock
	chance *rand.Rand
	heir   *client
	fs     *cartwheel.Client
	dir    string // of this life
	lives  int
	text   []byte // what the file must hold
}

const (
	diaryName = "diary"
	// diaryRest is behind what time nothing comes of what a dead client sent.
	diaryRest = 8 * time.Second
)

// newDiary is the diary of a client that does not run yet.
func newDiary(to *cluster, heir *client) *diary {
	d := &diary{run: to.run, to: to, host: to.net.clientHost("d0"), chance: newChance(to.o.Seed, 900).r, heir: heir}
	d.clock = newClock(drift(d.chance, 0.005))
	d.dir = d.folder(1)
	return d
}

// open starts the client, and makes the file.
func (d *diary) open(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	e, o, err := d.fs.Create(ctx, mount.Caller{}, mount.Root, diaryName, 0o644, mount.OpenWrite|mount.OpenExclusive)
	if err != nil {
		return err
	}
	err = d.fs.Flush(ctx, mount.Caller{}, e.Node, o.Handle, 0)
	d.fs.Release(e.Node, o.Handle, 0, false)
	d.fs.Forget(e.Node, 1)
	return err
}

// errHeirDied says that nobody knows what the other client wrote.
var errHeirDied = errors.New("the other client died while it wrote")

// folder names that of a life.
func (d *diary) folder(life int) string { return filepath.Join(d.run.o.Dir, fmt.Sprint("diary", life)) }

// begin starts a process on the files of the one before.
func (d *diary) begin(ctx context.Context) error {
	d.lives++
	file, err := d.to.contact()
	if err != nil {
		return err
	}
	key, err := wire.NewKey(source{d.chance})
	if err != nil {
		return err
	}
	d.fs, err = cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: ids.Site(d.to.machines()[0].site), Name: d.host.name,
		CacheDir: d.dir,
		Simulated: cartwheel.Simulated{JournalFileBytes: int64(512 + d.chance.IntN(8<<10)), Network: d.host.begin(), Key: key,
			Random: newChance(d.run.o.Seed, uint64(900+d.lives)).r},
		FlushAfter: time.Duration(200_000_000 + d.chance.IntN(3_000_000_000)),
		OpTimeout:  callBound - 5*time.Second, Clock: d.clock.read, Logger: slog.New(handler{t: d.run.trace, who: d.host.name, least: slog.LevelWarn})})
	return err
}

// live writes, dies and begins again until stop.
func (d *diary) live(stop chan struct{}) {
	for {
		t := time.NewTimer(time.Duration(d.chance.Int64N(600_000_000)))
		select {
		case <-stop:
			t.Stop()
			d.compare(d.fs, "the client itself")
			return
		case <-t.C:
		}
		err := d.note(d.chance.IntN(2) == 0)
		if err != nil {
			if !d.run.allowed(err) && !errors.Is(err, errHeirDied) {
				d.run.once("DIARY", "%v", err)
			}
			return // what the file holds is not known
		}
	}
}

// note writes, and flushes or does not. The last note of a life ends before the
// file is closed, which would have it sent.
func (d *diary) note(last bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	e, err := d.fs.Lookup(ctx, mount.Caller{}, mount.Root, diaryName)
	if err != nil {
		return fmt.Errorf("finding: %w", err)
	}
	o, err := d.fs.Open(ctx, mount.Caller{}, e.Node, mount.OpenWrite)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	if err := d.fill(ctx, e.Node, o.Handle); err != nil {
		return err
	}
	if last {
		return d.die()
	}
	// A close flushes, and is told where a full disk refused what was written.
	err = d.fs.Flush(ctx, mount.Caller{}, e.Node, o.Handle, 0)
	d.fs.Release(e.Node, o.Handle, 0, false)
	d.fs.Forget(e.Node, 1)
	if err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}

// fill writes, and now and then has it sent, or writes while it is sent.
func (d *diary) fill(ctx context.Context, n mount.Inode, h mount.Handle) error {
	if err := d.scribble(ctx, n, h); err != nil {
		return err
	}
	flushed := make(chan error, 1)
	switch d.chance.IntN(3) {
	case 0:
		flushed <- d.fs.Flush(ctx, mount.Caller{}, n, h, 0)
	case 1: // and write behind what is on its way
		go func() { flushed <- d.fs.Flush(ctx, mount.Caller{}, n, h, 0) }()
		pass(time.Duration(1 + d.chance.IntN(20_000_000)))
		if err := d.scribble(ctx, n, h); err != nil {
			return err
		}
	default:
		return nil
	}
	if err := <-flushed; err != nil {
		return fmt.Errorf("flushing: %w", err)
	}
	return nil
}

// scribble writes here and there.
func (d *diary) scribble(ctx context.Context, n mount.Inode, h mount.Handle) error {
	for range 1 + d.chance.IntN(5) {
		at, p := d.chance.IntN(3000), bytes.Repeat([]byte{byte('a' + d.chance.IntN(26))}, 1+d.chance.IntN(900))
		if _, err := d.fs.Write(ctx, mount.Caller{}, n, h, int64(at), p, 0); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		if end := at + len(p); end > len(d.text) {
			d.text = append(d.text, make([]byte, end-len(d.text))...)
		}
		copy(d.text[at:], p)
	}
	return nil
}

// die ends the process and begins another.
func (d *diary) die() error {
	d.run.trace.say(d.host.name, "dies")
	d.host.end(false)
	dead := d.fs
	before := d.dir
	d.dir = d.folder(d.lives + 1)
	err := duplicate(os.DirFS(before), d.dir) // as it is at the moment of death
	d.run.work.Go(dead.Abort)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*callBound)
	defer cancel()
	about := "the next life"
	pass(time.Duration(1 + d.chance.Int64N(300_000_000)))
	if d.chance.IntN(5) == 0 {
		pass(diaryRest)
		if err := d.inherit(ctx); err != nil {
			return fmt.Errorf("writing by another client: %w", err)
		}
		about = "the next life, behind what another client may have written,"
	}
	if err := d.beginAgain(ctx); err != nil {
		return fmt.Errorf("beginning again: %w", err)
	}
	d.run.trace.say(d.host.name, "lives again")
	d.compare(d.fs, about)
	return nil
}

// beginAgain begins as soon as a node answers: whoever mounts tries again.
func (d *diary) beginAgain(ctx context.Context) error {
	for {
		err := d.begin(ctx)
		if !fault.Is(err, fault.Unreachable) {
			return err
		}
		pass(time.Second)
	}
}

// inherit has another client write the whole file anew.
func (d *diary) inherit(ctx context.Context) error {
	by, over := d.heir.now()
	if by == nil {
		return nil // it died as well: nobody writes
	}
	err := d.replace(ctx, by)
	if err != nil && ended(over) {
		return errHeirDied
	}
	return err
}

// replace writes the whole file anew.
func (d *diary) replace(ctx context.Context, by *cartwheel.Client) error {
	text := bytes.Repeat([]byte{byte('A' + d.lives%26)}, 3000+d.chance.IntN(2000))
	e, err := by.Lookup(ctx, mount.Caller{}, mount.Root, diaryName)
	if err != nil {
		return err
	}
	defer by.Forget(e.Node, 1)
	o, err := by.Open(ctx, mount.Caller{}, e.Node, mount.OpenWrite|mount.OpenTruncate)
	if err != nil {
		return err
	}
	defer by.Release(e.Node, o.Handle, 0, false)
	if _, err = by.Write(ctx, mount.Caller{}, e.Node, o.Handle, 0, text, 0); err == nil {
		err = by.Flush(ctx, mount.Caller{}, e.Node, o.Handle, 0)
	}
	d.text = text
	return err
}

// compare reads the file.
func (d *diary) compare(by *cartwheel.Client, who string) {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	k := &worker{fs: by}
	e, err := by.Lookup(ctx, mount.Caller{}, mount.Root, diaryName)
	if err != nil {
		d.run.once("DIARY", "%s cannot find it: %v", who, err)
		return
	}
	defer by.Forget(e.Node, 1)
	got, err := k.read(ctx, e.Node)
	if err != nil {
		d.run.once("DIARY", "%s cannot read it: %v", who, err)
		return
	}
	if i := differ([]byte(got), d.text); i >= 0 {
		d.run.once("DIARY", "%s reads %d bytes and finds %.8q at %d; it must be %d bytes and %.8q", who, len(got), tailOf([]byte(got), i), i, len(d.text), tailOf(d.text, i))
	}
}

// differ is where two texts do, or -1.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func tailOf(b []byte, from int) []byte { return b[min(from, len(b)):] }
