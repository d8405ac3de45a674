import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { answered } from "../api/call";
import { removeNode } from "../api/generated";
import type { NetworkLink, Node } from "../api/model";
import { queries } from "../api/queries";
import { useLacks } from "../api/session";
import { bytes, count, millis, shortId, span } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Age, Card, Code, Command, Copy, Facts, Mark, Meter, Pill, Tile, type Tone } from "../ui/kit";
import { ChangeFailure, Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { DrainButton, DrainNotice, DrainPanel } from "./Drain";
import { Confirmed } from "./People";
import { NodeScrub, Scrubs } from "./Scrub";

const states: Record<Node["state"], [Tone, string]> = { up: ["ok", "Up"], unreachable: ["bad", "No answer"], never_started: ["idle", "Never started"] };

/** A node's state with its mark. */
export function NodeState({ node }: { node: Node }) {
  const [tone, word] = node.live?.read_only && node.state === "up" ? (["warn", "Read only"] as const) : states[node.state];
  return (
    <span className="inline-flex flex-wrap gap-1">
      <Pill tone={tone}>{word}</Pill>
      {node.draining ? <Pill tone="warn">{node.left?.slices ? `Draining, ${node.left.slices} left` : "Drained"}</Pill> : null}
    </span>
  );
}

/** The columns of a list of nodes. Values of a silent node are its last ones, and grey. */
export const nodeColumns: Column<Node>[] = [
  { id: "id", name: "Node", value: (n) => n.id, cell: (n) => <Link to="/nodes/$id" params={{ id: n.id }} className="link" title={n.id}><Code>{shortId(n.id)}</Code></Link> },
  { id: "site", name: "Site", value: (n) => n.site, cell: (n) => <Link to="/sites/$name" params={{ name: n.site }} className="link">{n.site}</Link> },
  { id: "state", name: "State", value: (n) => n.state, cell: (n) => <NodeState node={n} /> },
  { id: "version", name: "Version", value: (n) => n.version, cell: (n) => n.version || <span className="text-faint">not known</span> },
  { id: "uptime", name: "Uptime", figure: true, value: (n) => n.live?.uptime_ms, cell: (n) => <Last node={n}>{span(n.live?.uptime_ms)}</Last> },
  { id: "active", name: "Active", figure: true, value: (n) => n.live?.slices_active, cell: (n) => <Last node={n}>{count(n.live?.slices_active)}</Last> },
  { id: "standby", name: "Standby", figure: true, value: (n) => n.live?.slices_standby, cell: (n) => <Last node={n}>{count(n.live?.slices_standby)}</Last> },
  { id: "junior", name: "Junior", figure: true, value: (n) => n.live?.slices_junior, cell: (n) => <Last node={n}>{count(n.live?.slices_junior)}</Last> },
  { id: "used", name: "Used", figure: true, value: (n) => n.live?.used_bytes, cell: (n) => <Last node={n}>{n.live ? `${bytes(n.live.used_bytes)} / ${bytes(n.live.capacity_bytes)}` : bytes(undefined)}</Last> },
  { id: "seen", name: "Last word", value: (n) => n.live?.as_of_at, cell: (n) => <Age at={n.live?.as_of_at} /> },
];

function Last({ node, children }: { node: Node; children: React.ReactNode }) {
  return <span className={node.state === "up" ? "" : "text-faint italic"}>{children}</span>;
}

/** How often a page looks how far a drain is, in milliseconds. */
const drainLook = 2000;

/** All nodes. */
export function Nodes() {
  const nodes = useQuery({ ...queries.nodes(), refetchInterval: (q) => (q.state.data?.items.some((n) => n.left?.slices) ? drainLook : false) });
  const feature = useQuery(queries.overview()).data?.feature;
  const { sort, descending } = useSearch({ from: "/shell/nodes" });
  const navigate = useNavigate({ from: "/nodes" });
  const versions = useMemo(() => new Set(nodes.data?.items.flatMap((n) => n.version ?? [])), [nodes.data]);
  return (
    <Page title="Nodes" purpose="The storage servers of every site, and their last word of themselves." actions={nodes.data ? <CsvButtons name="nodes" columns={nodeColumns} rows={nodes.data.items} /> : null}>
      {versions.size > 1 ? (
        <p role="status" className="flex items-center gap-2 rounded-[10px] border border-line bg-warn-wash px-4 py-2.5 text-warn">
          <Mark tone="warn" /> The nodes run {versions.size} versions: {[...versions].join(", ")}. {feature && feature.level < feature.known ? `Features of level ${feature.known} wait until the rest is updated.` : "Update the rest."}
        </p>
      ) : null}
      <Card flush>
        <Shown query={nodes} what="the nodes">
          {(list) =>
            list.items.length === 0 ? (
              <Empty title="No node yet" action={<Command>cartwheel cluster token SITE</Command>}>A token lets one machine join, once.</Empty>
            ) : (
              <Table label="Nodes" columns={nodeColumns} rows={list.items} rowKey={(n) => n.id} sort={sort ? { id: sort, descending: descending ?? false } : undefined} onSort={(s) => void navigate({ search: { sort: s.id, descending: s.descending || undefined } })} />
            )
          }
        </Shown>
      </Card>
      <Scrubs />
    </Page>
  );
}

const peerColumns: Column<NetworkLink>[] = [
  { id: "to", name: "Node", value: (l) => l.to, cell: (l) => <Link to="/nodes/$id" params={{ id: l.to }} className="link" title={l.to}><Code>{shortId(l.to)}</Code></Link> },
  { id: "site", name: "Site", value: (l) => l.to_site, cell: (l) => l.to_site },
  { id: "path", name: "Path", value: (l) => l.path, cell: (l) => (l.path.startsWith("via ") ? `relayed by ${shortId(l.path.slice(4))}` : l.path || <Pill tone="bad">no connection</Pill>) },
  { id: "ms", name: "Measured", figure: true, value: (l) => l.measured_ms, cell: (l) => millis(l.measured_ms) },
  { id: "predicted", name: "Predicted", figure: true, value: (l) => l.predicted_ms, cell: (l) => millis(l.predicted_ms) },
  { id: "age", name: "Age", figure: true, value: (l) => l.age_ms, cell: (l) => span(l.age_ms) },
];

/** One node. */
export function NodeDetail() {
  const { id } = useParams({ from: "/shell/nodes/$id" });
  const node = useQuery({ ...queries.node(id), refetchInterval: (q) => (q.state.data?.left?.slices ? drainLook : false) });
  const [draining, setDraining] = useState(false);
  const network = useQuery(queries.network());
  return (
    <Page
      title={`Node ${shortId(id)}`}
      trail={[{ name: "Nodes", to: "/nodes" }]}
      purpose={node.data ? <>At <Link to="/sites/$name" params={{ name: node.data.site }} className="link">{node.data.site}</Link></> : undefined}
      actions={<><Copy text={id} label="Copy ID" />{node.data && !node.data.draining ? <DrainButton open={draining} set={setDraining} /> : null}<Link to="/what-if" search={{ loseNode: [id] }} className="btn btn-main">Rehearse its loss</Link></>}
    >
      <Shown query={node} what="the node">
        {(n) => (
          <>
            {draining && !n.draining ? <DrainPanel of={{ kind: "node", id }} close={() => setDraining(false)} /> : null}
            <DrainNotice of={{ kind: "node", id }} nodes={[n]} />
            {n.state === "up" ? null : (
              <p role="status" className="flex flex-wrap items-center gap-2 rounded-[10px] border border-line bg-warn-wash px-4 py-2.5 text-warn">
                <Mark tone="warn" /> It does not answer. {n.live ? <>The figures are its last ones, <Age at={n.live.as_of_at} />.</> : "It has never said anything of itself."}
              </p>
            )}
            <div className={`grid grid-cols-2 gap-3 lg:grid-cols-4 ${n.state === "up" ? "" : "opacity-75"}`}>
              <Tile label="State" value={<NodeState node={n} />} note={n.live ? `for ${span(n.live.uptime_ms)}` : undefined} />
              <Tile label="Slices" value={n.live ? count(n.live.slices_active + n.live.slices_standby + n.live.slices_junior) : count(undefined)} note={n.live ? `${n.live.slices_active} active, ${n.live.slices_standby} standby, ${n.live.slices_junior} junior` : undefined} />
              <Tile label="Used" value={bytes(n.live?.used_bytes)} note={n.live ? <><Meter value={n.live.used_bytes} max={n.live.capacity_bytes} label={`${bytes(n.live.free_bytes)} free`} /> {bytes(n.live.free_bytes)} free</> : undefined} />
              <Tile label="Sessions" value={count(n.live?.sessions)} note={n.live ? `${count(n.live.object_leases)} object leases` : undefined} />
            </div>
            <div className="grid grid-cols-1 items-start gap-5 xl:grid-cols-[minmax(0,1fr)_24rem]">
              <div className="flex min-w-0 flex-col gap-5">
                <Card title="Peers" flush>
                  <Shown query={network} what="its peers">
                    {(net) => <Table label="Peers" columns={peerColumns} rows={net.links.filter((l) => l.from === id && l.to !== id)} rowKey={(l) => l.to} />}
                  </Shown>
                </Card>
                <NodeScrub id={id} />
              </div>
              <Card title="What it is">
                <Facts
                  items={[
                    ["ID", <Code key="id">{n.id}</Code>],
                    ["Version", n.version || "not known"],
                    ["Addresses", n.addresses.length > 0 ? <span key="a" className="flex flex-col">{n.addresses.map((a) => <Code key={a}>{a}</Code>)}</span> : "none"],
                    ["Geo-config", n.live ? (n.live.geo_config_reachable ? "reachable" : "does not answer it") : "not known"],
                    ["Coordinate", `${n.coordinate.vector_ms.map((v) => v.toFixed(1)).join(", ")} ms, height ${millis(n.coordinate.height_ms)}`],
                    ["Its error", `${(n.coordinate.error * 100).toFixed(0)} %`],
                    ["Row", `revision ${n.revision}`],
                  ]}
                />
                <p className="mt-3"><Link to="/slices" search={{ node: id }} className="link">Slices with a copy here</Link></p>
                <RemoveNode id={id} />
              </Card>
            </div>
          </>
        )}
      </Shown>
    </Page>
  );
}

/** Removes the node's row. What the node stores stays on its disk. */
function RemoveNode({ id }: { id: string }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const navigate = useNavigate();
  // Its row is renewed by the node itself, so no revision is named: the API removes no member of a slice.
  const remove = useMutation({ mutationFn: () => answered(removeNode({ path: { id } })), onSuccess: () => navigate({ to: "/nodes" }), onSettled: () => client.invalidateQueries({ queryKey: ["nodes"] }) });
  return (
    <div className="mt-3 flex flex-wrap items-center gap-2 border-t border-line pt-3">
      <Confirmed kind="Remove" name={shortId(id)} why={lacks} run={() => remove.mutate()} />
      <Copy text={`cartwheel node remove ${id}`} label="Copy as command" />
      {remove.error ? <ChangeFailure error={remove.error} /> : null}
    </div>
  );
}
