package load

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"cartwheel.dev/geo-config/fault"
	"github.com/alecthomas/kong"
)

type treeFlags struct {
	Work    TreeWork `arg:"" help:"copy, list, grep or delete."`
	Target  string   `arg:"" help:"The folder to make, list, search or remove." type:"path"`
	Source  string   `help:"The local folder that is copied." type:"path"`
	Workers int      `help:"Workers at once; 0: cp, ls, grep and rm, one thing after the other." default:"0"`
	Pattern string   `help:"What grep looks for." default:"func main"`
}

type objectFlags struct {
	Dir     string        `arg:"" help:"The folder: a path, or with --contact one from the root of the cluster's tree."`
	Contact string        `help:"Contact file: go through the client library, not through a mount." type:"path"`
	Site    string        `help:"Site where that client stands."`
	Count   int           `help:"Objects." default:"100"`
	Bytes   int           `help:"Bytes of each." default:"1024"`
	Lists   int           `help:"Listings." default:"10"`
	Seed    uint64        `help:"Seed of what they hold." default:"1"`
	Pause   time.Duration `help:"Time between two operations." default:"0s"`
}

type streamFlags struct {
	Way  string `arg:"" enum:"write,read" help:"write or read."`
	File string `arg:"" help:"The file." type:"path"`
	Size int64  `help:"Its bytes." default:"67108864"`
	Seed uint64 `help:"Seed of what it holds." default:"1"`
}

type setFlags struct {
	Way    string `arg:"" enum:"plant,read" help:"plant or read."`
	Dir    string `arg:"" help:"The folder of all owners' folders." type:"path"`
	Owners int    `help:"Owners." default:"2"`
	Own    int    `help:"The owner that plants, or does not read its own." default:"0"`
	Files  int    `help:"Files of each owner." default:"10"`
	Bytes  int    `help:"Bytes of each file." default:"1048576"`
	Reads  int    `help:"Files that are read." default:"10"`
	Seed   uint64 `help:"Seed of what they hold." default:"1"`
}

func (f setFlags) run(ctx context.Context) (any, error) {
	o := SetOptions{Dir: f.Dir, Owners: f.Owners, Own: f.Own, Files: f.Files, Bytes: f.Bytes, Reads: f.Reads, Seed: f.Seed}
	if f.Way == "plant" {
		return nil, PlantSet(ctx, o)
	}
	return orNothing(ReadSet(ctx, o))
}

type pingFlags struct {
	Dir    string            `arg:"" help:"The folder, which holds one for each host." type:"path"`
	Host   string            `help:"This host." required:""`
	Peer   map[string]string `help:"Another host: NAME=ADDRESS:PORT." required:""`
	For    time.Duration     `help:"How long." default:"10s"`
	Every  time.Duration     `help:"From one measurement to the next." default:"1s"`
	Events string            `help:"File of the events." type:"path" required:""`
}

func (f pingFlags) run(ctx context.Context) error {
	o := PingOptions{Dir: f.Dir, Host: f.Host, Peers: f.Peer, For: f.For, Every: f.Every}
	return into(f.Events, func(out io.Writer) error { return Pings(ctx, o, out) })
}

// into has fn write a file.
func into(file string, fn func(out io.Writer) error) error {
	out, err := os.Create(file)
	if err != nil {
		return fault.FromOS("load.into", file, err)
	}
	return errors.Join(fn(out), out.Close())
}

type writerFlags struct {
	Dir     string        `arg:"" help:"The folder, which is there." type:"path"`
	Workers int           `help:"Workers." default:"4"`
	For     time.Duration `help:"How long." default:"10s"`
	Bytes   int           `help:"Bytes of each file." default:"2048"`
	Seed    uint64        `help:"Seed." default:"1"`
	Pause   time.Duration `help:"Time between two operations of a worker." default:"0s"`
	Events  string        `help:"File of the events: written by writers, read by verify." type:"path" required:""`
}

func (f writerFlags) options() WriterOptions {
	return WriterOptions{Dir: f.Dir, Workers: f.Workers, For: f.For, Bytes: f.Bytes, Seed: f.Seed, Pause: f.Pause}
}

type latencyFlags struct {
	Dir    string `arg:"" help:"The folder; made if it is not there." type:"path"`
	Rounds int    `help:"Files." default:"20"`
	Bytes  int    `help:"Bytes of each." default:"1024"`
	Seed   uint64 `help:"Seed of what they hold." default:"1"`
}

type sessionFlags struct {
	Contact string        `help:"Contact file." type:"path" required:""`
	Site    string        `help:"Site where the client stands."`
	Nodes   string        `help:"Site whose nodes are asked; all if none is named."`
	For     time.Duration `help:"How long." default:"10s"`
	Every   time.Duration `help:"From one keep-alive to the next." default:"200ms"`
}

type nameFlags struct {
	Way     string `arg:"" enum:"make,list" help:"make or list."`
	Dir     string `arg:"" help:"The folder, which is there." type:"path"`
	First   int    `help:"Number of the first file that is made." default:"0"`
	Count   int    `help:"Files that are made." default:"1000"`
	Each    int    `help:"Files of each folder in it." default:"1000"`
	Workers int    `help:"Workers at once." default:"8"`
}

func (f nameFlags) run(ctx context.Context) (any, error) {
	if f.Way == "list" {
		return orNothing(ListNames(ctx, f.Dir))
	}
	return orNothing(MakeNames(ctx, NameOptions{Dir: f.Dir, First: f.First, Count: f.Count, Each: f.Each, Workers: f.Workers}))
}

