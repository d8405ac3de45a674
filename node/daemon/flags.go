package daemon

import (
	"time"
)

// nodeFlags are the configuration's keys as flags; nil means not given.
type nodeFlags struct {
	Config        string         `help:"Configuration file (YAML)." type:"path" short:"c"`
	Data          *string        `help:"The node's directory."`
	Site          *string        `help:"The site where the node stands."`
	Listen        []string       `help:"Addresses to listen on, such as /ip4/0.0.0.0/tcp/7400." sep:"none"`
	Advertise     []string       `help:"Addresses that the node tells others." sep:"none"`
	Socket        *string        `help:"Unix socket for all users of this machine; by default one beside the data, for the node's user; the word none: no socket."`
	GeoConfig     []string       `help:"Address of the geo-config server, ending in /p2p/ID." sep:"none"`
	ExpectedNodes *int           `help:"Nodes that must be there before the first one makes the root slice."`
	Lease         *time.Duration `help:"How long an answered beacon binds a standby."`
	Session       *time.Duration `help:"How long a client's cache outlives its last keep-alive."`
	FailedAfter   *time.Duration `help:"How long a member may be failed before it is replaced."`
	SiteSpread    *time.Duration `help:"How far apart nodes of one site may be before the site audit reports them."`
	Retention     *time.Duration `help:"How long what is deleted or overwritten is kept; 0: not for longer than uploads."`
	CapacityBytes *int64         `help:"What the node may store; 0: what the disk has."`
	ReserveBytes  *int64         `help:"What stays free on the disk."`
	MemoryBytes   *int64         `help:"Memory to aim for; caches are sized by it."`
	Pprof         *string        `help:"Serve the profiler on a Unix socket at this path, for this user alone."`
	Metrics       *string        `help:"Show the node's figures to Prometheus at this IP:port, over HTTP."`
	Traces        *string        `help:"Send traces of followed operations to this OTLP/HTTP collector."`
	API           *string        `name:"api" help:"Serve the admin API at this IP:port, over HTTP."`
	APIHosts      []string       `name:"api-hosts" help:"Names by which requests may call the admin API." sep:"none"`
	APIKey        *string        `name:"api-key" help:"File of an administrator's key, with which the admin API changes the configuration."`
	Experiments   *string        `help:"Show the runs of experiments in this directory, in the admin API." type:"path"`
	LogLevel      *string        `help:"debug, info, warn or error."`
	LogFormat     *string        `help:"text or json."`
}

// values returns the flags given, by configuration key.
func (f nodeFlags) values() map[string]any {
	out := map[string]any{}
	put(out, "data", f.Data)
	put(out, "site", f.Site)
	put(out, "socket", f.Socket)
	put(out, "expected_nodes", f.ExpectedNodes)
	put(out, "lease", f.Lease)
	put(out, "session", f.Session)
	put(out, "failed_after", f.FailedAfter)
	put(out, "retention", f.Retention)
	put(out, "site_spread", f.SiteSpread)
	put(out, "capacity_bytes", f.CapacityBytes)
	put(out, "reserve_bytes", f.ReserveBytes)
	put(out, "memory_bytes", f.MemoryBytes)
	put(out, "pprof", f.Pprof)
	put(out, "metrics", f.Metrics)
	put(out, "traces", f.Traces)
	put(out, "api", f.API)
	put(out, "api_key", f.APIKey)
	put(out, "experiments", f.Experiments)
	put(out, "log_level", f.LogLevel)
	put(out, "log_format", f.LogFormat)
	for key, list := range map[string][]string{"listen": f.Listen, "advertise": f.Advertise, "geo_config": f.GeoConfig, "api_hosts": f.APIHosts} {
		if len(list) > 0 {
			out[key] = list
		}
	}
	return out
}

func put[T any](out map[string]any, key string, value *T) {
	if value != nil {
		out[key] = *value
	}
}
