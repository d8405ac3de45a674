package wan

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// standstill tells what a process that does not answer is at: its threads, how much
// processor time it used, and which threads of others may keep it from a processor.
func standstill(pid int) string {
	var own, others []thread
	dirs, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		switch t, ok := readThread(dir); {
		case !ok: // it has ended
		case strings.HasPrefix(dir, fmt.Sprintf("/proc/%d/", pid)):
			own = append(own, t)
		case t.policy != 0 && t.state == "R":
			others = append(others, t)
		}
	}
	var used time.Duration
	for _, t := range own {
		used += t.used
	}
	return fmt.Sprintf("its threads: %s; they used %v of processor time; real-time threads of others that run or could: %s", count(own), used, count(others))
}

// thread is one line of what Linux tells of a thread.
type thread struct {
	name, state, wait string
	rank, policy      int
	used              time.Duration
}

// Fields of a thread's stat in /proc, behind its name, and the length of what they
// count processor time in.
const (
	statUser, statSystem = 11, 12
	statRank, statPolicy = 37, 38
	statTick             = 10 * time.Millisecond
)

func readThread(dir string) (thread, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	before, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if err != nil || len(fields) <= statPolicy {
		return thread{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i]) // the kernel's are numbers
		return n
	}
	_, name, _ := strings.Cut(before, "(")
	wait, _ := os.ReadFile(filepath.Join(dir, "wchan")) // not every kernel tells
	return thread{
		name: name, state: fields[0], wait: string(wait), rank: number(statRank), policy: number(statPolicy),
		used: time.Duration(number(statUser)+number(statSystem)) * statTick,
	}, true
}

// count tells how many of the threads do what.
func count(threads []thread) string {
	alike := map[string]int{}
	for _, t := range threads {
		alike[fmt.Sprintf("%s %s %s priority %d policy %d", t.name, t.state, t.wait, t.rank, t.policy)]++
	}
	if len(threads) == 0 {
		return "none"
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(alike)) {
		out = append(out, fmt.Sprintf("%d %s", alike[what], what))
	}
	return strings.Join(out, ", ")
}
