package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"cartwheel.dev/clients/where"
	"cartwheel.dev/geo-config/fault"
)

type whereCmd struct {
	Path string `arg:"" help:"A file or directory below a mount." type:"path"`
}

// Help shows how it is called.
func (whereCmd) Help() string { return help("cartwheel where cartwheel-demo/tokyo/hello") }

// Run asks the mount.
func (w whereCmd) Run(e *env) error {
	v, err := whereOf(w.Path)
	if err != nil {
		return err
	}
	return e.print(v, func(out io.Writer) { whereText(out, &v) })
}

// whereOf asks the mount where a path is.
func whereOf(path string) (where.View, error) {
	const op fault.Op = "command.whereOf"
	data, err := getxattr(path, where.Attribute)
	if err != nil {
		if errors.Is(err, fault.NoAttribute.Errno()) || errors.Is(err, errors.ErrUnsupported) {
			return where.View{}, fault.E(fault.NotFound, op, path, "is not below a Cartwheel mount")
		}
		return where.View{}, fault.FromOS(op, path, err)
	}
	return where.Parse(path, data)
}

// whereText prints a view for people.
func whereText(w io.Writer, v *where.View) {
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
