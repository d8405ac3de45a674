import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answered } from "../api/call";
import * as sdk from "../api/generated";
import { queries } from "../api/queries";
import { useLacks } from "../api/session";
import { bytes, count, plural, shortId, span } from "../format";
import { Age, Button, Card, Code, Copy, Facts, Pill } from "../ui/kit";
import { ChangeFailure, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { scrubCommand } from "./past";

/** What a node's scrub does now. */
export function doing(r: sdk.ScrubReport | undefined): string {
  if (!r) return "not known";
  if (!r.running) return r.round === 0 ? "has read nothing yet" : "rests";
  return r.phase === "chunks" ? `reads chunks, ${Math.floor(r.done_share * 100)} %` : `reads ${r.phase ?? "what it stores"}`;
}

/** How well what a node stores is, in words. */
export function Verdict({ report: r }: { report: sdk.ScrubReport | undefined }) {
  if (!r) return <Pill tone="idle">Not known</Pill>;
  if (r.lost_chunks > 0) return <Pill tone="bad">{plural(r.lost_chunks, "chunk")} lost</Pill>;
  if (r.different.length > 0) return <Pill tone="warn">{plural(r.different.length, "slice")} {r.different.length === 1 ? "differs" : "differ"}</Pill>;
  if (r.ended_round === 0) return <Pill tone="idle">Not read yet</Pill>;
  return <Pill tone="ok">Sound</Pill>;
}

/** Has nodes read all that they store. The first failure is thrown, once all were asked. */
async function scrub(nodes: string[]): Promise<void> {
  const asked = await Promise.allSettled(nodes.map((id) => answered(sdk.scrubNode({ path: { id }, body: {} }))));
  const failed = asked.find((a) => a.status === "rejected");
  if (failed) throw failed.reason;
}

/** The button that has nodes read all that they store. */
function ScrubNow({ nodes, label }: { nodes: string[]; label: string }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const begin = useMutation({ mutationFn: () => scrub(nodes), onSettled: () => client.invalidateQueries({ queryKey: ["scrub"] }) });
  return (
    <>
      <Button why={lacks ?? (nodes.length === 0 ? "no node answers" : undefined)} busy={begin.isPending} onClick={() => begin.mutate()}>{label}</Button>
      {begin.error ? <ChangeFailure error={begin.error} /> : null}
    </>
  );
}

const columns: Column<sdk.Scrub>[] = [
  { id: "node", name: "Node", value: (s) => s.node, cell: (s) => <Link to="/nodes/$id" params={{ id: s.node }} className="link" title={s.node}><Code>{shortId(s.node)}</Code></Link> },
  { id: "site", name: "Site", value: (s) => s.site, cell: (s) => s.site },
  { id: "state", name: "What it stores", cell: (s) => <Verdict report={s.report} /> },
  { id: "now", name: "Now", value: (s) => doing(s.report), cell: (s) => doing(s.report) },
  { id: "ended", name: "Last read all", value: (s) => s.report?.ended_at, cell: (s) => <Age at={s.report?.ended_at} /> },
  { id: "damaged", name: "Damaged", figure: true, value: (s) => s.report?.total.damaged, cell: (s) => count(s.report?.total.damaged) },
  { id: "missing", name: "Missing", figure: true, value: (s) => s.report?.total.missing, cell: (s) => count(s.report?.total.missing) },
  { id: "repaired", name: "Repaired", figure: true, value: (s) => s.report?.total.repaired, cell: (s) => count(s.report?.total.repaired) },
  { id: "errors", name: "Read errors", figure: true, value: (s) => s.report?.total.read_errors, cell: (s) => count(s.report?.total.read_errors) },
];

/** How far all nodes are with reading what they store. */
export function Scrubs() {
  const scrubs = useQuery(queries.scrubs());
  const silent = new Set(scrubs.data?.freshness.unreachable.map((u) => u.node));
  return (
    <Card title="Scrub" flush aside={<><span>each node reads all that it stores, and repairs it</span><ScrubNow nodes={scrubs.data?.items.filter((s) => !silent.has(s.node)).map((s) => s.node) ?? []} label="Scrub all now" /><Copy text="cartwheel scrub --wait" label="Copy as command" /></>}>
      <Shown query={scrubs} what="the scrubs">{(list) => <Table label="Scrub" columns={columns} rows={list.items} rowKey={(s) => s.node} />}</Shown>
    </Card>
  );
}

/** What one node's scrub found. */
export function NodeScrub({ id }: { id: string }) {
  const scrubs = useQuery(queries.scrubs());
  return (
    <Card title="Scrub" aside={<><ScrubNow nodes={[id]} label="Scrub now" /><Copy text={scrubCommand(id)} label="Copy as command" /></>}>
      <Shown query={scrubs} what="its scrub">{(list) => <Report report={list.items.find((s) => s.node === id)?.report} />}</Shown>
    </Card>
  );
}

/** A report in words: the last whole round, what all rounds found, and what is still so. */
export function Report({ report: r }: { report: sdk.ScrubReport | undefined }) {
  if (!r) return <p className="text-soft">The node has said nothing of it.</p>;
  const findings = (c: sdk.ScrubCounts) => `${count(c.damaged)} damaged, ${count(c.missing)} missing, ${count(c.repaired)} repaired, ${plural(c.read_errors, "read error")}`;
  return (
    <div className="flex flex-col gap-3">
      <Facts
        items={[
          ["It is", <Verdict key="v" report={r} />],
          ["Now", `${doing(r)}${r.running && r.ordered ? ", by order" : ""}`],
          ["Last read all", r.ended_at ? <span key="e"><Age at={r.ended_at} />, in {span(r.took_ms)}: {bytes(r.last.read_bytes)}, {plural(r.last.chunks, "chunk")}, {plural(r.last.states, "slice")} compared</span> : "never"],
          ["It found", r.ended_at ? findings(r.last) : "nothing yet"],
          ["Ever", findings(r.total)],
          ["Again", r.period_ms > 0 ? `within ${span(r.period_ms)}` : "only by order"],
        ]}
      />
      {r.lost_chunks > 0 ? (
        <div className="rounded-lg bg-bad-wash px-3 py-2 text-bad">
          <p className="font-medium">No member has given {plural(r.lost_chunks, "chunk")}. Restore the files that have them, or delete them.</p>
          <ul aria-label="Lost chunks">
            {r.lost?.map((l) => <li key={l.chunk} className="wrap-anywhere"><Code>{l.chunk}</Code> of {l.slices.length === 1 ? "slice" : "slices"} {l.slices.join(", ")}{l.objects ? `, in objects ${l.objects.join(", ")}` : ""}{l.unasked ? "; a member that may have it does not answer" : ""}</li>) ?? <li>Administrators see which ones.</li>}
          </ul>
        </div>
      ) : null}
      {r.different.length > 0 ? (
        <ul aria-label="Slices that differ" className="rounded-lg bg-warn-wash px-3 py-2 text-warn">
          {r.different.map((d) => (
            <li key={d.slice}>
              <Link to="/slices/$id" params={{ id: String(d.slice) }} className="link text-warn">Slice {d.slice}</Link> differs from {shortId(d.with)}{d.active_differs ? ", which is the active; two standbys are equal: make one of them the active." : "; it is made anew."}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