// flags are the works; Main runs one of them.
type flags struct {
	Tree     treeFlags    `cmd:"" help:"Copy, list, search or delete a tree."`
	Objects  objectFlags  `cmd:"" help:"Put, get, list and delete small objects."`
	Stream   streamFlags  `cmd:"" help:"Write or read one large file."`
	Set      setFlags     `cmd:"" help:"Plant a set of files, or read those of others."`
	Writers  writerFlags  `cmd:"" help:"Work on files of one's own, and note what was acknowledged."`
	Verify   writerFlags  `cmd:"" help:"Look for what writers noted as acknowledged."`
	Latency  latencyFlags `cmd:"" help:"Time single writes and first reads of small files."`
	Sessions sessionFlags `cmd:"" help:"Keep sessions alive and time the keep-alives."`
	Pings    pingFlags    `cmd:"" help:"Measure round trips, write them to a file, and read those of other hosts."`
	Web      webFlags     `cmd:"" help:"Ask for random pages of a web site by proxies, and note what came."`
	Fetch    fetchFlags   `cmd:"" help:"Download a page from a web site."`
	Origin   originFlags  `cmd:"" help:"Serve the pages of a web site, and note who asked."`
	Mail     mailFlags    `cmd:"" help:"Send mail by SMTP and read it by IMAP, and note what was answered."`
	Boxes    mailboxFlags `cmd:"" help:"Read the maildirs of all users."`
	Volumes  volumeFlags  `cmd:"" help:"Create, read and delete files of volumes or directories."`
	Words    wordFlags    `cmd:"" help:"Write texts, count their words into partial results, and merge these."`
	Names    nameFlags    `cmd:"" help:"Make very many empty files, or list a folder."`
	Cold     struct {
		Dir string `arg:"" help:"A folder of the mount." type:"path"`
	} `cmd:"" help:"Drop a mount's caches and the kernel's."`
}

// Main does one work and prints its result to out as JSON.
func Main(ctx context.Context, args []string, out io.Writer) error {
	const op fault.Op = "load.Main"
	var f flags
	k, err := kong.New(&f, kong.Name("load"), kong.Description("Does one piece of an experiment's work and prints what came of it as JSON."))
	if err != nil {
		return fault.Wrap(fault.Other, op, "", err)
	}
	parsed, err := k.Parse(args)
	if err != nil {
		return fault.Wrap(fault.Usage, op, "", err)
	}
	result, err := f.run(ctx, parsed.Selected().Name, out)
	if result != nil {
		err = errors.Join(err, json.NewEncoder(out).Encode(result))
	}
	return err
}

// run does the work of that name; a result may come with an error. out is for
// what a work says while it goes on.
func (f *flags) run(ctx context.Context, name string, out io.Writer) (any, error) {
	switch name {
	case "tree":
		t := f.Tree
		r, err := DoTree(ctx, t.Work, TreeOptions{Source: t.Source, Target: t.Target, Workers: t.Workers, Pattern: t.Pattern})
		return r, err
	case "objects":
		return f.Objects.run(ctx)
	case "stream":
		if f.Stream.Way == "write" {
			return orNothing(WriteStream(ctx, f.Stream.File, f.Stream.Size, f.Stream.Seed))
		}
		return orNothing(ReadStream(ctx, f.Stream.File, f.Stream.Size, f.Stream.Seed))
	case "set":
		return f.Set.run(ctx)
	case "latency":
		return orNothing(Latency(ctx, LatencyOptions(f.Latency)))
	case "sessions":
		return orNothing(Sessions(ctx, SessionOptions(f.Sessions)))
	case "pings":
		return nil, f.Pings.run(ctx)
	case "web":
		return nil, f.Web.run(ctx)
	case "fetch":
		return f.Fetch.run(ctx)
	case "origin":
		return nil, f.Origin.run(ctx, out)
	case "mail":
		return nil, f.Mail.run(ctx)
	case "boxes":
		return orNothing(Mailboxes(ctx, f.Boxes.Dir))
	case "volumes":
		return f.Volumes.run(ctx)
	case "words":
		return f.Words.run(ctx)
	case "names":
		return f.Names.run(ctx)
	case "writers":
		return nil, f.Writers.write(ctx)
	case "verify":
		return f.Verify.verify(ctx)
	}
	return nil, Cold(f.Cold.Dir)
}

// orNothing gives a result only where there is no error.
func orNothing[T any](r T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (f objectFlags) run(ctx context.Context) (any, error) {
	o := ObjectOptions{Count: f.Count, Bytes: f.Bytes, Lists: f.Lists, Seed: f.Seed, Pause: f.Pause}
	if f.Contact == "" {
		return orNothing(DoObjects(ctx, Folder(f.Dir), o))
	}
	l, err := OpenLibrary(ctx, f.Contact, f.Site, f.Dir)
	if err != nil {
		return nil, err
	}
	r, err := DoObjects(ctx, l, o)
	return orNothing(r, errors.Join(err, l.Close()))
}

func (f writerFlags) write(ctx context.Context) error {
	return into(f.Events, func(out io.Writer) error { return Writers(ctx, f.options(), out) })
}

func (f writerFlags) verify(ctx context.Context) (any, error) {
	in, err := os.Open(f.Events)
	if err != nil {
		return nil, fault.FromOS("load.verify", f.Events, err)
	}
	defer in.Close()
	events, err := ReadEvents(in)
	if err != nil {
		return nil, err
	}
	return orNothing(Verify(ctx, f.Dir, events, f.options()))
}
