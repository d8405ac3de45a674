package replicatest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Script runs scenarios on a cluster where nothing goes wrong but what the
// scenario says. Its words, one command a line:
//
//	cluster nodes=4 level=3 seed=7   a new cluster; must come first
//	cluster keep=1024 reads=no       whose machines remember little (see Options)
//	run 500ms                        lets time pass
//	write k0 v1                      one write at the active, tried for 5 s
//	write k0 v1 level=2 at=n0        at another machine, at another level, once
//	writes 60                        that many writes of k0
//	read k0 n1                       a read at a machine, under its lease
//	crash n0 / start n0              loses what is not synced / starts again
//	remember n0 / rollback n0        keeps the state of the disk / crashes, and has it again
//	rot n0 3                         crashes, and lost the last 3 records of its journal
//	wipe n0                          crashes, and has another, empty data directory
//	pause n0 2s                      stands still while its clock runs on
//	isolate n0 / join n0             no message from or to other machines / again
//	cut n0 n1                        none from n0 to n1 only; so n0 config, config n0
//	learn n0                         gets the row from geo-config after all
//	far n2 20ms                      takes so much longer each way
//	heal                             all links work again
//	config away / config back        geo-config answers nothing / again
//	stall n0 2s                      the disk syncs nothing for a while
//	save n0                          a checkpoint; the journal keeps what it must
//	save n0 from=3                   and all entries from that serial on
//	leave n1                         says that it is about to stop
//	handover n1                      asks the active to hand over
//	add n3                           asks the active to take in a machine
//	wait leading n1 / wait whole     until so; says how many leases it took
//	row                              what geo-config has
//	state k0                         the value at every machine that runs
type Script struct {
	w      *World
	number uint64
}

// Do runs one command and returns what it has to say.
func (s *Script) Do(line string) (string, error) {
	f := strings.Fields(line)
	options := map[string]string{}
	var args []string
	for _, word := range f[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			options[k] = v
		} else {
			args = append(args, word)
		}
	}
	if f[0] == "cluster" {
		return "", s.cluster(options)
	}
	if s.w == nil {
		return "", fault.E(fault.Usage, "replicatest.Do", line, "no cluster yet")
	}
	switch f[0] {
	case "write":
		return s.write(args, options), nil
	case "writes", "read", "state", "row", "wait":
		return s.look(f[0], args), nil
	}
	if from, err := strconv.Atoi(options["from"]); err == nil && f[0] == "save" {
		s.machine(args[0]).saveFrom(ids.Serial(from))
		return "", nil
	}
	return "", s.disturb(f[0], args)
}

func (s *Script) cluster(o map[string]string) error {
	number := func(name string, otherwise int) int {
		if v, err := strconv.Atoi(o[name]); err == nil {
			return v
		}
		return otherwise
	}
	s.w = New(Options{Seed: uint64(number("seed", 1)), Nodes: number("nodes", 3), Level: number("level", 3),
		Keep: number("keep", 0), NoReads: o["reads"] == "no"})
	s.w.calm = true
	s.number = 0
	s.w.Run(10 * tickEvery)
	return nil
}

// write proposes and waits; where no machine is named, it is tried again as a
// client would, under the same number.
func (s *Script) write(args []string, options map[string]string) string {
	level, _ := strconv.Atoi(options["level"])
	s.number++
	op := &operation{id: 77, write: true, key: args[0], value: args[1], level: uint32(level)}
	number := s.number
	for try := 0; try < 50; try++ {
		m := s.w.byID[s.w.config.row.Active]
		if at := options["at"]; at != "" {
			m = s.machine(at)
		}
		var got *answer
		m.do(func() {
			m.write(op, number, number, func(a answer) {
				if a.kind != fault.NotActive { // else it is tried again after a while
					got = &a
				}
			})
		})
		for end := s.w.now + Lease/3; got == nil && s.w.now < end; {
			s.w.Run(time.Millisecond)
		}
		switch {
		case got != nil && got.kind == fault.None:
			return "done"
		case options["at"] != "" && got == nil:
			return "no answer"
		case options["at"] != "":
			return got.kind.String()
		}
	}
	return "not done"
}

