// Package founding makes the first row of a configuration store: the one that
// says which cluster it is of. It may be called from anywhere.
package founding

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
)

// Name is the file in a geo-config server's directory that may say what its
// cluster begins with: JSON of a geoconfig.Batch.
const Name = "founding.json"

// NewCluster returns the row of a cluster that nobody else has.
func NewCluster(now time.Time) geoconfig.Cluster {
	var name [8]byte
	_, _ = rand.Read(name[:]) // never fails
	return geoconfig.Cluster{ID: ids.Cluster(hex.EncodeToString(name[:])), Generation: 1, CreatedNS: now.UnixNano(), Feature: version.Feature}
}

// Load reads the rows that a cluster begins with. Where there is no such file, a
// cluster begins with its own row only, of the time given.
func Load(path string, now time.Time) (geoconfig.Batch, error) {
	const op fault.Op = "founding.Load"
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		cluster := NewCluster(now)
		return Batch(cluster, "geo-config"), nil
	}
	if err != nil {
		return geoconfig.Batch{}, fault.FromOS(op, path, err)
	}
	var b geoconfig.Batch
	if err := json.Unmarshal(data, &b); err != nil || b.Cluster == nil || b.Key == "" {
		return b, &fault.Error{Kind: fault.Invalid, Op: op, Subject: path, Public: "is not what `cartwheel cluster init` wrote: run that again elsewhere", Cause: err}
	}
	return b, nil
}

// Batch returns the batch that begins a cluster, with its row and a record of who
// founded it. The caller may add rows.
func Batch(cluster geoconfig.Cluster, who string) geoconfig.Batch {
	return geoconfig.Batch{Key: "found-" + string(cluster.ID), Cluster: &cluster,
		Audit: []geoconfig.AuditRecord{{AtNS: cluster.CreatedNS, Who: who, Action: "cluster.found", Subject: geoconfig.ClusterKey().String()}}}
}

// Found returns the cluster's row. Where the store has none, it makes the cluster
// that first describes. Several may call it for one store at once: the first
// one's cluster is everybody's. Errors are the store's.
func Found(ctx context.Context, store geoconfig.Store, first geoconfig.Batch) (geoconfig.Cluster, error) {
	rows, err := store.Read(ctx, geoconfig.Query{})
	if err != nil {
		return geoconfig.Cluster{}, err
	}
	if rows.Cluster != nil {
		return *rows.Cluster, nil
	}
	// The other one's cluster may have another ID.
	if _, err := store.Apply(ctx, first); err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.WrongCluster) {
		return geoconfig.Cluster{}, err
	}
	if rows, err = store.Read(ctx, geoconfig.Query{}); err != nil {
		return geoconfig.Cluster{}, err
	}
	return *rows.Cluster, nil
}
