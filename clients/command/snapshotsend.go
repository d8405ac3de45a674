package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/clients/sending"
	"cartwheel.dev/geo-config/fault"
)

// standard names standard output where a file is written, and standard input where one is read.
const standard = "-"

type snapshotSendCmd struct {
	Name   string `arg:"" help:"The snapshot's name, or a time as .Snapshot has it."`
	File   string `arg:"" type:"path" help:"The file that is written; - is standard output."`
	Path   string `arg:"" optional:"" type:"path" help:"A file or directory below a mount (default: the part that the snapshot is of, or here). It may have been removed."`
	Since  string `placeholder:"NAME" help:"Send the difference from this earlier snapshot alone: the receiver has a copy of it."`
	Resume bool   `help:"Continue a file that was not finished."`
	From   int64  `placeholder:"BYTES" help:"Leave out the first bytes of the stream: the receiver has them."`
}

// Help shows how it is called.
func (snapshotSendCmd) Help() string {
	return help(`cartwheel snapshot send nightly /backup/nightly.sent /mnt/cartwheel/reports

Make a copy of the file elsewhere with ` + "`cartwheel snapshot receive`" + `. It carries what its caller may read, and fails at what the caller may not.`)
}

// sentView is what the command prints.
type sentView struct {
	sending.Sent
	File string `json:"file"`
}

// Run writes the stream.
func (c snapshotSendCmd) Run(e *env) error {
	if c.From < 0 || c.Resume && (c.From > 0 || c.File == standard) {
		return fault.E(fault.Usage, "command.Run", c.File, "is a file that --resume continues, or what --from leaves bytes out of, which are 0 or more")
	}
	c.Path = e.orPart(c.Path, c.Name)
	p := &sending.Progress{}
	defer progressOf(e.stdio.Err, func() string { return howFar("sending "+c.Name, p) })()
	_, root := mountOf(c.Path)
	src := sending.Source{Path: c.Path, Root: root, Snapshot: c.Name, Since: c.Since, Moment: momentOf, Progress: p}
	sent, err := c.send(e, src)
	if err != nil {
		return noSnapshot(err)
	}
	told := *e
	if c.File == standard {
		told.stdio.Out = e.stdio.Err // standard output is the stream's
	}
	return told.print(sentView{sent, c.File}, func(w io.Writer) {
		what := fmt.Sprintf("%d names", sent.Names)
		if c.Since != "" {
			what = "the difference from " + c.Since
		}
		fmt.Fprintf(w, "sent %s of %s: %s, %s\n", c.Name, c.Path, what, size(sent.Size))
	})
}

// send writes the stream to where it goes.
func (c snapshotSendCmd) send(e *env, src sending.Source) (sending.Sent, error) {
	const op fault.Op = "command.send"
	if c.File == standard {
		return sending.Send(e.ctx, e.stdio.Out, c.From, src)
	}
	flags := os.O_RDWR | os.O_CREATE
	if !c.Resume {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(c.File, flags, 0o600)
	if errors.Is(err, os.ErrExist) {
		return sending.Sent{}, fault.E(fault.Exists, op, c.File, "is there: --resume continues it, or name another file")
	}
	if err != nil {
		return sending.Sent{}, fault.FromOS(op, c.File, err)
	}
	defer f.Close()
	sent, err := c.fill(e.ctx, f, src)
	if err == nil {
		return sent, fault.FromOS(op, c.File, f.Sync())
	}
	info, bad := f.Stat()
	switch {
	case bad == nil && info.Size() == 0:
		os.Remove(c.File)
	case fault.Is(err, fault.Canceled) && c.From == 0:
		err = &fault.Error{Kind: fault.Canceled, Op: op, Subject: c.File, Public: "is not finished: --resume continues it", Cause: err}
	}
	return sent, err
}

// fill writes the stream to a file, or the rest of it.
func (c snapshotSendCmd) fill(ctx context.Context, f *os.File, src sending.Source) (sending.Sent, error) {
	if c.Resume {
		return sending.Resume(ctx, f, src)
	}
	return sending.Send(ctx, f, c.From, src)
}

// momentOf asks a mount for the moment that it shows at a path.
func momentOf(path string) (earlier.Moment, error) {
	data, err := getxattr(path, earlier.MomentAttribute)
	switch {
	case errors.Is(err, fault.NoAttribute.Errno()) || errors.Is(err, errors.ErrUnsupported):
		return earlier.Moment{}, fault.E(fault.NotFound, "command.momentOf", path, "is not below a Cartwheel mount, which has to be of this version, on Linux or macOS")
	case err != nil:
		return earlier.Moment{}, fault.FromOS("command.momentOf", path, err)
	}
	return earlier.ParseMoment(path, data)
}

// howFar says how far a sending or a receiving is.
func howFar(what string, p *sending.Progress) string {
	of := ""
	if n := p.Of.Load(); n > 0 {
		of = fmt.Sprintf(" of %d", n)
	}
	return fmt.Sprintf("%s: %d%s names, %s", what, p.Names.Load(), of, size(p.Bytes.Load()))
}

type snapshotReceiveCmd struct {
	File   string `arg:"" type:"path" help:"What cartwheel snapshot send wrote; - is standard input."`
	Path   string `arg:"" type:"path" help:"Where the copy is, or becomes."`
	From   int64  `placeholder:"BYTES" help:"The file is the stream without its first bytes, which were received before."`
	Plain  bool   `help:"Leave out owners, extended attributes and ACLs."`
	DryRun bool   `help:"Only prove the stream, and say what would be written."`
}

// Help shows how it is called.
func (snapshotReceiveCmd) Help() string {
	return help(`cartwheel snapshot receive /backup/nightly.sent /backup/reports

It writes beside the copy first, and changes that once the stream was proved to its end.`)
}

// receivedView is what the command prints.
type receivedView struct {
	sending.Received
	DryRun bool `json:"dry_run,omitempty"`
}

// Run receives the stream.
func (c snapshotReceiveCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	if c.From < 0 {
		return fault.E(fault.Usage, op, c.File, "--from is 0 or more")
	}
	in := os.Stdin
	if c.File != standard {
		f, err := os.Open(c.File)
		if err != nil {
			return fault.FromOS(op, c.File, err)
		}
		defer f.Close()
		in = f
	}
	p := &sending.Progress{}
	defer progressOf(e.stdio.Err, func() string { return howFar("receiving "+c.File, p) })()
	got, err := sending.Receive(e.ctx, in, sending.Place{Path: c.Path, From: c.From, Plain: c.Plain, DryRun: c.DryRun, Progress: p})
	if err != nil {
		return err
	}
	return e.print(receivedView{got, c.DryRun}, func(w io.Writer) { receivedText(w, &got, c.DryRun) })
}

// receivedText prints what was received for people.
func receivedText(w io.Writer, got *sending.Received, dry bool) {
	verb := "received"
	if dry {
		verb = "would receive"
	}
	since := ""
	if got.Base != "" {
		since = " since " + got.Base
	}
	fmt.Fprintf(w, "%s %s%s: %d names, %s, at %s\n", verb, got.Name, since, got.Changes, size(int64(got.Bytes)), got.At)
}