func (s *Script) machine(name string) *machine {
	for _, m := range s.w.machines {
		if string(m.id) == name {
			return m
		}
	}
	panic("no machine " + name)
}

// end returns the number of a machine, or of geo-config, in the network.
func (s *Script) end(name string) int {
	if name == "config" {
		return configIndex
	}
	return s.machine(name).index
}

// look answers the words that change nothing but time.
func (s *Script) look(word string, args []string) string {
	switch word {
	case "writes":
		n, _ := strconv.Atoi(args[0])
		done := 0
		for i := range n {
			if s.write([]string{"k0", fmt.Sprint(i)}, nil) == "done" {
				done++
			}
		}
		return fmt.Sprintf("%d done", done)
	case "read":
		var out string
		s.machine(args[1]).read(0, args[0], func(a answer) {
			if out = fmt.Sprintf("%q", a.value); a.kind != fault.None {
				out = a.kind.String()
			}
		})
		return out
	case "row":
		return rowText(s.w.config.row)
	case "wait":
		return s.wait(args)
	}
	var b strings.Builder
	for _, m := range s.w.machines {
		if m.up {
			fmt.Fprintf(&b, "%s %q ", m.id, m.state[args[0]])
		}
	}
	return strings.TrimSpace(b.String())
}

func (s *Script) wait(args []string) string {
	start := s.w.now
	for s.w.now-start < 40*Lease {
		ok := args[0] == "whole" && s.w.converged() == ""
		if args[0] == "leading" {
			m := s.machine(args[1])
			ok = m.up && m.core.Until(Slice) > m.clock()
		}
		if ok {
			return fmt.Sprintf("after %.1f leases", float64(s.w.now-start)/float64(Lease))
		}
		s.w.Run(tickEvery)
	}
	return "never: " + s.w.converged()
}

// disturb makes something go wrong, or right again.
func (s *Script) disturb(word string, args []string) error {
	w := s.w
	duration := func(i int) Time {
		d, err := time.ParseDuration(args[i])
		if err != nil {
			panic(err)
		}
		return d
	}
	far := w.now + 1000*time.Hour
	switch word {
	case "run":
		w.Run(duration(0))
	case "crash":
		s.machine(args[0]).crash()
	case "remember", "rollback", "rot", "wipe":
		s.damage(word, args)
	case "start":
		s.machine(args[0]).start()
	case "pause":
		s.machine(args[0]).pause(duration(1))
	case "stall":
		s.machine(args[0]).stallTo = w.now + duration(1)
	case "save":
		s.machine(args[0]).save()
	case "cut":
		w.cut[[2]int{s.end(args[0]), s.end(args[1])}] = far
	case "learn":
		s.machine(args[0]).learn(w.config.row)
	case "far":
		w.far[s.machine(args[0]).index] = duration(1)
	case "isolate", "join":
		m := s.machine(args[0])
		for _, other := range w.machines {
			for _, link := range [][2]int{{m.index, other.index}, {other.index, m.index}} {
				if word == "join" {
					delete(w.cut, link)
				} else {
					w.cut[link] = far
				}
			}
		}
	case "heal":
		clear(w.cut)
	case "config":
		w.config.away = 0
		if args[0] == "away" {
			w.config.away = far
		}
	case "handover":
		m, to := w.byID[w.config.row.Active], s.machine(args[0])
		m.do(func() { m.core.HandOver(m.clock(), Slice, to.id) })
	case "leave":
		m := s.machine(args[0])
		m.do(func() { m.core.Leave(m.clock()) })
	case "add":
		w.add(s.machine(args[0]))
	default:
		return fault.E(fault.Usage, "replicatest.Do", word, "not a word of the script")
	}
	return nil
}

// damage makes a disk lose what was synced.
func (s *Script) damage(word string, args []string) {
	m := s.machine(args[0])
	if word == "remember" {
		m.disk.remember()
		return
	}
	m.crash()
	switch word {
	case "rollback":
		m.disk.rollBack(m.disk.past[len(m.disk.past)-1])
	case "rot":
		records, _ := strconv.Atoi(args[1])
		m.disk.rot(records)
	case "wipe":
		m.wipe()
	}
}
