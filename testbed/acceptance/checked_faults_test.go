package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// faultLength is how long most faults last: longer than a lease, so that others
// take over.
const faultLength = 4500 * time.Millisecond

// restLength lies between two faults.
const restLength = 1500 * time.Millisecond

// harm does harm to the lab for a time; then all is healed. What a fault is done
// to is drawn, but each kind has its turn.
func (c *checked) harm(length time.Duration) {
	c.t.Helper()
	began := time.Now()
	faults := []func(){c.killActive, c.pause, c.handOver, c.cut, c.away, c.off, c.kill}
	for turn := 0; time.Since(began) < length && c.wait(restLength); turn++ {
		faults[turn%len(faults)]()
	}
	c.must("fault", "heal")
	for _, s := range checkedSites {
		c.must("fault", "start", s+"-1")
	}
}

// wait lets time pass. It reports whether no program has ended by itself.
func (c *checked) wait(d time.Duration) bool {
	c.t.Helper()
	<-time.After(d)
	for i, r := range c.programs {
		select {
		case <-r.done:
			c.t.Errorf("program %d ended before its time", i)
			return false
		default:
		}
	}
	return true
}

// during does harm with a command, lets it last and takes it back.
func (c *checked) during(d time.Duration, harm, heal []string) {
	c.t.Helper()
	c.t.Logf("%v", harm)
	c.must(append([]string{"fault"}, harm...)...)
	c.wait(d)
	c.must(append([]string{"fault"}, heal...)...)
}

func (c *checked) site() string { return checkedSites[c.chance.IntN(len(checkedSites))] }

func (c *checked) kill() { c.killAt(c.site()) }

func (c *checked) killAt(site string) {
	c.t.Helper()
	c.during(faultLength, []string{"kill", site + "-1", "--what", "node"}, []string{"start", site + "-1"})
}

// killActive kills a node that slices are at: that of the root.
func (c *checked) killActive() {
	c.t.Helper()
	list, err := c.slices()
	if err != nil {
		c.t.Fatal(err)
	}
	c.killAt(list[0].Active.Site)
}

func (c *checked) pause() {
	c.t.Helper()
	site := c.site()
	c.during(faultLength, []string{"pause", site + "-1", "--what", "node"}, []string{"start", site + "-1"})
}

func (c *checked) cut() {
	c.t.Helper()
	a := c.chance.IntN(len(checkedSites))
	b := (a + 1 + c.chance.IntN(2)) % len(checkedSites)
	words := []string{"cut", checkedSites[a], checkedSites[b]}
	if c.chance.IntN(3) == 0 {
		words = append(words, "--one-way")
	}
	c.during(faultLength, words, []string{"heal"})
}

// off cuts a whole site off, with its mount.
func (c *checked) off() {
	c.t.Helper()
	e := &event{Program: -1, What: wasOff, At: c.site(), Begin: now()}
	c.during(faultLength, []string{"off", e.At}, []string{"heal"})
	e.End = now()
	c.offs = append(c.offs, e)
}

// away takes geo-config away.
func (c *checked) away() {
	c.t.Helper()
	host := checkedSites[0] + "-1"
	c.during(faultLength, []string{"kill", host, "--what", "geo-config"}, []string{"start", host})
}

func (c *checked) slices() ([]slice, error) {
	c.t.Helper()
	text, err := c.testbed("shell", checkedSites[0], "--", "cartwheel", "slice", "ls", "--json")
	var list []slice
	if err == nil {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("there is no slice: %s", text)
	}
	return list, err
}

// handOver hands every slice to another site. A member that is not a normal one
// yet is refused.
func (c *checked) handOver() {
	c.t.Helper()
	list, err := c.slices()
	if err != nil {
		c.t.Fatal(err)
	}
	done := 0
	for _, s := range list {
		to := c.site()
		if to == s.Active.Site {
			continue
		}
		_, err := c.testbed("shell", checkedSites[0], "--", "cartwheel", "slice", "hand-over", fmt.Sprint(s.ID), to)
		if err != nil {
			c.t.Logf("hand-over of slice %d from %s to %s: %v", s.ID, s.Active.Site, to, strings.TrimSpace(err.Error()))
			continue
		}
		done++
	}
	c.t.Logf("handed %d of %d slices over", done, len(list))
}
