// What the pages work out from the API's answers, without a number of their own.
import type { Network, NetworkLink, Site } from "../api/model";
import type { Tone } from "../ui/kit";
import type { MapLink } from "./WorldMap";

/** How a site is, by its nodes that answer. */
export function siteTone(s: Pick<Site, "nodes" | "nodes_up">): Tone {
  if (s.nodes.length === 0) return "idle";
  if (s.nodes_up === 0) return "bad";
  return s.nodes_up < s.nodes.length ? "warn" : "ok";
}

/** The middle one of some numbers; undefined where there is none. */
export function median(values: number[]): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** One line between each two sites: the median of what their nodes measured, both ways. */
export function siteLinks(network: Network | undefined, sites: Pick<Site, "name" | "nodes" | "nodes_up">[]): MapLink[] {
  const up = new Map(sites.map((s) => [s.name, s.nodes_up > 0]));
  const found = new Map<string, { from: string; to: string; links: NetworkLink[] }>();
  for (const link of network?.links ?? []) {
    if (link.from_site === link.to_site) continue;
    const [from, to] = link.from_site < link.to_site ? [link.from_site, link.to_site] : [link.to_site, link.from_site];
    const key = `${from}\n${to}`;
    const entry = found.get(key) ?? { from, to, links: [] };
    entry.links.push(link);
    found.set(key, entry);
  }
  return [...found.values()].map(({ from, to, links }) => ({
    from,
    to,
    ms: median(links.flatMap((l) => l.measured_ms ?? [])),
    broken: up.get(from) === false || up.get(to) === false || links.every((l) => l.path === ""),
  }));
}
