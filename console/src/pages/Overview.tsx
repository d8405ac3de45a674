import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Cause, Freshness, Network, Overview as OverviewData, Site } from "../api/model";
import { queries } from "../api/queries";
import { bytes, count, plural, shortId } from "../format";
import { siteLinks, siteTone } from "../geo/derive";
import { placeOfSite } from "../geo/place";
import { type MapSite, WorldMap } from "../geo/WorldMap";
import { Page } from "../shell/Page";
import { Age, Button, Card, Command, Mark, Pill, Tile, toneInk } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import { ActivityRow } from "../ui/ActivityRow";

/** How the whole cluster is, and what needs someone. */
export function Overview() {
  const overview = useQuery(queries.overview());
  return (
    <Page
      title="Overview"
      purpose="How the cluster is now, and what needs somebody."
      actions={
        <Link to="/what-if" className="btn btn-main">
          Rehearse a failure
        </Link>
      }
    >
      <Shown query={overview} what="the overview">
        {(o) => (
          <>
            <Health overview={o} />
            <Tiles overview={o} />
            <Partial freshness={o.freshness} />
          </>
        )}
      </Shown>
      <div className="grid grid-cols-1 gap-5 xl:grid-cols-[minmax(0,1fr)_21rem]">
        <Geography />
        <div className="flex min-w-0 flex-col gap-5">
          <Attention causes={overview.data?.causes} />
          <Recent />
        </div>
      </div>
    </Page>
  );
}

function Health({ overview: o }: { overview: OverviewData }) {
  const critical = o.causes.some((c) => c.severity === "critical");
  const tone = o.healthy ? "ok" : critical ? "bad" : "warn";
  return (
    <section aria-label="Health" className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <p className={`flex items-baseline gap-3 text-[1.3rem] leading-snug font-medium tracking-tight ${tone === "bad" ? toneInk(tone) : ""}`}>
        <Mark tone={tone} size={15} />
        <span>{o.sentence}</span>
      </p>
      <span className="text-[0.9rem] text-faint">
        as {o.served_by.site} sees it, <Age at={o.freshness.as_of_at} />
      </span>
    </section>
  );
}

function Tiles({ overview: { counts: c, capacity } }: { overview: OverviewData }) {
  return (
    <div className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
      <Tile label="Sites up" value={<Of n={c.sites_up} of={c.sites} />} note={c.sites_up < c.sites ? `${plural(c.sites - c.sites_up, "site")} without an answer` : "all answer"} tone={c.sites_up < c.sites ? "bad" : "ok"} />
      <Tile label="Nodes up" value={<Of n={c.nodes_up} of={c.nodes} />} note={c.nodes_up < c.nodes ? `${plural(c.nodes - c.nodes_up, "node")} without an answer` : "all answer"} tone={c.nodes_up < c.nodes ? "warn" : "ok"} />
      <Tile label="Slices protected" value={count(c.slices_protected)} note={c.slices_under_protected > 0 ? `of ${count(c.slices)}; ${count(c.slices_under_protected)} with too few copies` : `of ${count(c.slices)}, each with all its copies`} tone={c.slices_under_protected > 0 ? "warn" : "ok"} />
      <Tile label="Unavailable" value={count(c.slices_unavailable)} note="slices whose active is silent" tone={c.slices_unavailable > 0 ? "bad" : "ok"} />
      <Tile label="Used" value={bytes(capacity.nodes > 0 ? capacity.used_bytes : undefined)} note={capacity.nodes > 0 ? `of ${bytes(capacity.capacity_bytes)}, ${plural(capacity.nodes, "node")} counted` : "no node has said"} />
      <Tile label="Client sessions" value={count(c.sessions)} note={c.sessions === undefined ? "no node answers" : "at all nodes that answer"} />
    </div>
  );
}

function Of({ n, of }: { n: number; of: number }) {
  return (
    <>
      {count(n)}
      <span className="text-[1.05rem] font-normal text-faint"> / {count(of)}</span>
    </>
  );
}

/** Says which nodes did not answer, and how old what is shown of them is. */
export function Partial({ freshness: f }: { freshness: Freshness }) {
  if (f.unreachable.length === 0 && f.geo_config.reachable) return null;
  return (
    <div className="flex flex-col gap-1 rounded-[10px] border border-line bg-warn-wash px-4 py-2.5 text-warn" role="status">
      {f.unreachable.slice(0, 4).map((u) => (
        <p key={u.node} className="flex flex-wrap items-center gap-x-2">
          <Mark tone="warn" />
          <span>
            Node {shortId(u.node)} at {u.site} does not answer; {u.last_seen_at ? <>its figures are from <Age at={u.last_seen_at} /></> : "it has said nothing yet"}.
          </span>
        </p>
      ))}
      {f.unreachable.length > 4 ? <p>…and {plural(f.unreachable.length - 4, "more node")}.</p> : null}
      {f.geo_config.reachable ? null : (
        <p className="flex items-center gap-2">
          <Mark tone="warn" /> The configuration store does not answer. Reads and writes of files go on; changes here wait for it.
        </p>
      )}
    </div>
  );
}

