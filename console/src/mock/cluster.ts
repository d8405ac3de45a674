// A cluster of seven sites that never was, for development and unit tests alone.
// The same numbers come out each time.
import type * as sdk from "../api/generated";

const places: [string, string, number][] = [
  ["amsterdam", "Amsterdam, NL", 3],
  ["boston", "Boston, US", 3],
  ["nairobi", "Nairobi", 1],
  ["sao-paulo", "São Paulo", 2],
  ["singapore", "Singapore", 2],
  ["sydney", "-33.87, 151.21", 1],
  ["tokyo", "Tokyo", 3],
];

/** When the cluster was looked at. */
export const now = "2026-01-15T12:00:00Z";
const silent = "12D3KooWmocknairobi00";

/** Numbers between 0 and 1 that repeat from run to run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What freshness all answers have: one node is silent. */
export const freshness: sdk.Freshness = {
  as_of_at: now,
  unreachable: [{ node: silent, site: "nairobi", reason: "no answer", last_seen_at: "2026-01-15T11:48:00Z" }],
  geo_config: { reachable: true, revision: 4211 },
};

const names = places.flatMap(([site, , n]) => Array.from({ length: n }, (_, i) => ({ id: `12D3KooWmock${site.replace("-", "")}0${i}`, site })));
const draw = random(7);
const positions = new Map(names.map((n) => [n.id, [draw() * 180, draw() * 120, draw() * 40].map((v) => Math.round(v * 10) / 10)]));

/** The nodes. */
export const nodes: sdk.Node[] = names.map(({ id, site }, i) => ({
  id,
  site,
  addresses: [`/dns4/${site}-${i}.example/udp/7070/quic-v1`],
  incarnation: 1,
  version: "0.1.0",
  state: id === silent ? "unreachable" : "up",
  draining: i === 4,
  ...(i === 4 ? { left: { slices: 61, active: 12 } } : {}),
  coordinate: { vector_ms: positions.get(id)!, height_ms: 1.5, error: 0.08 },
  revision: 12 + i,
  live: {
    as_of_at: id === silent ? "2026-01-15T11:48:00Z" : now,
    uptime_ms: 86_400_000 * (3 + i),
    capacity_bytes: 4e12,
    used_bytes: 4e11 * (1 + (i % 7)),
    free_bytes: 4e12 - 4e11 * (1 + (i % 7)),
    read_only: false,
    slices_active: 40 + i,
    slices_standby: 88,
    slices_junior: i % 3,
    sessions: 5 + i,
    object_leases: 200 + 30 * i,
    geo_config_reachable: true,
  },
}));

/** The sites. */
export const sites: sdk.Site[] = places.map(([name, location, n], i) => ({
  name,
  location,
  nodes: names.filter((x) => x.site === name).map((x) => x.id),
  nodes_up: name === "nairobi" ? 0 : n,
  slices_active: 40 * n,
  slices_home: 42 * n,
  capacity_bytes: 4e12 * n,
  used_bytes: 1.1e12 * n,
  revision: 3 + i,
}));

/** How many slices the list has. */
export const sliceCount = 100_000;

/** One slice by its number. */
export function slice(id: number): sdk.Slice {
  const members = Array.from({ length: 3 }, (_, i) => names[(id * 7 + i * 4) % names.length]!).map(
    (n, i): sdk.Member => ({ node: n.id, site: n.site, state: n.id === silent ? "failed" : id % 41 === 0 && i === 2 ? "migrating" : "normal", active: i === 0 }),
  );
  const copies = members.filter((m) => m.state === "normal").length;
  return {
    id,
    state: members[0]!.state === "failed" ? "unavailable" : copies < 3 ? "under_protected" : "protected",
    epoch: 1 + (id % 9),
    active: members[0]!.node,
    active_site: members[0]!.site,
    members,
    policy: { home: members[id % 13 === 0 ? 1 : 0]!.site, level: 3, sites: 0, kind: "ordinary", coherence_ms: 0 },
    copies,
    closed: false,
    revision: 100 + id,
  };
}

