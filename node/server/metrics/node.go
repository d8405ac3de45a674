package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/budget"
)

// node reads a node's figures when it is asked.
type node struct{ s Source }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cartwheel_"+name, help, labels, nil)
}

// The figures of a node.
var (
	info      = describe("node_info", "Always 1; the labels say which node this is.", "node", "site", "cluster", "version")
	uptime    = describe("uptime_seconds", "Time since the node's start.")
	capacity  = describe("capacity_bytes", "What the node may store.")
	used      = describe("used_bytes", "What the node stores: journal, chunks and metadata.")
	free      = describe("disk_free_bytes", "What is free on the disk.")
	packs     = describe("pack_bytes", "Length of the files that chunks lie in.")
	waiting   = describe("waiting_bytes", "Chunks that lost a reference and wait for their pack to be looked at.")
	chunks    = describe("chunk_bytes", "Chunks that can be read here.")
	metadata  = describe("metadata_bytes", "Length of the metadata's files.")
	live      = describe("live_most_bytes", "Chunks of current files, at most: before deduplication.")
	retained  = describe("retained_least_bytes", "Chunks of older versions, deleted files and uploads that were not committed, at least.")
	full      = describe("read_only", "1 where the disk is so full that the node takes no writes.")
	journal   = describe("journal_bytes", "Length of the journal.")
	parts     = describe("slices", "Slices of which the node has a copy, by its role.", "role")
	under     = describe("slices_underprotected", "Slices that the node acts for and that have fewer whole copies than their policy asks for.")
	sessions  = describe("sessions", "Sessions of clients.")
	leases    = describe("object_leases", "Leases on objects that clients hold.")
	reachable = describe("geo_config_reachable", "1 where the configuration store answers. Without it nobody takes over.")
	away      = describe("geo_config_away_seconds", "For how long the configuration store has been away.")
	connected = describe("peer_connected", "1 where the node is connected to the other one.", "peer", "peer_site")
	rtt       = describe("peer_rtt_seconds", "Round trip to the other node.", "peer", "peer_site")
	kept      = describe("shared_kept_bytes", "Chunks in memory for the site's clients, of slices of other nodes.")
	asked     = describe("shared_chunks_total", "Chunks that were asked for below .Hotspot, by whether they were here: hit or miss.", "result")
	served    = describe("shared_served_bytes_total", "Bytes below .Hotspot that went to the site's clients and to other nodes.")
	fetched   = describe("shared_fetched_bytes_total", "Bytes that came for the site's clients.")
	sent      = describe("site_sent_bytes_total", "Content that went to another site, by why it went: foreground, replication, repair or rebalancing.", "to", "class")
	waited    = describe("site_waited_seconds_total", "Time that content waited for the budget with another site, of all requests added up.", "to", "class")
	allowance = describe("site_budget_bytes_per_second", "This node's part of the budget with another site; none where no budget holds.", "to")
	scrubbed  = describe("scrub_read_bytes_total", "Bytes that the node read from its disk to check what it stores.")
	scrubEnd  = describe("scrub_last_end_seconds", "When the node had last read all that it stores, in Unix time; 0: never.")
	scrubDone = describe("scrub_done_ratio", "The part of its chunks that the round under way has read; 1 where none is.")
	found     = describe("scrub_found_total", "What the node's scrub found and did: damaged, missing, repaired or unneeded chunks, errors of reads, and different states of slices.", "what")
	lost      = describe("scrub_lost_chunks", "Chunks that records name and no member of their slices has given.")
	different = describe("scrub_different_slices", "Slices whose state differs here from the active's.")
	findings  = describe("site_findings", "What the site audit found that contradicts the sites as they are declared.")
)

