import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { asCurl } from "../api/call";
import type { SliceDetail } from "../api/model";
import { type PolicyChange, policyCommand, setPolicy } from "../api/operate";
import { queries } from "../api/queries";
import { useLacks } from "../api/session";
import { verdict, type WhatIfChange, whatIfQuery } from "../api/whatif";
import { bytes, span } from "../format";
import { Button, Card, Copy, Facts, Mark } from "../ui/kit";
import { ChangeFailure, Failure, Skeleton } from "../ui/states";
import { Expected } from "./Expected";

/** A slice's policy, and the form that changes it. */
export function PolicyCard({ slice: s }: { slice: SliceDetail }) {
  const lacks = useLacks("operator");
  const [open, setOpen] = useState(false);
  return (
    <Card title="Policy" aside={<Button kind="quiet" why={lacks} aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Keep it" : "Change…"}</Button>}>
      {open ? (
        <PolicyForm slice={s} close={() => setOpen(false)} />
      ) : (
        <div className="flex flex-col gap-3">
          <Facts items={[["Home", s.policy.home], ["Copies", s.policy.level], ["Sites", s.policy.sites || "as many as there are"], ["Kind", s.policy.kind === "write_once" ? "write once" : "ordinary"], ["Standbys may lag", s.policy.coherence_ms ? span(s.policy.coherence_ms) : "not at all"], ["New objects", s.closed ? "none: it is closed" : "taken"]]} />
          <Expected level={s.policy.level} sites={s.policy.sites} stored={s.live?.stored_bytes} />
        </div>
      )}
    </Card>
  );
}

function PolicyForm({ slice: s, close }: { slice: SliceDetail; close: () => void }) {
  const client = useQueryClient();
  const lacks = useLacks("operator");
  const sites = useQuery(queries.sites()).data?.items ?? [];
  const nodes = sites.reduce((sum, x) => sum + x.nodes.length, 0);
  // What the form began with: a change made elsewhere meanwhile is a conflict, not overwritten.
  const [seen] = useState({ revision: s.revision, policy: s.policy });
  const [level, setLevel] = useState(s.policy.level);
  const [spread, setSpread] = useState(s.policy.sites);
  const [home, setHome] = useState(s.policy.home);
  const was = seen.policy;
  const change: PolicyChange = { ...(level !== was.level ? { level } : {}), ...(spread !== was.sites ? { sites: spread } : {}), ...(home !== was.home ? { home } : {}) };
  const apply = useMutation({ mutationFn: () => setPolicy(s.id, seen.revision, change), onSuccess: close, onSettled: () => client.invalidateQueries() });
  const why = lacks ?? (Object.keys(change).length === 0 ? "nothing is changed yet" : undefined);
  const upTo = (n: number) => Array.from({ length: Math.min(16, n) }, (_, i) => i + 1);
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(e) => {
        e.preventDefault();
        if (!why) apply.mutate();
      }}
    >
      <label className="flex items-center justify-between gap-3 text-soft">
        Home
        <select className="field w-40" value={home} onChange={(e) => setHome(e.target.value)}>
          {[...new Set([was.home, ...sites.filter((x) => x.nodes.length > 0).map((x) => x.name)])].map((x) => <option key={x}>{x}</option>)}
        </select>
      </label>
      <label className="flex items-center justify-between gap-3 text-soft">
        Copies
        <select className="field w-40" value={level} onChange={(e) => setLevel(Number(e.target.value))}>
          {upTo(Math.max(nodes, was.level)).map((n) => <option key={n}>{n}</option>)}
        </select>
      </label>
      <label className="flex items-center justify-between gap-3 text-soft">
        At sites
        <select className="field w-40" value={spread} onChange={(e) => setSpread(Number(e.target.value))}>
          <option value={0}>as many as there are</option>
          {upTo(Math.max(level, was.sites)).map((n) => <option key={n}>{n}</option>)}
        </select>
      </label>
      <PolicyOutcome id={s.id} change={change} />
      <Expected level={level} sites={Math.min(spread, level)} stored={s.live?.stored_bytes} />
      {apply.error ? <ChangeFailure error={apply.error} onReload={close} /> : null}
      <div className="flex flex-wrap items-center gap-2">
        <Button type="submit" kind="main" why={why} busy={apply.isPending} onClick={() => undefined}>Change the policy</Button>
        {Object.keys(change).length > 0 ? (
          <>
            <Copy text={policyCommand(s.id, change)} label="Copy as command" />
            <Copy text={asCurl(`/slices/${s.id}/policy`, { method: "PUT", body: change, revision: seen.revision })} label="Copy as API call" />
          </>
        ) : null}
      </div>
    </form>
  );
}

/** What the change would do, in a few words. */
function PolicyOutcome({ id, change }: { id: number; change: PolicyChange }) {
  const changes: WhatIfChange[] = [
    ...(change.level !== undefined ? [{ kind: "set_level", slice: id, level: change.level } as const] : []),
    ...(change.home !== undefined ? [{ kind: "set_home", slice: id, site: change.home } as const] : []),
  ];
  const outcome = useQuery(whatIfQuery(changes, {}));
  const spread = change.sites !== undefined ? <p className="text-soft">Predictions do not look at the number of sites.</p> : null;
  if (changes.length === 0) return spread;
  if (outcome.error) return <Failure error={outcome.error} what="the prediction" retry={() => void outcome.refetch()} />;
  if (!outcome.data) return <Skeleton rows={2} label="Working it out" />;
  const v = verdict(outcome.data);
  const moved = outcome.data.slices.find((x) => x.id === id);
  const copied = outcome.data.copies.reduce((sum, c) => sum + c.total_bytes, 0);
  const unknown = outcome.data.copies.some((c) => c.unknown_slices > 0);
  return (
    <section aria-label="What it would do" aria-busy={outcome.isFetching} className={`flex flex-col gap-2 rounded-lg border border-line p-3 ${outcome.isPlaceholderData ? "opacity-60" : ""}`}>
      <p role="status" className="flex items-center gap-2 font-medium"><Mark tone={v.tone} /> {v.text}</p>
      <Facts
        items={[
          ["Active", moved && moved.before.site !== moved.after.site ? `${moved.before.site} → ${moved.after.site || "none"}` : "stays"],
          ["To copy", outcome.data.copies.length === 0 ? "nothing" : unknown ? "of unknown size" : bytes(copied)],
        ]}
      />
      {spread}
      <Link to="/what-if" search={{ slice: id, ...(change.level !== undefined ? { level: [{ slice: id, level: change.level }] } : {}), ...(change.home !== undefined ? { home: [{ slice: id, site: change.home }] } : {}) }} className="link">All that it would do</Link>
    </section>
  );
}
