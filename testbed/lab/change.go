package lab

import (
	"sort"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/topology"
)

// maxPathDelay is what the emulator holds packets for at the most.
const maxPathDelay = 10 * time.Second

// ParseChange reads a change from texts by the names of its fields, such as
// loss: "0.1 %". The rate may be "none": no limit.
func ParseChange(texts map[string]string) (Change, error) {
	const op fault.Op = "lab.ParseChange"
	var c Change
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	fields := c.fields()
	for _, name := range names {
		read, ok := fields[name]
		if !ok {
			var known []string
			for k := range fields {
				known = append(known, k)
			}
			sort.Strings(known)
			return c, fault.E(fault.Usage, op, name, "is nothing that a path has"+topology.SuggestOf(name, known))
		}
		if err := read(texts[name]); err != nil {
			return c, &fault.Error{Kind: fault.Usage, Op: op, Subject: name, Cause: err}
		}
	}
	return c, nil
}

// ChangeFields are the names that ParseChange knows.
func ChangeFields() []string {
	var c Change
	var names []string
	for name := range c.fields() {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (c *Change) fields() map[string]func(string) error {
	return map[string]func(string) error{
		"delay":     field(&c.Delay, delay),
		"jitter":    field(&c.Jitter, delay),
		"rate":      field(&c.Rate, limit),
		"queue":     field(&c.Queue, topology.ParseSize),
		"loss":      field(&c.Loss, topology.ParseShare),
		"burst":     field(&c.Burst, burst),
		"duplicate": field(&c.Duplicate, topology.ParseShare),
		"reorder":   field(&c.Reorder, topology.ParseShare),
		"corrupt":   field(&c.Corrupt, topology.ParseShare),
	}
}

func field[T any](into **T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		v, err := parse(text)
		if err == nil {
			*into = &v
		}
		return err
	}
}

func delay(text string) (time.Duration, error) {
	d, err := topology.ParseTime(text)
	if err == nil && d > maxPathDelay {
		err = fault.Errorf(fault.Usage, "", text, "is more than %v", maxPathDelay)
	}
	return d, err
}

func limit(text string) (topology.Rate, error) {
	if text == "none" {
		return 0, nil
	}
	return topology.ParseRate(text)
}

func burst(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 1 && v <= 1e6) {
		return 0, fault.E(fault.Usage, "", text, "is no number of packets from 1 to 1000000")
	}
	return v, nil
}
