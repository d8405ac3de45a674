package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// whereAttribute answers, on any path of a mount, with the JSON of status.Where
// for that object, read by the mount itself.
const whereAttribute = "user.cartwheel.where"

type whereCmd struct {
	Path string `arg:"" help:"A file or directory below a mount." type:"path"`
}

// whereView is what where prints.
type whereView struct {
	Path     string            `json:"path"`
	Object   string            `json:"object"`
	Slice    ids.Slice         `json:"slice"`
	Epoch    ids.Epoch         `json:"epoch"`
	Cues     map[string]string `json:"cues"`
	Policy   geoconfig.Policy  `json:"policy"`
	Active   member            `json:"active"`
	Standbys []member          `json:"standbys"`
	Read     struct {
		Node ids.Node `json:"node"`
		Site ids.Site `json:"site"`
		Why  string   `json:"why"`
	} `json:"read"`
	Size    uint64 `json:"size"`
	Version uint64 `json:"version"`
}

// Help shows how it is called.
func (whereCmd) Help() string { return help("cartwheel where cartwheel-demo/tokyo/hello") }

// Run asks the mount.
func (w whereCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	data, err := getxattr(w.Path, whereAttribute)
	if err != nil {
		if errors.Is(err, fault.NoAttribute.Errno()) || errors.Is(err, errors.ErrUnsupported) {
			return fault.E(fault.NotFound, op, w.Path, "is not below a Cartwheel mount")
		}
		return fault.FromOS(op, w.Path, err)
	}
	var r status.Where
	if err := json.Unmarshal(data, &r); err != nil {
		return fault.Wrap(fault.Corrupt, op, w.Path, err)
	}
	v := view(w.Path, r)
	return e.print(v, v.text)
}

func view(path string, r status.Where) whereView {
	v := whereView{
		Path: path, Object: r.Object.String(), Slice: r.Slice, Epoch: r.Epoch, Policy: r.Policy, Size: r.Size, Version: r.Version,
		Cues: map[string]string{}, Active: member{r.Active.Node, r.Active.Site, r.Active.State}, Standbys: []member{},
	}
	for _, c := range r.Cues {
		name, value, _ := strings.Cut(strings.TrimPrefix(c, "."), "=")
		v.Cues[name] = value
	}
	for _, m := range r.Others {
		v.Standbys = append(v.Standbys, member{m.Node, m.Site, m.State})
	}
	v.Read.Node, v.Read.Why = r.Read, r.Why
	for _, m := range append([]status.Member{r.Active}, r.Others...) {
		if m.Node == r.Read {
			v.Read.Site = m.Site
		}
	}
	return v
}

func (v whereView) text(w io.Writer) {
	fmt.Fprintf(w, "%s\n", v.Path)
	fmt.Fprintf(w, "  object    %s, %s, version %d\n", v.Object, size(int64(v.Size)), v.Version)
	cues := "none"
	if len(v.Cues) > 0 {
		var parts []string
		for name, value := range v.Cues {
			parts = append(parts, strings.TrimSuffix("."+name+"="+value, "="))
		}
		cues = strings.Join(parts, " ")
	}
	fmt.Fprintf(w, "  cues      %s\n", cues)
	fmt.Fprintf(w, "  slice     %d, epoch %d, home %s, level %d\n", v.Slice, v.Epoch, v.Policy.Home, v.Policy.Level)
	fmt.Fprintf(w, "  active    %s (%s)\n", v.Active.Site, short(v.Active.Node))
	for _, m := range v.Standbys {
		what := map[string]string{"N": "standby", "R": "junior", "M": "junior", "F": "failed"}[m.State]
		fmt.Fprintf(w, "  %-9s %s (%s)\n", what, m.Site, short(m.Node))
	}
	fmt.Fprintf(w, "  read from %s (%s): %s\n", v.Read.Site, short(v.Read.Node), v.Read.Why)
}
