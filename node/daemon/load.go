package daemon

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
)

// EnvPrefix precedes the environment variables that set configuration keys:
// CARTWHEELD_DATA sets data.
const EnvPrefix = "CARTWHEELD_"

// LoadConfig joins the defaults, the file (if named), the environment and the
// flags, the later over the earlier, and refuses keys that nobody knows. It
// does not validate the values: Config.Validate does.
func LoadConfig(file string, environ []string, flags map[string]any) (server.Config, error) {
	config := server.DefaultConfig()
	if file != "" {
		values, err := readFile(file)
		if err != nil {
			return config, fault.Wrap(fault.Invalid, "daemon.LoadConfig", file, err)
		}
		if err := set(&config, values, file); err != nil {
			return config, err
		}
	}
	if err := set(&config, fromEnvironment(environ), "environment"); err != nil {
		return config, err
	}
	return config, set(&config, flags, "command line")
}

// set gives keys of the configuration their values, which come from where.
func set(config *server.Config, values map[string]any, where string) error {
	const op fault.Op = "daemon.set"
	fields := fieldsOf(config)
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		field, known := fields[key]
		if !known {
			unknown = append(unknown, key)
			continue
		}
		var node yaml.Node
		err := node.Encode(values[key])
		if err == nil {
			err = node.Decode(field.Addr().Interface())
		}
		if err != nil {
			return fault.Errorf(fault.Invalid, op, where, "%s: %v is no value for it: %v", key, values[key], err)
		}
	}
	if len(unknown) > 0 {
		return fault.E(fault.Invalid, op, where, "unknown keys: "+strings.Join(unknown, ", "))
	}
	return nil
}

// fieldsOf returns the configuration's fields by their keys, those of its groups
// included.
func fieldsOf(config *server.Config) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	v := reflect.ValueOf(config).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous { // a group has no key of its own
			out[f.Tag.Get("yaml")] = v.FieldByIndex(f.Index)
		}
	}
	return out
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
	fields := fieldsOf(&server.Config{})
	out := map[string]any{}
	for _, e := range environ {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key := strings.ToLower(strings.TrimPrefix(name, EnvPrefix))
		switch field := fields[key]; {
		case field.IsValid() && field.Kind() == reflect.Slice:
			out[key] = strings.Split(value, ",")
		case field.IsValid() && field.Kind() != reflect.String:
			out[key] = &yaml.Node{Kind: yaml.ScalarNode, Value: value} // a number, as in a file
		default:
			out[key] = value
		}
	}
	return out
}
