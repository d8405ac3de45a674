import { geoEqualEarth, geoGraticule10, geoPath } from "d3-geo";
import { useMemo, useState } from "react";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import land110 from "world-atlas/land-110m.json";
import { bytes, millis, plural } from "../format";
import { Mark, type Tone } from "../ui/kit";
import type { Place } from "./place";

/** A site as the map shows it. */
export interface MapSite {
  name: string;
  place: Place;
  tone: Tone;
  nodes: number;
  nodesUp: number;
  slicesActive: number;
  usedBytes: number;
  capacityBytes: number;
}

/** The way between two sites; ms is undefined where nobody measured it. */
export interface MapLink {
  from: string;
  to: string;
  ms: number | undefined;
  broken: boolean;
}

const width = 960;
const height = 440;

interface WorldMapProps {
  sites: MapSite[];
  links: MapLink[];
  chosen: string | undefined;
  choose: (name: string) => void;
  /** Opens the site. */
  open: (name: string) => void;
}

/** A round trip's class: how strong its line is drawn. */
function strength(ms: number | undefined): number {
  if (ms === undefined) return 0.6;
  return ms < 30 ? 2 : ms < 100 ? 1.5 : ms < 200 ? 1.1 : 0.8;
}

/** The world with its sites, drawn without any request. Its table twin stands beside it. */
export function WorldMap({ sites, links, chosen, choose, open }: WorldMapProps) {
  const [hover, setHover] = useState<string>();
  const projection = useMemo(() => fit(sites), [sites]);
  const path = useMemo(() => geoPath(projection), [projection]);
  const land = useMemo(() => {
    const topology = land110 as unknown as Topology<{ land: GeometryCollection }>;
    return feature(topology, topology.objects.land);
  }, []);
  const at = useMemo(() => new Map(sites.map((s) => [s.name, projection([s.place.lon, s.place.lat]) ?? [0, 0]])), [sites, projection]);
  const shown = sites.find((s) => s.name === (hover ?? chosen));
  const move = (event: React.KeyboardEvent) => {
    const step: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const way = step[event.key];
    if (way) {
      event.preventDefault();
      const next = nearest(at, chosen, way);
      if (next) choose(next);
    } else if (event.key === "Enter" && chosen) open(chosen);
  };
  return (
    <div className="relative">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        className="block w-full rounded-b-[10px]"
        role="application"
        aria-roledescription="map"
        aria-label={`Map of ${plural(sites.length, "site")}. Arrow keys move between sites, Enter opens one.${shown ? ` Chosen: ${describe(shown)}` : ""}`}
        tabIndex={0}
        onKeyDown={move}
      >
        <path d={path(geoGraticule10()) ?? ""} fill="none" className="stroke-line" strokeWidth="0.5" opacity="0.6" />
        <path d={path(land) ?? ""} className="fill-land" />
        {links.map((l) => (
          <Arc key={`${l.from} ${l.to}`} link={l} a={at.get(l.from)} b={at.get(l.to)} lit={shown?.name === l.from || shown?.name === l.to} dim={shown !== undefined} />
        ))}
        {sites.map((s) => (
          <Disc key={s.name} site={s} at={at.get(s.name)!} lit={s.name === shown?.name} enter={() => setHover(s.name)} leave={() => setHover(undefined)} press={() => (chosen === s.name ? open(s.name) : choose(s.name))} />
        ))}
        <Labels sites={sites} at={at} lit={shown?.name} />
      </svg>
      <p className="sr-only" aria-live="polite">
        {chosen && shown ? describe(shown) : ""}
      </p>
      {shown ? (
        <div className="pointer-events-none absolute bottom-3 left-3 hidden max-w-72 rounded-lg border border-line bg-raised px-3 py-2 text-[0.92rem] shadow-[var(--float)] sm:block">
          <p className="flex items-center gap-2 font-semibold">
            <Mark tone={shown.tone} /> {shown.name}
          </p>
          <p className="text-soft">
            {shown.nodesUp} of {plural(shown.nodes, "node")} up · {plural(shown.slicesActive, "active slice")}
          </p>
          <p className="text-soft">{shown.capacityBytes > 0 ? `${bytes(shown.usedBytes)} of ${bytes(shown.capacityBytes)} used` : "Capacity not known"}</p>
        </div>
      ) : null}
    </div>
  );
}

function describe(s: MapSite): string {
  return `${s.name}: ${s.nodesUp} of ${plural(s.nodes, "node")} up, ${plural(s.slicesActive, "active slice")}`;
}

/** The projection that shows all sites: the world, or the part of it where they stand. */
function fit(sites: MapSite[]) {
  const world = geoEqualEarth().fitExtent([[8, 8], [width - 8, height + 46]], { type: "Sphere" });
  if (sites.length === 0) return world;
  const lons = sites.map((s) => s.place.lon);
  const lats = sites.map((s) => s.place.lat);
  const spread = Math.max(Math.max(...lons) - Math.min(...lons), (Math.max(...lats) - Math.min(...lats)) * 2);
  if (spread > 110) return world;
  const middle: [number, number] = [(Math.max(...lons) + Math.min(...lons)) / 2, (Math.max(...lats) + Math.min(...lats)) / 2];
  const zoom = Math.min(6, 360 / Math.max(spread * 1.7, 45));
  return geoEqualEarth().rotate([-middle[0], 0]).center([0, middle[1]]).scale(world.scale() * zoom).translate([width / 2, height / 2]);
}

