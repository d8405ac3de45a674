package join

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// NodeFile is the least that a node's configuration file says.
type NodeFile struct {
	Data string
	Site ids.Site
	// Address is the IP address at which others reach the node.
	Address   string
	Port      int
	GeoConfig []string
}

// Check refuses what no node could start with, and a file that is there.
func (f NodeFile) Check(path string) error {
	const op fault.Op = "join.Check"
	if f.Port < 1 || f.Port > 65535 {
		return fault.Errorf(fault.Usage, op, "--port", "is %d; between 1 and 65535", f.Port)
	}
	if ip := net.ParseIP(f.Address); ip == nil || ip.IsUnspecified() {
		return fault.E(fault.Usage, op, "--address "+f.Address, "is no IP address at which others reach this machine")
	}
	if _, err := os.Stat(path); err == nil {
		return fault.E(fault.Exists, op, path, "is there already: this machine is configured; name another file with --config, and another --data, for a second node")
	} else if !errors.Is(err, os.ErrNotExist) {
		return fault.FromOS(op, path, err)
	}
	return nil
}

// Advertise is the multiaddress at which others reach the node.
func (f NodeFile) Advertise() string { return Multiaddress(f.Address, f.Port) }

// Multiaddress writes an IP address and a TCP port as nodes take them.
func Multiaddress(ip string, port int) string {
	kind := "ip4"
	if net.ParseIP(ip).To4() == nil {
		kind = "ip6"
	}
	return fmt.Sprintf("/%s/%s/tcp/%d", kind, ip, port)
}

// ListenOn is the multiaddress to listen on, at all of the machine's addresses
// of the same kind.
func ListenOn(ip string, port int) string {
	if net.ParseIP(ip).To4() == nil {
		return Multiaddress("::", port)
	}
	return Multiaddress("0.0.0.0", port)
}

// Write writes the file, which must not be there.
func (f NodeFile) Write(path string) error {
	const op fault.Op = "join.Write"
	text := fmt.Sprintf("data: %q\nsite: %q\nlisten: [%q]\nadvertise: [%q]\ngeo_config: [%s]\n",
		f.Data, f.Site, ListenOn(f.Address, f.Port), f.Advertise(), quoted(f.GeoConfig))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.FromOS(op, path, err)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fault.FromOS(op, path, err)
	}
	_, err = out.WriteString(text)
	if err == nil {
		err = out.Sync()
	}
	return fault.FromOS(op, path, errors.Join(err, out.Close()))
}

func quoted(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, fmt.Sprintf("%q", w))
	}
	return strings.Join(out, ", ")
}
