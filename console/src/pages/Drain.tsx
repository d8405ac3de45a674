import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { asCurl } from "../api/call";
import type { DrainVerdict, SliceRemark } from "../api/generated";
import type { Node } from "../api/model";
import { drain, type Drained, drainCommand, drainQuery, nameOf, pathOf, undrain } from "../api/operate";
import { useLacks } from "../api/session";
import { bytes, plural, shortId } from "../format";
import { Button, Card, Copy, Mark } from "../ui/kit";
import { ChangeFailure, sentence, Shown } from "../ui/states";

function spoken(d: Drained): string {
  return d.kind === "node" ? `node ${shortId(d.id)}` : d.name;
}

/** The button that opens a drain's panel. */
export function DrainButton({ open, set }: { open: boolean; set: (open: boolean) => void }) {
  const lacks = useLacks("operator");
  return <Button why={lacks} aria-expanded={open} onClick={() => set(!open)}>Drain…</Button>;
}

/** What a drain would do, and the button that begins it. */
export function DrainPanel({ of, close }: { of: Drained; close: () => void }) {
  const verdict = useQuery(drainQuery(of));
  return (
    <Card title={`Drain ${spoken(of)}`} aside={<Button kind="quiet" onClick={close}>Close</Button>}>
      <Shown query={verdict} what="what stands in the way">{(v) => <Verdict of={of} verdict={v} close={close} />}</Shown>
    </Card>
  );
}

function Verdict({ of, verdict: v, close }: { of: Drained; verdict: DrainVerdict; close: () => void }) {
  const client = useQueryClient();
  const lacks = useLacks("operator");
  const [force, setForce] = useState(false);
  const begin = useMutation({ mutationFn: () => drain(of, { force }), onSuccess: close, onSettled: () => client.invalidateQueries() });
  const blocked = v.obstacles_total > 0;
  const why = lacks ?? (blocked && !force ? "something stands in the way" : undefined);
  return (
    <div className="flex flex-col gap-3">
      <p role="status" className="flex items-center gap-2.5 font-medium">
        <Mark tone={blocked ? "bad" : v.losses_total > 0 ? "warn" : "ok"} />
        {blocked ? `${plural(v.obstacles_total, "slice")} cannot leave.` : v.losses_total > 0 ? `All can leave. ${plural(v.losses_total, "slice")} would not have what the policy asks for.` : v.left.slices === 0 ? "No slice is here." : "Nothing stands in the way."}
      </p>
      <p className="text-soft">
        {plural(v.left.slices, "slice")} with a copy here, {v.left.active} of them led here{v.left.stored_bytes ? `, ${bytes(v.left.stored_bytes)} to copy` : ""}
        {v.left.unknown_slices ? ` and ${plural(v.left.unknown_slices, "slice")} of unknown size` : ""}. Others take over and copy first; reads and writes go on.
      </p>
      <Remarks title="In the way" list={v.obstacles} total={v.obstacles_total} />
      <Remarks title="Not as the policy asks" list={v.losses} total={v.losses_total} />
      {blocked ? (
        <label className="flex items-center gap-2">
          <input type="checkbox" checked={force} onChange={(e) => setForce(e.target.checked)} /> Begin all the same: what cannot leave stays until it can
        </label>
      ) : null}
      {begin.error ? <ChangeFailure error={begin.error} /> : null}
      <div className="flex flex-wrap items-center gap-2">
        <Button kind="main" why={why} busy={begin.isPending} onClick={() => begin.mutate()}>Begin to drain</Button>
        <Copy text={drainCommand(of, "drain", force)} label="Copy as command" />
        <Copy text={asCurl(`${pathOf(of)}/drain`, { method: "POST", body: { force } })} label="Copy as API call" />
        <Link to="/what-if" search={of.kind === "node" ? { drainNode: [of.id] } : { drainSite: [nameOf(of)] }} className="link">Latency and bytes on paper</Link>
      </div>
    </div>
  );
}

function Remarks({ title, list, total }: { title: string; list: SliceRemark[]; total: number }) {
  if (total === 0) return null;
  return (
    <section aria-label={title}>
      <h3 className="font-medium">{title}</h3>
      <ul className="mt-1 flex max-h-56 list-disc flex-col gap-1 overflow-y-auto pl-5 text-soft" tabIndex={0} aria-label={title}>
        {list.map((r) => <li key={r.slice}>{sentence(r.text)}</li>)}
        {total > list.length ? <li>And {plural(total - list.length, "slice")} more.</li> : null}
      </ul>
    </section>
  );
}

/** Says that nodes are being drained and what they still have, and ends it. */
export function DrainNotice({ of, nodes }: { of: Drained; nodes: Node[] }) {
  const client = useQueryClient();
  const lacks = useLacks("operator");
  const end = useMutation({ mutationFn: () => undrain(of), onSettled: () => client.invalidateQueries() });
  const drained = nodes.filter((n) => n.draining);
  if (drained.length === 0) return null;
  const left = drained.reduce((sum, n) => sum + (n.left?.slices ?? 0), 0);
  const led = drained.reduce((sum, n) => sum + (n.left?.active ?? 0), 0);
  const who = of.kind === "node" ? "It is" : drained.length === nodes.length ? "All its nodes are" : `${plural(drained.length, "node")} of ${nodes.length} are`;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-[10px] border border-line bg-accent-wash px-4 py-2.5">
      <p role="status" className="flex items-center gap-2">
        <Mark tone={left === 0 ? "ok" : "warn"} />
        {left === 0 ? `${who} drained: no copy is left there. Stop the machine, or remove it here.` : `${who} being drained: ${plural(left, "copy", "copies")} left, ${led} of them active.`}
      </p>
      <span className="ml-auto flex flex-wrap items-center gap-2">
        <Copy text={drainCommand(of, "undrain")} label="Copy as command" />
        <Button why={lacks} busy={end.isPending} onClick={() => end.mutate()}>End the drain</Button>
      </span>
      {end.error ? <ChangeFailure error={end.error} /> : null}
    </div>
  );
}