// Describe implements prometheus.Collector.
func (n *node) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, uptime, capacity, used, free, packs, waiting, chunks, metadata, live, retained, full, journal, parts, under, sessions, leases, reachable, away, connected, rtt, kept, asked, served, fetched, sent, waited, allowance, scrubbed, scrubEnd, scrubDone, found, lost, different, findings} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (n *node) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit/2)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := n.s.Node(ctx)
	gauge(info, 1, string(s.ID), string(s.Site), string(s.Cluster), s.Version)
	gauge(uptime, s.UptimeNS.Seconds())
	gauge(capacity, float64(s.CapacityBytes))
	gauge(used, float64(s.UsedBytes))
	gauge(free, float64(s.FreeBytes))
	gauge(packs, float64(s.PackBytes))
	gauge(waiting, float64(s.WaitingBytes))
	if d := s.Disk; d != nil {
		gauge(chunks, float64(d.ChunkBytes))
		gauge(metadata, float64(d.MetadataBytes))
		gauge(live, float64(d.LiveBytes))
		gauge(retained, float64(d.RetainedBytes))
	}
	gauge(full, flag(s.ReadOnly))
	gauge(journal, float64(n.s.JournalBytes()))
	gauge(parts, float64(s.SlicesActive), "active")
	gauge(parts, float64(s.SlicesStandby), "standby")
	gauge(parts, float64(s.SlicesJunior), "junior")
	gauge(under, float64(n.underprotected()))
	gauge(sessions, float64(s.Sessions))
	gauge(leases, float64(s.ObjectLeases))
	gauge(reachable, flag(s.GeoConfig.Reachable))
	gauge(away, s.GeoConfig.AwayNS.Seconds())
	gauge(findings, float64(len(s.Findings)))
	collectScrub(to, s.Scrub)
	n.collectShared(to)
	n.collectSent(to)
	for _, p := range s.Peers {
		gauge(connected, flag(p.Connected), string(p.ID), string(p.Site))
		if p.Connected {
			gauge(rtt, p.RTTNS.Seconds(), string(p.ID), string(p.Site))
		}
	}
}

// collectScrub gives the figures of what the node read to check what it stores.
func collectScrub(to chan<- prometheus.Metric, s *status.Scrub) {
	if s == nil {
		return
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	done := 1.0
	if s.Running {
		done = s.DoneShare
	}
	count(scrubbed, s.Total.ReadBytes)
	gauge(scrubEnd, float64(s.EndedAtNS)/1e9)
	gauge(scrubDone, done)
	count(found, s.Total.Damaged, "damaged")
	count(found, s.Total.Missing, "missing")
	count(found, s.Total.Repaired, "repaired")
	count(found, s.Total.Unneeded, "unneeded")
	count(found, s.Total.ReadErrors, "read_error")
	count(found, s.Total.Different, "different")
	gauge(lost, float64(s.LostChunks))
	gauge(different, float64(len(s.Different)))
}

// collectShared gives the figures of what nodes share.
func (n *node) collectShared(to chan<- prometheus.Metric) {
	c := n.s.Shared()
	to <- prometheus.MustNewConstMetric(kept, prometheus.GaugeValue, float64(c.KeptBytes))
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	count(asked, c.Hits, "hit")
	count(asked, c.Misses, "miss")
	count(served, c.ServedBytes)
	count(fetched, c.FetchedBytes)
}

// collectSent gives the figures of what went to other sites.
func (n *node) collectSent(to chan<- prometheus.Metric) {
	for site, s := range n.s.Sent() {
		for _, c := range budget.Classes() {
			counts := s.Counts[c]
			to <- prometheus.MustNewConstMetric(sent, prometheus.CounterValue, float64(counts.Bytes), string(site), c.String())
			to <- prometheus.MustNewConstMetric(waited, prometheus.CounterValue, counts.Waited.Seconds(), string(site), c.String())
		}
		if s.Rate > 0 {
			to <- prometheus.MustNewConstMetric(allowance, prometheus.GaugeValue, s.Rate, string(site))
		}
	}
}

// underprotected counts the node's slices that lack whole copies.
func (n *node) underprotected() int {
	count := 0
	for _, row := range n.s.Leading() {
		if len(row.Normals()) < row.Policy.Level {
			count++
		}
	}
	return count
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
