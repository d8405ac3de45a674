package report

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Versions are what a run depends on beside its topology and seed.
type Versions struct {
	Cartwheel string `json:"cartwheel"` // git describe
	Go        string `json:"go"`
	Kernel    string `json:"kernel"`
	Machine   string `json:"machine"`
	CPUs      int    `json:"cpus"`
}

func versions(cartwheel string) Versions {
	if cartwheel == "" {
		cartwheel = describe()
	}
	v := Versions{Cartwheel: cartwheel, Go: runtime.Version(), CPUs: runtime.NumCPU()}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		v.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
		v.Machine = unix.ByteSliceToString(u.Machine[:])
	}
	return v
}

// describe asks git; a run outside of a clone has no version but its programs'.
func describe() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// load is the load average of the last minute, or -1 where nothing tells.
func load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(data), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return v
}