/** The closest site in a direction. */
function nearest(at: Map<string, number[]>, from: string | undefined, [dx, dy]: [number, number]): string | undefined {
  const here = from === undefined ? undefined : at.get(from);
  if (!here) return at.keys().next().value;
  let best: string | undefined;
  let least = Infinity;
  for (const [name, p] of at) {
    const [x, y] = [p[0]! - here[0]!, p[1]! - here[1]!];
    const ahead = x * dx + y * dy;
    if (name === from || ahead <= 0) continue;
    const cost = ahead + 2.5 * Math.abs(x * dy - y * dx);
    if (cost < least) [best, least] = [name, cost];
  }
  return best;
}

function Arc({ link, a, b, lit, dim }: { link: MapLink; a: number[] | undefined; b: number[] | undefined; lit: boolean; dim: boolean }) {
  if (!a || !b) return null;
  const [x1, y1, x2, y2] = [a[0]!, a[1]!, b[0]!, b[1]!];
  const lift = Math.min(90, Math.hypot(x2 - x1, y2 - y1) * 0.22);
  const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2 - lift];
  return (
    <g className={link.broken ? "text-bad" : "text-accent"} opacity={lit ? 1 : dim ? 0.18 : 0.5}>
      <path d={`M${x1} ${y1}Q${mx} ${my} ${x2} ${y2}`} fill="none" stroke="currentColor" strokeWidth={strength(link.ms) + (lit ? 0.6 : 0)} strokeDasharray={link.broken ? "4 4" : undefined} />
      {link.broken ? <path d={`M${mx - 4} ${my + lift / 2 - 4}l8 8m0-8l-8 8`} stroke="currentColor" strokeWidth="1.8" /> : null}
      {lit && link.ms !== undefined ? (
        <text x={mx} y={my + lift / 2 - 4} textAnchor="middle" className="fill-ink stroke-surface text-[11px] font-medium" strokeWidth="3" paintOrder="stroke">
          {millis(link.ms)}
        </text>
      ) : null}
    </g>
  );
}

const fills: Record<Tone, string> = { ok: "fill-accent", warn: "fill-warn", bad: "fill-bad", idle: "fill-edge" };

function Disc({ site, at, lit, enter, leave, press }: { site: MapSite; at: number[]; lit: boolean; enter: () => void; leave: () => void; press: () => void }) {
  const r = 5 + Math.min(6, Math.sqrt(site.nodes) * 1.6);
  const share = site.capacityBytes > 0 ? Math.min(1, site.usedBytes / site.capacityBytes) : 0;
  const ring = 2 * Math.PI * (r + 3.5);
  return (
    <g transform={`translate(${at[0]} ${at[1]})`} data-testid={`map-${site.name}`} onPointerEnter={enter} onPointerLeave={leave} onClick={press} className="cursor-pointer">
      <circle r="22" fill="transparent" />
      {lit ? <circle r={r + 8} className="fill-accent" opacity="0.14" /> : null}
      <circle r={r + 3.5} fill="none" className="stroke-line" strokeWidth="2.2" />
      <circle r={r + 3.5} fill="none" className="stroke-accent" strokeWidth="2.2" strokeDasharray={`${ring * share} ${ring}`} transform="rotate(-90)" />
      <circle r={r} className={`${fills[site.tone]} stroke-surface`} strokeWidth="1.5" />
      {site.tone === "bad" ? <path d="M-3-3l6 6m0-6l-6 6" className="stroke-surface" strokeWidth="1.8" strokeLinecap="round" /> : null}
      {site.tone === "warn" ? <path d="M0-3.500v4M0 3v.2" className="stroke-surface" strokeWidth="1.8" strokeLinecap="round" /> : null}
    </g>
  );
}

/** Names of sites, left out where they would lie upon each other. */
function Labels({ sites, at, lit }: { sites: MapSite[]; at: Map<string, number[]>; lit: string | undefined }) {
  const taken: number[][] = [];
  const ordered = [...sites].sort((a, b) => Number(b.name === lit) - Number(a.name === lit) || b.nodes - a.nodes);
  return (
    <g className="pointer-events-none">
      {ordered.map((s) => {
        const [x = 0, y = 0] = at.get(s.name) ?? [];
        const box = [x + 16, y - 8, x + 20 + s.name.length * 7, y + 8];
        if (taken.some((t) => box[0]! < t[2]! && box[2]! > t[0]! && box[1]! < t[3]! && box[3]! > t[1]!)) return null;
        taken.push(box);
        return (
          <text key={s.name} x={x + 16} y={y + 4} className="fill-ink stroke-surface text-[12.5px] font-medium" strokeWidth="3.5" strokeLinejoin="round" paintOrder="stroke">
            {s.name}
          </text>
        );
      })}
    </g>
  );
}
