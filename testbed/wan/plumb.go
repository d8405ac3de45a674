package wan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
)

// Names of devices, and their limits.
const (
	Gateway   = "wan" // the TUN device of a site
	bridge    = "lan" // the bridge of a site
	eth       = "eth0"
	unread    = 4096      // packets that the kernel keeps for the emulator
	lanBurst  = 128 << 10 // bytes that a LAN link passes at once: no less than a packet before it is segmented
	lanWait   = 0.05      // seconds of traffic that a LAN link queues
	lanLeast  = 256 << 10 // bytes, at least
	windowMax = 64 << 20  // bytes of a TCP window: several of the fattest path's
)

// hostSettings let windows grow to the path, and keep a connection from
// learning from those before it, so that runs can be repeated.
var hostSettings = [][2]string{
	{"net/ipv6/conf/all/disable_ipv6", "1"},
	{"net/ipv6/conf/default/disable_ipv6", "1"},
	{"net/ipv4/tcp_rmem", fmt.Sprintf("4096 131072 %d", windowMax)},
	{"net/ipv4/tcp_wmem", fmt.Sprintf("4096 65536 %d", windowMax)},
	{"net/ipv4/tcp_no_metrics_save", "1"},
	{"net/ipv4/ping_group_range", "0 2147483647"},
}

var siteSettings = [][2]string{
	{"net/ipv6/conf/all/disable_ipv6", "1"},
	{"net/ipv6/conf/default/disable_ipv6", "1"},
	{"net/ipv4/ip_forward", "1"},
	{"net/ipv4/conf/all/send_redirects", "0"},
	{"net/ipv4/conf/default/send_redirects", "0"},
	{"net/ipv4/conf/all/rp_filter", "0"},
}

// plumb makes the namespaces and the LAN of each site.
func (n *Network) plumb() error {
	names := []string{n.run.Name("wan")}
	for _, s := range n.config.Sites {
		names = append(names, n.sites[s.Name])
		for _, h := range s.Hosts {
			names = append(names, n.hosts[h.Name])
		}
	}
	if err := netns.Create(names...); err != nil {
		return err
	}
	if err := netns.Do(n.run.Name("wan"), func() error { return set(hostSettings[:2]) }); err != nil {
		return err
	}
	for _, s := range n.config.Sites {
		if err := n.plumbSite(s); err != nil {
			return fault.Wrap(fault.IO, "wan.Start", s.Name, err)
		}
	}
	return nil
}

func set(settings [][2]string) error {
	for _, s := range settings {
		err := os.WriteFile(filepath.Join("/proc/sys", s[0]), []byte(s[1]), 0)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setControl sets the congestion control of the namespace that it is called in.
func setControl(name string) error {
	if name == "" {
		return nil
	}
	err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(name), 0)
	if err != nil {
		return &fault.Error{Kind: fault.NotSupported, Op: "wan.Start", Subject: name, Cause: err,
			Public: "this machine lets no network namespace use this congestion control: take one that the sysctl net.ipv4.tcp_allowed_congestion_control lists"}
	}
	return nil
}

func (n *Network) plumbSite(s Site) error {
	return netns.Do(n.sites[s.Name], func() error {
		if err := set(siteSettings); err != nil {
			return err
		}
		off := false
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge, MTU: 1500}, MulticastSnooping: &off}
		if err := up(br, netip.PrefixFrom(s.Gateway(), s.Prefix.Bits())); err != nil {
			return err
		}
		for i, h := range s.Hosts {
			if err := n.plumbHost(s, h, br, fmt.Sprintf("port%d", i)); err != nil {
				return fault.Wrap(fault.IO, "wan.Start", h.Name, err)
			}
		}
		return loopback()
	})
}

// up makes a device, gives it an address if there is one, and turns it on.
func up(l netlink.Link, addr netip.Prefix) error {
	if err := netlink.LinkAdd(l); err != nil {
		return fmt.Errorf("add %s: %w", l.Attrs().Name, err)
	}
	return address(l, addr)
}

func address(l netlink.Link, addr netip.Prefix) error {
	if addr.IsValid() {
		ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), 32)}
		if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: ip}); err != nil {
			return fmt.Errorf("address %v: %w", addr, err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("turn on %s: %w", l.Attrs().Name, err)
	}
	return nil
}

func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// plumbHost joins a host to its site. It is called in the site's namespace.
func (n *Network) plumbHost(s Site, h Host, br netlink.Link, port string) error {
	ns, err := vnetns.GetFromPath(netns.Path(n.hosts[h.Name]))
	if err != nil {
		return err
	}
	defer ns.Close()
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: port, MTU: 1500, MasterIndex: br.Attrs().Index},
		PeerName:  eth, PeerNamespace: netlink.NsFd(int(ns)),
	}
	if err := up(veth, netip.Prefix{}); err != nil {
		return err
	}
	if err := limit(port, s.LAN); err != nil {
		return err
	}
	return netns.Do(n.hosts[h.Name], func() error {
		if err := set(hostSettings); err != nil {
			return err
		}
		if err := setControl(n.config.TCP); err != nil {
			return err
		}
		if err := loopback(); err != nil {
			return err
		}
		l, err := netlink.LinkByName(eth)
		if err != nil {
			return err
		}
		if err := address(l, netip.PrefixFrom(h.Addr, s.Prefix.Bits())); err != nil {
			return err
		}
		if err := limit(eth, s.LAN); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: s.Gateway().AsSlice()})
	})
}

// limit holds what leaves by a device to a rate.
func limit(device string, r Rate) error {
	if r == Unlimited {
		return nil
	}
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	bytes := uint64(r) / 8
	err = netlink.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bytes,
		Limit:      uint32(max(float64(bytes)*lanWait, lanLeast)),
		Buffer:     uint32(float64(lanBurst) / float64(bytes) * netlink.TickInUsec() * 1e6),
	})
	if err != nil {
		return fmt.Errorf("tbf on %s: %w", device, err)
	}
	return nil
}

// plumbGateways turns on the TUN devices that the emulator made.
func (n *Network) plumbGateways() error {
	for _, s := range n.config.Sites {
		err := netns.Do(n.sites[s.Name], func() error {
			l, err := netlink.LinkByName(Gateway)
			if err != nil {
				return err
			}
			if err := errors.Join(netlink.LinkSetMTU(l, 1500), netlink.LinkSetTxQLen(l, unread)); err != nil {
				return err
			}
			if err := address(l, netip.Prefix{}); err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Scope: unix.RT_SCOPE_LINK, Family: nl.FAMILY_V4,
				Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}})
		})
		if err != nil {
			return fault.Wrap(fault.IO, "wan.Start", s.Name, err)
		}
	}
	return nil
}

// HostLink turns a host's link to its site on or off, as pulling its cable
// would: the host sees that there is no carrier.
func (n *Network) HostLink(host string, on bool) error {
	const op fault.Op = "wan.HostLink"
	s := n.config.SiteOf(host)
	if s == nil {
		return fault.E(fault.NotFound, op, host, "the network has no such host")
	}
	port := ""
	for i, h := range s.Hosts {
		if h.Name == host {
			port = fmt.Sprintf("port%d", i)
		}
	}
	return netns.Do(n.sites[s.Name], func() error {
		l, err := netlink.LinkByName(port)
		if err != nil {
			return fault.Wrap(fault.NotFound, op, host, err)
		}
		if on {
			return fault.Wrap(fault.IO, op, host, netlink.LinkSetUp(l))
		}
		return fault.Wrap(fault.IO, op, host, netlink.LinkSetDown(l))
	})
}
