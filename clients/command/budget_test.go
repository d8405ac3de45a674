package command

import (
	"reflect"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

func TestParseRate_ReadsRatesAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]int64{
		"20 Mbit/s": 20e6, "20Mbit/s": 20e6, "1.5 Gbit/s": 1.5e9, " 20 Mbit ": 20e6, "2.5 MB/s": 20e6, "1000000 bit/s": 1e6, "0": 0, "0 Mbit/s": 0,
	} {
		if got, err := parseRate("--rate", text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "fast", "20", "20 M", "20 Mbit/h", "-5 Mbit/s", "NaN Mbit/s", "9999999 Tbit/s"} {
		if got, err := parseRate("--rate", text); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "20 Mbit/s") {
			t.Errorf("%q: got %d, %v; want a refusal that shows how", text, got, err)
		}
	}
}

func TestParseHours_ReadsAPartOfADay(t *testing.T) {
	for text, want := range map[string]geoconfig.Hours{
		"08:00-18:30": {From: 480, Until: 1110}, "22:00 - 06:00": {From: 1320, Until: 360}, "00:00-23:59": {From: 0, Until: 1439},
	} {
		if got, err := parseHours(text, ""); err != nil || *got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "8", "08:00", "25:00-26:00", "08:60-09:00", "08:00-24:00", "08:00-18:00-20:00"} {
		if got, err := parseHours(text, ""); !fault.Is(err, fault.Usage) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// setting parses the words of a `budget set`.
func setting(t *testing.T, words ...string) budgetSetCmd {
	t.Helper()
	p, g := program(Stdio{})
	if _, err := p.Parse(append([]string{"budget", "set"}, words...)); err != nil {
		t.Fatal(err)
	}
	return g.Budget.Set
}

func TestBudgetSet_HasTheDefaultsOfTheConfiguration(t *testing.T) {
	b, err := setting(t, "rome", "oslo", "--rate", "20 Mbit/s").terms()
	if want := (geoconfig.Budget{Rate: 20e6, Shares: geoconfig.DefaultShares()}); err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("got %+v, %v; want %+v", b, err, want)
	}
}

func TestBudgetSet_TakesEachOption(t *testing.T) {
	b, err := setting(t, "rome", "oslo", "--rate", "20 Mbit/s", "--hours", "22:00-06:00", "--zone", "Europe/Oslo", "--outside", "1 Gbit/s",
		"--replication-share", "30", "--repair-share", "20", "--rebalancing-share", "10").terms()
	want := geoconfig.Budget{Rate: 20e6, Outside: 1e9, Hours: &geoconfig.Hours{From: 1320, Until: 360, Zone: "Europe/Oslo"},
		Shares: geoconfig.Shares{Replication: 30, Repair: 20, Rebalancing: 10}}
	if err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("got %+v, %v; want %+v", b, err, want)
	}
}
