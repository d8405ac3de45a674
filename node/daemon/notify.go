package daemon

import (
	"net"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// What a process tells the service manager, in the form of sd_notify(3).
const (
	isReady  = "READY=1"
	isEnding = "STOPPING=1"
)

// notify tells the service manager that started this process how it is. Without
// one, which NOTIFY_SOCKET in the environment names, nobody is told.
func (s Stdio) notify(state string) error {
	const op fault.Op = "daemon.notify"
	path := ""
	for _, v := range s.Environ {
		if value, ok := strings.CutPrefix(v, "NOTIFY_SOCKET="); ok {
			path = value
		}
	}
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fault.FromOS(op, path, err)
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return fault.FromOS(op, path, err)
}
