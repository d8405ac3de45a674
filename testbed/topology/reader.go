package topology

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
)

// Reader takes a YAML document apart and collects what is wrong with it, each
// with its file and line. The first error of a value is the only one.
type Reader struct {
	file string
	errs []lineError
}

type lineError struct {
	line int
	text string
}

// maxErrors is how many are told at once.
const maxErrors = 20

// NewReader reads one document; file names it in errors. It returns the
// document's top, nil where the text is no YAML at all.
func NewReader(file string, text []byte) (*Reader, *yaml.Node) {
	r := &Reader{file: file}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		r.syntax(err)
		return r, nil
	}
	if len(doc.Content) == 0 {
		r.errs = append(r.errs, lineError{1, "is empty"})
		return r, nil
	}
	return r, doc.Content[0]
}

// syntax takes the line out of the library's text, which is where it puts it.
func (r *Reader) syntax(err error) {
	text, line := err.Error(), 1
	if m := regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`).FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	r.errs = append(r.errs, lineError{line, "is not YAML: " + text})
}

// Bad notes that a value is wrong.
func (r *Reader) Bad(n *yaml.Node, format string, args ...any) {
	line := 1
	if n != nil {
		line = n.Line
	}
	r.errs = append(r.errs, lineError{line, fmt.Sprintf(format, args...)})
}

// BadIf notes an error, where there is one; its method stays out.
func (r *Reader) BadIf(n *yaml.Node, err error) {
	if err == nil {
		return
	}
	var e *fault.Error
	if errors.As(err, &e) && e.Public != "" {
		r.Bad(n, "%s: %s", e.Subject, e.Public)
		return
	}
	r.Bad(n, "%v", err)
}

// Err is everything that was wrong, in the order of the lines.
func (r *Reader) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	sort.SliceStable(r.errs, func(i, j int) bool { return r.errs[i].line < r.errs[j].line })
	var all []error
	for i, e := range r.errs {
		if i == maxErrors {
			all = append(all, fault.Errorf(fault.Invalid, "", r.file, "and %d more", len(r.errs)-i))
			break
		}
		all = append(all, fault.E(fault.Invalid, "", fmt.Sprintf("%s:%d", r.file, e.line), e.text))
	}
	if len(all) == 1 {
		return all[0]
	}
	return &fault.Error{Kind: fault.Invalid, Op: "topology.Parse", Cause: errors.Join(all...)}
}

// Keys maps the keys that a mapping may have to what reads their values.
type Keys map[string]func(*yaml.Node)

// Map reads a mapping. what names it in errors.
func (r *Reader) Map(n *yaml.Node, what string, keys Keys) {
	n = plain(n)
	if n == nil || n.Kind != yaml.MappingNode {
		r.Bad(n, "%s is a list of `key: value`", what)
		return
	}
	var known []string
	for k := range keys {
		known = append(known, k)
	}
	sort.Strings(known)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch read, ok := keys[key.Value]; {
		case !ok:
			hint := Suggest(key.Value, known)
			if hint == "" {
				hint = fmt.Sprintf("; known are %v", known)
			}
			r.Bad(key, "unknown key %q in %s%s", key.Value, what, hint)
		case seen[key.Value]:
			r.Bad(key, "the key %q is there twice", key.Value)
		default:
			read(value)
		}
		seen[key.Value] = true
	}
}

// plain follows an alias to what it stands for.
func plain(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// List reads a sequence, item by item.
func (r *Reader) List(n *yaml.Node, what string, item func(*yaml.Node)) {
	n = plain(n)
	if n.Kind != yaml.SequenceNode {
		r.Bad(n, "%s is a list", what)
		return
	}
	for _, v := range n.Content {
		item(v)
	}
}

// Text reads a scalar.
func (r *Reader) Text(n *yaml.Node, into *string) {
	n = plain(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.Bad(n, "one word or text belongs here")
		return
	}
	*into = n.Value
}

// Count reads a whole number within limits.
func (r *Reader) Count(n *yaml.Node, least, most int, into *int) {
	n = plain(n)
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		r.Bad(n, "%q is no whole number from %d to %d", n.Value, least, most)
		return
	}
	*into = v
}

// Seed reads what starts the chance.
func (r *Reader) Seed(n *yaml.Node, into *uint64) {
	n = plain(n)
	v, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil {
		r.Bad(n, "%q is no seed: a whole number, not negative", n.Value)
		return
	}
	*into = v
}

// Number reads a number within limits; NaN is within none.
func (r *Reader) Number(n *yaml.Node, least, most float64, into *float64) {
	n = plain(n)
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= least && v <= most) {
		r.Bad(n, "%q is no number from %g to %g", n.Value, least, most)
		return
	}
	*into = v
}

// parsed reads a scalar by one of the parsers of units.
func parsed[T any](r *Reader, n *yaml.Node, parse func(string) (T, error), into *T) {
	var text string
	n = plain(n)
	before := len(r.errs)
	if r.Text(n, &text); len(r.errs) > before {
		return
	}
	v, err := parse(text)
	if err != nil {
		r.BadIf(n, err)
		return
	}
	*into = v
}

// Time reads a time with its unit, to a limit.
func (r *Reader) Time(n *yaml.Node, most time.Duration, into *time.Duration) {
	parsed(r, n, func(text string) (time.Duration, error) {
		d, err := ParseTime(text)
		if err == nil && d > most {
			return 0, fault.Errorf(fault.Usage, "", text, "is more than %v", most)
		}
		return d, err
	}, into)
}

// Share reads a share of one.
func (r *Reader) Share(n *yaml.Node, into *float64) { parsed(r, n, ParseShare, into) }

// Rate reads a rate above zero.
func (r *Reader) Rate(n *yaml.Node, into *Rate) { parsed(r, n, ParseRate, into) }

// Size reads a number of bytes.
func (r *Reader) Size(n *yaml.Node, into *int64) { parsed(r, n, ParseSize, into) }
