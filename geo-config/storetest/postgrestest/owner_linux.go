package postgrestest

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// quit makes PostgreSQL end at once with all its processes.
const quit = syscall.SIGQUIT

// owner is the user that a server runs as; nil: this process's.
type owner struct{ credential *syscall.Credential }

// account finds a user for the server, which refuses to run as root.
func account() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return owner{}, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// own gives a directory to the user.
func (o owner) own(dir string) error {
	if o.credential == nil {
		return nil
	}
	return os.Chown(dir, int(o.credential.Uid), int(o.credential.Gid))
}

// attributes start a process as the user, so that it ends with this process.
func (o owner) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: o.credential, Pdeathsig: quit, Setpgid: true}
}
