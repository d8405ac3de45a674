package load

import "context"

type wordFlags struct {
	Way     string `arg:"" enum:"plant,count,merge" help:"plant, count or merge."`
	Dir     string `arg:"" help:"The folder of the texts, which is there." type:"path"`
	Out     string `help:"The folder of the results, which is there." type:"path"`
	Files   int    `help:"Texts." default:"10"`
	Bytes   int    `help:"Bytes of each text." default:"1048576"`
	Worker  int    `help:"This worker's number, from 0." default:"0"`
	Workers int    `help:"Workers that share the texts." default:"1"`
	Seed    uint64 `help:"Seed of the texts." default:"1"`
}

func (f wordFlags) run(ctx context.Context) (any, error) {
	o := WordOptions{Dir: f.Dir, Out: f.Out, Files: f.Files, Bytes: f.Bytes, Seed: f.Seed, Worker: f.Worker, Workers: f.Workers}
	switch f.Way {
	case "plant":
		return orNothing(PlantWords(ctx, o))
	case "count":
		return orNothing(CountWords(ctx, o))
	}
	return orNothing(MergeWords(ctx, o))
}