/** What to expect of a slice: each copy more makes a loss rarer. */
export function availability(asked: sdk.AvailabilityRequest): sdk.Availability {
  const { level, sites: at = 0, assumptions: given } = asked;
  const failures = given?.node_failures_per_year ?? 6;
  const pauses = level > 1 ? 3700 * failures + 3000 * failures * (level - 1) : 0;
  const waits = level > 1 && at !== 1 ? 11_000 : 7_200_000;
  return {
    level,
    sites: at || level,
    pauses_ms: pauses,
    waits_ms: waits,
    downtime_ms: pauses + waits,
    takeovers: level > 1 ? failures + 1 : 0,
    lost: 0.026 * 1e-5 ** (level - 1),
    outdated: level > 1 ? 1.7e-5 * 1e-4 ** (level - 2) : 0,
    lost_bytes: (asked.stored_bytes ?? 4e9) * 0.026 * 1e-5 ** (level - 1),
    copied_ms: 5_800_000,
    nodes: names.length,
    sites_there: places.length,
    slices: sliceCount,
    assumptions: { node_failures_per_year: 6, node_outage_ms: 600_000, node_losses_per_year: 0.025, site_outages_per_year: 1, site_outage_ms: 7_200_000, site_losses_per_year: 0.001, takeover_ms: 3700, lease_ms: 3000, failed_after_ms: 1_800_000, ...given },
  };
}

/** The distances. */
export function network(): sdk.Network {
  const far = (a: string, b: string) => {
    const [p, q] = [positions.get(a)!, positions.get(b)!];
    return Math.hypot(...p.map((v, i) => v - q[i]!)) + 3;
  };
  return {
    nodes: nodes.map((n) => ({ id: n.id, site: n.site, reachable: n.state === "up", coordinate: n.coordinate, as_of_at: now })),
    links: names.flatMap((a) =>
      names
        .filter((b) => b.id !== a.id)
        .map((b): sdk.NetworkLink => {
          const predicted = a.site === b.site ? 0.4 : far(a.id, b.id);
          const dead = a.id === silent || b.id === silent;
          return { from: a.id, from_site: a.site, to: b.id, to_site: b.site, path: dead ? "" : "direct", predicted_ms: predicted, ...(dead ? {} : { measured_ms: predicted * (0.85 + ((a.id.length * 7 + b.id.charCodeAt(13)) % 9) / 20), least_ms: predicted * 0.8, age_ms: 4000 }) };
        }),
    ),
    freshness,
  };
}

const stream = (site: string, write: number): sdk.DrillStream => ({ site, usual_ms: 70, write_pause_ms: write, read_pause_ms: write + 40, acknowledged: 210, reads: 230, lost: 0 });

/** Drills of half a year, the newest first: pauses that get shorter, one that was too long, and one without geo-config. */
export const drills: sdk.Drill[] = [3870, 4010, 70, 31_200, 5240, 6100].map((write, i) => ({
  id: `2026010${6 - i}T100000Z-00${i}a`,
  kind: i === 2 ? "geo-config" : i === 3 ? "cut" : "kill-active",
  path: i === 2 ? "/" : "/reports",
  slice: 7,
  ...(i === 2 ? {} : i === 3 ? { site: "nairobi" } : { node: nodes[0]!.id }),
  who: i === 3 ? "bert" : "anna",
  started_at: `2026-01-0${6 - i}T10:00:00Z`,
  planned_ms: 15_000,
  lasted_ms: i === 3 ? 30_050 : 15_020,
  stopped: i === 3 ? "pause" : "time",
  reason: i === 3 ? "a stream of the probe paused for more than 30s" : "it lasted as long as it was to",
  write_pause_ms: write,
  read_pause_ms: write + 40,
  acknowledged: 420,
  lost: 0,
  ...(i === 3 ? {} : { whole_ms: 1250 }),
  streams: [stream("amsterdam", write), stream("boston", write - 20)],
}));

const day = 86_400_000;

