package bootstrap

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/founding"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/wire"
)

// Founding is what the first machine of a cluster is to be.
type Founding struct {
	// Etc and Data are directories: for configuration and keys, and for data.
	Etc, Data string
	Site      ids.Site
	// Address is the machine's IP address, as others reach it.
	Address  string
	NodePort int
	GeoPort  int
	// Admin names the first user, an administrator.
	Admin ids.User
	// Database is what `cartwheeld geo-config` is told of the database that holds
	// the configuration; none: it has an embedded store.
	Database []string
}

// Founded says what Found made.
type Founded struct {
	Cluster ids.Cluster `json:"cluster"`
	Site    ids.Site    `json:"site"`
	Node    ids.Node    `json:"node"`
	// GeoConfigData and GeoConfigListen are what `cartwheeld geo-config` needs.
	GeoConfigData   string `json:"geo_config_data"`
	GeoConfigListen string `json:"geo_config_listen"`
	// GeoConfigDatabase are further words of it, where a database is its store.
	GeoConfigDatabase []string `json:"geo_config_database,omitempty"`
	// The files: the node's configuration, and how to administer and reach the
	// cluster.
	NodeConfig string `json:"node_config"`
	AdminFile  string `json:"admin_file"`
	AdminKey   string `json:"admin_key"`
	Contact    string `json:"contact"`
}

// Rows is the file with the rows that geo-config begins with (package founding).
func (f Founded) Rows() string { return filepath.Join(f.GeoConfigData, founding.Name) }

// Found prepares the first machine of a new cluster: keys, the rows that
// geo-config begins with, and configuration files. It starts nothing, and
// overwrites nothing: Exists names a file of an earlier founding.
func Found(f Founding, now time.Time) (Founded, error) {
	const op fault.Op = "bootstrap.Found"
	out := Founded{
		Site: f.Site, GeoConfigDatabase: f.Database, GeoConfigData: filepath.Join(f.Data, "geo-config"), GeoConfigListen: join.ListenOn(f.Address, f.GeoPort),
		NodeConfig: filepath.Join(f.Etc, "node.yaml"), AdminFile: filepath.Join(f.Etc, AdminName),
		AdminKey: filepath.Join(f.Etc, "admin.key"), Contact: filepath.Join(f.Etc, "contact.json"),
	}
	nodeData := filepath.Join(f.Data, "node")
	node := join.NodeFile{Data: nodeData, Site: f.Site, Address: f.Address, Port: f.NodePort}
	if err := node.Check(out.NodeConfig); err != nil {
		return out, err
	}
	rows := out.Rows()
	for _, path := range []string{out.AdminFile, out.AdminKey, out.Contact, rows} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return out, fault.E(fault.Exists, op, path, "is there already: a cluster was founded here; choose other directories, or remove what is left of it")
		}
	}
	for _, dir := range []string{f.Etc, f.Data, out.GeoConfigData, nodeData} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return out, fault.FromOS(op, dir, err)
		}
	}
	keys := map[string]string{}
	for _, path := range []string{out.AdminKey, filepath.Join(out.GeoConfigData, keyName), filepath.Join(nodeData, keyName)} {
		key, err := wire.MakeKey(path)
		if err != nil {
			return out, err
		}
		keys[path] = key.KeyID()
	}
	out.Node = ids.Node(keys[filepath.Join(nodeData, keyName)])
	node.GeoConfig = []string{join.Multiaddress(f.Address, f.GeoPort) + "/p2p/" + keys[filepath.Join(out.GeoConfigData, keyName)]}

	cluster := founding.NewCluster(now)
	out.Cluster = cluster.ID
	first := founding.Batch(cluster, string(f.Admin))
	first.Sites = []geoconfig.Site{{Name: f.Site}}
	first.Nodes = []geoconfig.Node{{ID: out.Node, Site: f.Site, Addresses: []string{node.Advertise()}}}
	first.Users = []geoconfig.User{{Name: f.Admin, Key: keys[out.AdminKey], TrustedHost: true, Admin: true}}
	contacts := contact.File{Cluster: cluster.ID, Nodes: []string{node.Advertise() + "/p2p/" + string(out.Node)}, UserKey: filepath.Base(out.AdminKey)}
	admin := Admin{Cluster: cluster.ID, GeoConfig: node.GeoConfig, Key: filepath.Base(out.AdminKey)}
	return out, errors.Join(writeJSON(rows, first), admin.Save(out.AdminFile), contacts.Save(out.Contact), node.Write(out.NodeConfig))
}

// keyName is the private key in a process's directory.
const keyName = "node.key"

// AdminName is the usual name of an administrator's file.
const AdminName = "admin.json"

// Admin is an administrator's file: where the configuration is, and who asks.
type Admin struct {
	Cluster ids.Cluster `json:"cluster"`
	// GeoConfig are the server's addresses, ending in /p2p/ID.
	GeoConfig []string `json:"geo_config"`
	// Key is the file of the administrator's private key; LoadAdmin makes it
	// absolute.
	Key string `json:"admin_key"`
	// Console is where people reach the console; empty: not known.
	Console string `json:"console,omitempty"`
}

// Save writes the file.
func (a Admin) Save(path string) error { return writeJSON(path, a) }

// LoadAdmin reads an administrator's file.
func LoadAdmin(path string) (Admin, error) {
	const op fault.Op = "bootstrap.LoadAdmin"
	var a Admin
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return a, fault.E(fault.NotFound, op, path, "there is no such file of an administrator; name another with --admin")
	}
	if err != nil {
		return a, fault.FromOS(op, path, err)
	}
	if err := json.Unmarshal(data, &a); err != nil || len(a.GeoConfig) == 0 || a.Key == "" {
		return a, &fault.Error{Kind: fault.Invalid, Op: op, Subject: path, Public: "is no administrator's file (JSON with cluster, geo_config and admin_key)", Cause: err}
	}
	if !filepath.IsAbs(a.Key) {
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return a, fault.FromOS(op, path, err)
		}
		a.Key = filepath.Join(dir, a.Key)
	}
	return a, nil
}

// writeJSON writes a file that everybody may read, in one step.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Other, "bootstrap.writeJSON", path, err)
	}
	return fault.FromOS("bootstrap.writeJSON", path, contact.WriteFile(path, append(data, '\n')))
}
