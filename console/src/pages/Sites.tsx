import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { Node, Site } from "../api/model";
import { queries } from "../api/queries";
import { bytes, count, millis, plural } from "../format";
import { siteLinks, siteTone } from "../geo/derive";
import { placeOfSite } from "../geo/place";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Card, Command, Facts, Meter, Pill, Tile, type Tone } from "../ui/kit";
import { Empty, Failure, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { DrainButton, DrainNotice, DrainPanel } from "./Drain";
import { nodeColumns } from "./Nodes";
import { NewSite, RemoveSite, SiteLocation } from "./SiteForms";

const siteWords: Record<Tone, string> = { ok: "Up", warn: "Degraded", bad: "Down", idle: "No node yet" };

/** A site's state with its mark. */
export function SiteState({ site }: { site: Site }) {
  const tone = siteTone(site);
  return <Pill tone={tone}>{siteWords[tone]}</Pill>;
}

/** All sites. */
export function Sites() {
  const sites = useQuery(queries.sites());
  const network = useQuery(queries.network());
  const { sort, descending } = useSearch({ from: "/shell/sites" });
  const navigate = useNavigate({ from: "/sites" });
  const columns = useMemo((): Column<Site>[] => {
    const links = siteLinks(network.data, sites.data?.items ?? []);
    const near = (name: string) => {
      const ms = links.filter((l) => l.from === name || l.to === name).flatMap((l) => l.ms ?? []);
      return ms.length > 0 ? Math.min(...ms) : undefined;
    };
    return [
      { id: "name", name: "Site", value: (s) => s.name, cell: (s) => <Link to="/sites/$name" params={{ name: s.name }} className="link">{s.name}</Link> },
      { id: "state", name: "State", value: (s) => siteWords[siteTone(s)], cell: (s) => <SiteState site={s} /> },
      { id: "location", name: "Location", value: (s) => s.location, cell: (s) => s.location || <span className="text-faint">not set</span> },
      { id: "nodes", name: "Nodes up", figure: true, value: (s) => s.nodes_up, cell: (s) => `${s.nodes_up} / ${s.nodes.length}` },
      { id: "active", name: "Active slices", figure: true, value: (s) => s.slices_active, cell: (s) => count(s.slices_active) },
      { id: "home", name: "Home slices", figure: true, value: (s) => s.slices_home, cell: (s) => count(s.slices_home) },
      { id: "near", name: "Nearest site", figure: true, value: (s) => near(s.name), cell: (s) => millis(near(s.name)) },
      { id: "used", name: "Used", figure: true, value: (s) => (s.capacity_bytes > 0 ? s.used_bytes : undefined), cell: (s) => (s.capacity_bytes > 0 ? `${bytes(s.used_bytes)} / ${bytes(s.capacity_bytes)}` : bytes(undefined)) },
    ];
  }, [network.data, sites.data]);
  return (
    <Page title="Sites" purpose="Places that fail on their own: data centres, offices, desks." actions={sites.data ? <CsvButtons name="sites" columns={columns} rows={sites.data.items} /> : null}>
      <Card flush>
        <Shown query={sites} what="the sites">
          {(list) => (
            <>
              {list.items.length === 0 ? (
                  <Empty title="No site yet" action={<Command>cartwheel site add NAME --location CITY</Command>}>
                    Every node belongs to a site. Add the first one from a machine with an administrator&apos;s key.
                  </Empty>
                ) : (
                  <Table label="Sites" columns={columns} rows={list.items} rowKey={(s) => s.name} sort={sort ? { id: sort, descending: descending ?? false } : undefined} onSort={(s) => void navigate({ search: { sort: s.id, descending: s.descending || undefined } })} />
                )}
              <NewSite taken={list.items} />
            </>
          )}
        </Shown>
      </Card>
    </Page>
  );
}

/** One site. */
export function SiteDetail() {
  const { name } = useParams({ from: "/shell/sites/$name" });
  const sites = useQuery(queries.sites());
  const nodes = useQuery({ ...queries.nodes(), refetchInterval: (q) => (q.state.data?.items.some((n) => n.site === name && n.left?.slices) ? 2000 : false) });
  const network = useQuery(queries.network());
  const [draining, setDraining] = useState(false);
  const here = nodes.data?.items.filter((n) => n.site === name) ?? [];
  const canDrain = here.some((n) => !n.draining);
  const site = sites.data?.items.find((s) => s.name === name);
  return (
    <Page
      title={name}
      trail={[{ name: "Sites", to: "/sites" }]}
      purpose={site?.location || undefined}
      actions={
        <>
          {canDrain ? <DrainButton open={draining} set={setDraining} /> : null}
          <Link to="/what-if" search={{ lose: [name] }} className="btn btn-main">
            Rehearse its loss
          </Link>
        </>
      }
    >
      {draining && canDrain ? <DrainPanel of={{ kind: "site", name }} close={() => setDraining(false)} /> : null}
      <DrainNotice of={{ kind: "site", name }} nodes={here} />
      <Shown query={sites} what="the site">
        {() => (site ? <SiteBody site={site} nodes={nodes.data?.items.filter((n) => n.site === name)} links={siteLinks(network.data, sites.data!.items).filter((l) => l.from === name || l.to === name)} /> : <Card><Failure what={`the site ${name}`} error={new Error(`${name} is no site of this cluster.`)} /></Card>)}
      </Shown>
    </Page>
  );
}

function SiteBody({ site, nodes, links }: { site: Site; nodes: Node[] | undefined; links: { from: string; to: string; ms: number | undefined; broken: boolean }[] }) {
  const place = placeOfSite(site);
  return (
    <>
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Tile label="Nodes up" value={`${site.nodes_up} / ${site.nodes.length}`} tone={siteTone(site)} />
        <Tile label="Active slices" value={count(site.slices_active)} note={<Link to="/slices" search={{ site: site.name }} className="link">slices with a copy here</Link>} />
        <Tile label="Home slices" value={count(site.slices_home)} note={<Link to="/slices" search={{ home: site.name }} className="link">slices at home here</Link>} />
        <Tile label="Used" value={bytes(site.capacity_bytes > 0 ? site.used_bytes : undefined)} note={site.capacity_bytes > 0 ? <Meter value={site.used_bytes} max={site.capacity_bytes} label={`${bytes(site.used_bytes)} of ${bytes(site.capacity_bytes)}`} /> : "no node has said"} />
      </div>
      <div className="grid grid-cols-1 items-start gap-5 xl:grid-cols-[minmax(0,1fr)_21rem]">
        <Card title="Nodes" flush>
          {nodes === undefined ? <p className="px-4 pb-4 text-faint">Not known yet.</p> : nodes.length === 0 ? (
            <Empty title="No node yet" action={<Command>{`cartwheel cluster token ${site.name}`}</Command>}>A token lets one machine join as a node of this site.</Empty>
          ) : (
            <Table label={`Nodes of ${site.name}`} columns={nodeColumns.filter((c) => c.id !== "site")} rows={nodes} rowKey={(n) => n.id} />
          )}
        </Card>
        <div className="flex flex-col gap-5">
          <Card title="Place">
            <Facts items={[["Location", site.location || "not set"], ["On the map", place ? `${place.lat.toFixed(2)}, ${place.lon.toFixed(2)}${place.by === "name" ? ", the city of its name" : ""}` : "no: a city or “lat, lon” puts it there"], ["Row", `revision ${site.revision}`]]} />
            <SiteLocation key={site.name} site={site} />
            <RemoveSite site={site} />
          </Card>
          <Card title="Round trips">
            {links.length === 0 ? <p className="text-soft">No link to another site is known.</p> : (
              <Facts items={links.map((l) => [l.from === site.name ? l.to : l.from, l.broken ? <Pill key="b" tone="bad">no connection</Pill> : millis(l.ms)])} />
            )}
            <p className="mt-2 text-[0.9rem] text-faint">Median of {plural(links.length, "site pair")} as nodes measured them.</p>
          </Card>
        </div>
      </div>
    </>
  );
}
