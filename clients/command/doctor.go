package command

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// check is one thing that mounting may need.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`
	Detail string `json:"detail"`
}

type doctorCmd struct{}

// Help shows how it is called.
func (doctorCmd) Help() string { return help("cartwheel doctor --json") }

// Run prints every check and fails if one that is needed does not hold.
func (doctorCmd) Run(e *env) error {
	all := checks()
	all = append(all, e.contactCheck())
	bad := 0
	for _, c := range all {
		if c.Needed && !c.OK {
			bad++
		}
	}
	err := e.print(all, func(w io.Writer) {
		for _, c := range all {
			mark := "ok  "
			if !c.OK {
				mark = "note"
				if c.Needed {
					mark = "FAIL"
				}
			}
			fmt.Fprintf(w, "%s  %-18s %s\n", mark, c.Name, c.Detail)
		}
	})
	if err == nil && bad > 0 {
		err = fault.Errorf(fault.NotSupported, "", "doctor", "%d of the things that mounting needs are missing", bad)
	}
	return err
}

func checks() []check {
	switch runtime.GOOS {
	case "linux":
		return linuxChecks()
	case "darwin":
		return []check{exists("macFUSE", "/Library/Filesystems/macfuse.fs", "is not installed: get it from its own site, and allow its system extension")}
	case "windows":
		return []check{exists("WinFsp", `C:\Program Files (x86)\WinFsp\bin\winfsp-x64.dll`, "is not installed: get WinFsp - Windows File System Proxy, Copyright (C) Bill Zissimopoulos, from https://github.com/winfsp/winfsp")}
	}
	return []check{{Name: "system", Needed: true, Detail: runtime.GOOS + " has no binding"}}
}

func exists(name, path, remedy string) check {
	if _, err := os.Stat(path); err != nil {
		return check{Name: name, Needed: true, Detail: remedy}
	}
	return check{Name: name, OK: true, Needed: true, Detail: path}
}

func linuxChecks() []check {
	root := os.Geteuid() == 0
	device := check{Name: "/dev/fuse", Needed: true, OK: true, Detail: "can be opened"}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		device.OK = false
		device.Detail = fmt.Sprintf("cannot be opened (%v): load the module with `modprobe fuse`, or allow this user", err)
	} else {
		f.Close()
	}
	helper := check{Name: "fusermount3", Needed: !root}
	if path, err := exec.LookPath("fusermount3"); err == nil {
		helper.OK, helper.Detail = true, path
	} else {
		helper.Detail = "is not installed (apt-get install fuse3); root can mount without it"
	}
	other := check{Name: "user_allow_other", OK: true, Detail: "mounts of this user may be seen by others"}
	if text, err := os.ReadFile("/etc/fuse.conf"); !root && (err != nil || !hasLine(string(text), "user_allow_other")) {
		other.OK, other.Detail = false, "is not in /etc/fuse.conf: only the mounting user sees the mount"
	}
	return []check{device, helper, other}
}

func hasLine(text, want string) bool {
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) == want {
			return true
		}
	}
	return false
}

func (e *env) contactCheck() check {
	c := check{Name: "cluster"}
	file, err := e.contactFile()
	if err != nil {
		c.Detail = explain(err)
		return c
	}
	if err := e.reach(); err != nil {
		c.Detail = explain(err)
		return c
	}
	c.OK, c.Detail = true, "answers ("+file+")"
	return c
}