/** Snapshots, the newest first: two of a schedule, and one that somebody made. */
export const snapshots: sdk.Snapshot[] = [
  { name: "hourly-20260115T1200Z", taken_at: now, made_by: "schedule hourly of anna", expires_at: "2026-01-17T12:00:00Z", revision: 4200 },
  { name: "hourly-20260115T1100Z", taken_at: "2026-01-15T11:00:00Z", made_by: "schedule hourly of anna", expires_at: "2026-01-17T11:00:00Z", revision: 4100 },
  { name: "before-upgrade", taken_at: "2026-01-02T08:30:00Z", made_by: "bert", path: "/reports", revision: 3000 },
];

/** Schedules by name. */
export const schedules: sdk.Schedule[] = [
  { name: "daily", made_by: "bert", every_ms: day, keep_ms: 30 * day, most_snapshots: 31, next_at: "2026-01-16T00:00:00Z", revision: 3100 },
  { name: "hourly", made_by: "anna", every_ms: day / 24, keep_ms: 2 * day, most_snapshots: 49, next_at: "2026-01-15T13:00:00Z", revision: 3101 },
];

const found = (damaged: number, repaired: number): sdk.ScrubCounts => ({ read_bytes: 4e11, chunks: 6_200_000, records: 6_100_000, states: 88, damaged, missing: 0, repaired, unneeded: 0, read_errors: 0, different: 0 });

/** What the nodes read: one is in a round, one lost a chunk, and one has said nothing. */
export const scrubs: sdk.Scrub[] = nodes.map((n, i) => ({
  node: n.id,
  site: n.site,
  ...(n.id === silent
    ? {}
    : {
        report: {
          as_of_at: now,
          period_ms: 14 * day,
          round: i === 1 ? 8 : 7,
          running: i === 1,
          ordered: i === 1,
          ...(i === 1 ? { phase: "chunks" } : {}),
          done_share: i === 1 ? 0.42 : 0,
          began_at: "2026-01-13T10:00:00Z",
          ended_round: 7,
          ended_at: "2026-01-14T20:00:00Z",
          took_ms: 1.4 * day,
          now: found(0, 0),
          last: found(i === 2 ? 3 : 0, i === 2 ? 2 : 0),
          total: found(i === 2 ? 4 : 0, i === 2 ? 3 : 0),
          lost_chunks: i === 2 ? 1 : 0,
          ...(i === 2 ? { lost: [{ chunk: "8f0c2a", slices: [41], since_at: "2026-01-14T19:00:00Z", objects: ["41/7"], unasked: true }] } : {}),
          different: i === 5 ? [{ slice: 12, serial: 880, with: names[0]!.id, found_at: "2026-01-14T19:30:00Z", active_differs: true }] : [],
        },
      }),
}));

const disk = (share: number): sdk.DiskSpace => ({ journal_bytes: 6.7e7, metadata_bytes: 9e8 * share, chunk_bytes: 4e11 * share, live_most_bytes: 2.9e11 * share, retained_least_bytes: 9e10 * share, waiting_bytes: 2e10 * share, pack_empty_bytes: 5e8 });

/** What holds the disks, and the slices in one copy of each. */
export const space: sdk.Space = {
  nodes: nodes.map((n, i) => ({ node: n.id, site: n.site, as_of_at: n.live!.as_of_at, disk: disk(1 + (i % 7)) })),
  sum: disk(57),
  count: {
    began_at: "2026-01-15T11:40:00Z",
    ended_at: "2026-01-15T11:52:00Z",
    slices: 4200,
    failed: [{ slice: 41, text: "no node that answers has a copy" }],
    failed_total: 1,
    objects: 51_000_000,
    live_bytes: 6.1e12,
    chunk_bytes: 5.4e12,
    shared_bytes: 9e11,
    older_bytes: 1.7e12,
    snapshot_bytes: 1.2e12,
    waiting_bytes: 3e11,
    deleted_files: { count: 41_000, bytes: 8e11 },
    older_versions: { count: 320_000, bytes: 1.3e12 },
    missing_chunks: 0,
  },
  freshness,
};