function Geography() {
  const sites = useQuery(queries.sites());
  const network = useQuery(queries.network());
  const { view, site } = useSearch({ from: "/shell/" });
  const navigate = useNavigate({ from: "/" });
  return (
    <Card
      flush
      title="Sites"
      className="self-start"
      aside={
        <div role="group" aria-label="Show as" className="flex rounded-lg border border-line p-0.5">
          {(["map", "table"] as const).map((v) => (
            <button key={v} type="button" aria-pressed={view === v} onClick={() => void navigate({ search: (s) => ({ ...s, view: v }) })} className={`min-h-6 rounded-md px-2.5 capitalize ${view === v ? "bg-accent-wash font-medium text-accent" : "hover:text-ink"}`}>
              {v}
            </button>
          ))}
        </div>
      }
    >
      <Shown query={sites} what="the sites" rows={9}>
        {(list) =>
          list.items.length === 0 ? (
            <Empty title="No site yet" action={<Command>cartwheel site add NAME --location CITY</Command>}>
              A site is a place with failures of its own. Add one, then let its first node join.
            </Empty>
          ) : (
            <MapOrTable sites={list.items} network={network.data} view={view} chosen={site} choose={(name) => void navigate({ search: (s) => ({ ...s, site: name }), replace: true })} />
          )
        }
      </Shown>
    </Card>
  );
}

function MapOrTable({ sites, network, view, chosen, choose }: { sites: Site[]; network: Network | undefined; view: "map" | "table"; chosen: string | undefined; choose: (name: string) => void }) {
  const navigate = useNavigate();
  const placed = useMemo(
    () =>
      sites.flatMap((s): MapSite[] => {
        const place = placeOfSite(s);
        if (!place) return [];
        return [{ name: s.name, place, tone: siteTone(s), nodes: s.nodes.length, nodesUp: s.nodes_up, slicesActive: s.slices_active, usedBytes: s.used_bytes, capacityBytes: s.capacity_bytes }];
      }),
    [sites],
  );
  const links = useMemo(() => siteLinks(network, sites), [network, sites]);
  const loose = sites.filter((s) => !placeOfSite(s));
  const open = (name: string) => void navigate({ to: "/sites/$name", params: { name } });
  if (view === "table" || placed.length === 0) {
    return (
      <>
        <SitesTable sites={sites} />
        {view === "map" ? <p className="border-t border-line px-4 py-3 text-soft">No site has a location that the map knows, so this is the table. Set a city, or latitude and longitude, at the site.</p> : null}
      </>
    );
  }
  return (
    <>
      <WorldMap sites={placed} links={links} chosen={chosen} choose={choose} open={open} />
      {loose.length > 0 ? (
        <div className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-2.5">
          <span className="text-faint" aria-hidden="true">
            Not on the map:
          </span>
          <ul className="flex flex-wrap gap-2" aria-label="Not on the map">
            {loose.map((s) => (
              <li key={s.name}>
                <Link to="/sites/$name" params={{ name: s.name }} className="rounded-full hover:brightness-95" title={s.location ? `“${s.location}” is no place that the map knows` : "It has no location"}>
                  <Pill tone={siteTone(s)}>{s.name}</Pill>
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </>
  );
}

function SitesTable({ sites }: { sites: Site[] }) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label="Table of sites">
      <table className="grid-table">
        <thead>
          <tr>
            <th>Site</th>
            <th>Location</th>
            <th className="num">Nodes up</th>
            <th className="num">Active slices</th>
            <th className="num">Used</th>
          </tr>
        </thead>
        <tbody>
          {sites.map((s) => (
            <tr key={s.name}>
              <th scope="row">
                <Link to="/sites/$name" params={{ name: s.name }} className="link">
                  {s.name}
                </Link>
              </th>
              <td>{s.location || <span className="text-faint">not set</span>}</td>
              <td className="num">
                {s.nodes_up} / {s.nodes.length}
              </td>
              <td className="num">{count(s.slices_active)}</td>
              <td className="num">{s.capacity_bytes > 0 ? bytes(s.used_bytes) : bytes(undefined)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Where a cause's subject can be seen. */
function CauseLink({ cause }: { cause: Cause }) {
  const [kind, id] = cause.subject?.split("/") ?? [];
  if (!id) return kind === "slices" ? <Link to="/slices" className="link">Slices</Link> : null;
  const name = decodeURIComponent(id);
  if (kind === "nodes") return <Link to="/nodes/$id" params={{ id: name }} className="link">Node {shortId(name)}</Link>;
  if (kind === "sites") return <Link to="/sites/$name" params={{ name }} className="link">{name}</Link>;
  if (kind === "slices") return <Link to="/slices/$id" params={{ id: name }} className="link">Slice {name}</Link>;
  return null;
}

function Attention({ causes }: { causes: Cause[] | undefined }) {
  return (
    <Card title="Needs attention" flush>
      {causes === undefined ? (
        <p className="px-4 pb-4 text-faint">Not known yet.</p>
      ) : causes.length === 0 ? (
        <p className="flex items-center gap-2 px-4 pb-4 text-soft">
          <Mark tone="ok" /> Nothing.
        </p>
      ) : (
        <ul className="divide-y divide-line border-t border-line">
          {causes.map((c, i) => (
            <li key={`${c.kind} ${c.subject ?? i}`} className="flex gap-2.5 px-4 py-2.5">
              <span className="mt-1.5">
                <Mark tone={c.severity === "critical" ? "bad" : "warn"} />
              </span>
              <span>
                <span className="sr-only">{c.severity}: </span>
                {c.text} <CauseLink cause={c} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Recent() {
  const activity = useInfiniteQuery(queries.activity({}, () => ({}), 6));
  const items = activity.data?.pages[0]?.items;
  return (
    <Card title="Recent changes" flush aside={<Link to="/activity" className="link">All</Link>}>
      {items === undefined ? (
        <p className="px-4 pb-4 text-faint">
          {activity.error ? activity.error.message : "Looking."} {activity.error ? <Button kind="quiet" onClick={() => void activity.refetch()}>Try again</Button> : null}
        </p>
      ) : items.length === 0 ? (
        <p className="px-4 pb-4 text-soft">Nothing has been changed yet.</p>
      ) : (
        <ul className="divide-y divide-line border-t border-line">
          {items.map((a) => (
            <ActivityRow key={a.number} record={a} />
          ))}
        </ul>
      )}
    </Card>
  );
}
