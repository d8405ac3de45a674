package daemon

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
)

// EnvPrefix precedes the environment variables that set configuration keys:
// CARTWHEELD_DATA sets data.
const EnvPrefix = "CARTWHEELD_"

// layer is one source of settings, as koanf wants it.
type layer map[string]any

func (l layer) ReadBytes() ([]byte, error)    { return nil, errors.ErrUnsupported }
func (l layer) Read() (map[string]any, error) { return l, nil }

// LoadConfig joins the defaults, the file (if named), the environment and the
// flags, the later over the earlier, and refuses keys that nobody knows. It
// does not validate the values: Config.Validate does.
func LoadConfig(file string, environ []string, flags map[string]any) (server.Config, error) {
	const op fault.Op = "daemon.LoadConfig"
	config := server.DefaultConfig()
	k := koanf.New(".")
	if file != "" {
		values, err := readFile(file)
		if err != nil {
			return config, fault.Wrap(fault.Invalid, op, file, err)
		}
		if err := refuseUnknown(values, file); err != nil {
			return config, err
		}
		if err := k.Load(layer(values), nil); err != nil {
			return config, fault.Wrap(fault.Invalid, op, file, err)
		}
	}
	env := fromEnvironment(environ)
	if err := refuseUnknown(env, "environment"); err != nil {
		return config, err
	}
	for _, l := range []layer{env, flags} {
		if err := k.Load(l, nil); err != nil {
			return config, fault.Wrap(fault.Invalid, op, "configuration", err)
		}
	}
	if err := k.Unmarshal("", &config); err != nil {
		return config, fault.Wrap(fault.Invalid, op, "configuration", err)
	}
	return config, nil
}

func readFile(name string) (map[string]any, error) {
	const op fault.Op = "daemon.readFile"
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.E(fault.NotFound, op, name, "there is no such configuration file; name another with --config")
	}
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return values, nil
}

// fromEnvironment picks our variables; lists are separated by commas.
func fromEnvironment(environ []string) map[string]any {
	lists := keysOf(reflect.Slice)
	out := map[string]any{}
	for _, e := range environ {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key := strings.ToLower(strings.TrimPrefix(name, EnvPrefix))
		if lists[key] {
			out[key] = strings.Split(value, ",")
		} else {
			out[key] = value
		}
	}
	return out
}

func refuseUnknown(values map[string]any, where string) error {
	const op fault.Op = "daemon.LoadConfig"
	known := keysOf(reflect.Invalid)
	var unknown []string
	for key := range values {
		if !known[key] {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	sort.Strings(unknown)
	return fault.E(fault.Invalid, op, where, "unknown keys: "+strings.Join(unknown, ", "))
}

// keysOf returns the configuration's keys of one kind; Invalid means all.
func keysOf(kind reflect.Kind) map[string]bool {
	out := map[string]bool{}
	t := reflect.TypeFor[server.Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		if kind == reflect.Invalid || f.Type.Kind() == kind {
			out[f.Tag.Get("koanf")] = true
		}
	}
	return out
}
