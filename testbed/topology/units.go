package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Limits of what one link has.
const (
	maxRate  = Rate(10e9)
	minRate  = Rate(1e3)
	maxQueue = 1 << 30 // bytes
)

// Rate is in bits per second.
type Rate int64

// String writes a rate with the largest unit that leaves it exact.
func (r Rate) String() string {
	for _, u := range []struct {
		name string
		of   Rate
	}{{"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}} {
		if r >= u.of && r%u.of == 0 {
			return fmt.Sprintf("%d %s", r/u.of, u.name)
		}
	}
	return fmt.Sprintf("%d bps", int64(r))
}

// split separates a number from its unit: "6 Mbps", "0.1%", "100ms".
func split(text string) (value float64, unit string, err error) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	value, err = strconv.ParseFloat(text[:end], 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, "", fmt.Errorf("%q is no number", text)
	}
	return value, strings.TrimSpace(text[end:]), nil
}

func unitError(text, what, example string) error {
	return fault.Errorf(fault.Usage, "topology.units", text, "is no %s; write it as %s", what, example)
}

// ParseRate reads a rate such as "6 Mbps", "100 Mbit/s" or "400kbps". It is
// above zero.
func ParseRate(text string) (Rate, error) {
	const example = `"6 Mbps", "400 kbps" or "1 Gbps"`
	value, unit, err := split(text)
	if err != nil {
		return 0, unitError(text, "rate", example)
	}
	if value <= 0 {
		return 0, fault.E(fault.Usage, "topology.ParseRate", text, "a rate is above 0; leave it out for no limit, and cut the link to stop it")
	}
	factor, ok := map[string]float64{
		"bps": 1, "bit/s": 1, "kbps": 1e3, "kbit/s": 1e3, "mbps": 1e6, "mbit/s": 1e6, "gbps": 1e9, "gbit/s": 1e9,
	}[strings.ToLower(unit)]
	if !ok {
		return 0, unitError(text, "rate", example)
	}
	r := Rate(math.Round(value * factor))
	if r < minRate || r > maxRate {
		return 0, fault.Errorf(fault.Usage, "topology.ParseRate", text, "is out of range: %v to %v", minRate, maxRate)
	}
	return r, nil
}

// ParseTime reads a time such as "100 ms", "22ms", "0.3 s". It is not negative.
func ParseTime(text string) (time.Duration, error) {
	const example = `"100 ms", "250 us" or "1.5 s"`
	if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil && d >= 0 {
		return d, nil
	}
	value, unit, err := split(text)
	if err != nil {
		return 0, unitError(text, "time", example)
	}
	factor, ok := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9, "h": 3600e9}[unit]
	if !ok {
		return 0, unitError(text, "time", example)
	}
	if value < 0 {
		return 0, fault.E(fault.Usage, "topology.ParseTime", text, "a time is not negative")
	}
	if ns := value * factor; ns < math.MaxInt64/2 {
		return time.Duration(math.Round(ns)), nil
	}
	return 0, fault.E(fault.Usage, "topology.ParseTime", text, "is too long")
}

// ParseShare reads a share such as "0.1 %" or 0.001. It is from 0 to 1.
func ParseShare(text string) (float64, error) {
	value, unit, err := split(text)
	if err != nil || unit != "" && unit != "%" {
		return 0, unitError(text, "share", `"0.1 %" or 0.001`)
	}
	if unit == "%" {
		value /= 100
	}
	if value < 0 || value > 1 {
		return 0, fault.E(fault.Usage, "topology.ParseShare", text, "a share is from 0 to 1, or 0 % to 100 %")
	}
	return value, nil
}

// ParseSize reads a size such as "64 KiB" or "1500 B". It is above zero.
func ParseSize(text string) (int64, error) {
	value, unit, err := split(text)
	if err == nil {
		factor, ok := map[string]float64{
			"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
		}[strings.ToLower(unit)]
		if size := value * factor; ok && size >= 1 && size <= maxQueue {
			return int64(math.Round(size)), nil
		}
	}
	return 0, unitError(text, "size", `"64 KiB" or "1500 B", to 1 GiB`)
}

// sizeText and timeText write what the parsers read.
func sizeText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func timeText(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
}
