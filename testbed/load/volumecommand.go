package load

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
)

type volumeFlags struct {
	Way     string        `arg:"" enum:"make,work" help:"make or work."`
	Contact string        `help:"Contact file." type:"path" required:""`
	Site    string        `help:"Site where the client stands."`
	Cues    string        `help:"Path of cues under which make makes the folder." default:"/"`
	Folder  string        `help:"Name of the boxes' folder in the root." required:""`
	Plain   bool          `help:"The boxes are ordinary directories, not volumes."`
	Boxes   int           `help:"Boxes." default:"8"`
	Planted int           `help:"Files of each box that are there before." default:"4"`
	Sizes   string        `enum:"mail,photo,small" help:"Sizes of the files: mail, photo or small." default:"mail"`
	Seed    uint64        `help:"Seed of what they hold." default:"1"`
	Worker  string        `help:"Begins the names of this process's files." default:"w"`
	Workers int           `help:"Workers at once." default:"1"`
	For     time.Duration `help:"How long." default:"10s"`
	Each    int           `help:"Operations of each worker; 0: as many as there is time for." default:"0"`
	Create  int           `help:"Part of creates." default:"4"`
	Read    int           `help:"Part of reads." default:"2"`
	Delete  int           `help:"Part of deletions." default:"3"`
}

func (f volumeFlags) run(ctx context.Context) (any, error) {
	if f.Boxes < 1 || f.Planted < 1 {
		return nil, fault.E(fault.Usage, "load.volumes", "boxes", "there is one box at least, with one planted file")
	}
	o := BoxOptions{Contact: f.Contact, Site: f.Site, Folder: "/" + f.Folder, Plain: f.Plain, Boxes: f.Boxes, Planted: f.Planted, Sizes: BoxSizes(f.Sizes), Seed: f.Seed,
		Worker: f.Worker, Workers: f.Workers, For: f.For, Each: f.Each, Create: f.Create, Read: f.Read, Delete: f.Delete}
	if f.Way == "make" {
		return nil, MakeBoxes(ctx, o, f.Cues)
	}
	return orNothing(WorkInBoxes(ctx, o))
}
