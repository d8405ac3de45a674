import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import type { Node, Site } from "../api/model";
import { asCurl } from "../api/call";
import { queries } from "../api/queries";
import { asCommand, whatIfQuery } from "../api/whatif";
import { plural, shortId } from "../format";
import { Page } from "../shell/Page";
import { Button, Card, Copy, Mark } from "../ui/kit";
import { NumberField } from "../ui/NumberField";
import { Empty, Failure, Skeleton } from "../ui/states";
import { siteTone } from "../geo/derive";
import { ApplyDraft } from "./Apply";
import { assumptionsOf, changesOf, type Draft, toggled } from "./draft";
import { OutcomeView } from "./Outcome";

/** Try a change on paper: what it does to latency, copies and bytes, before anything is done. */
export function WhatIf() {
  const draft = useSearch({ from: "/shell/what-if" });
  const navigate = useNavigate({ from: "/what-if" });
  const set = (part: Partial<Draft>) => void navigate({ search: (s) => Object.fromEntries(Object.entries({ ...s, ...part }).filter(([, v]) => v !== undefined)), replace: true });
  const changes = changesOf(draft);
  const assumptions = assumptionsOf(draft);
  const outcome = useQuery(whatIfQuery(changes, assumptions));
  return (
    <Page
      title="What-if"
      purpose="Try a change on paper. Nothing is touched until you apply it."
      actions={
        changes.length > 0 ? (
          <>
            <Copy text={asCommand(changes, assumptions)} label="Copy as command" />
            <Copy text={asCurl("/what-if", { method: "POST", body: { changes, ...assumptions } })} label="Copy as API call" />
            <Button onClick={() => void navigate({ search: {} })}>Clear the draft</Button>
          </>
        ) : null
      }
    >
      <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-[21rem_minmax(0,1fr)]">
        <DraftPanel draft={draft} set={set} />
        <div className={`flex min-w-0 flex-col gap-5 ${changes.length > 0 ? "order-first lg:order-none" : ""} ${outcome.isPlaceholderData ? "opacity-60 transition-opacity delay-150" : ""}`} aria-busy={outcome.isFetching}>
          {changes.length === 0 ? (
            <Card>
              <Empty title="Nothing is changed yet">
                Choose a site or a node to lose or to drain, add a site, or change a slice. The page then shows what users at each site would get, what stays available, and how many bytes go over each link.
              </Empty>
            </Card>
          ) : outcome.error ? (
            <Card>
              <Failure error={outcome.error} what="the prediction" retry={() => void outcome.refetch()} />
            </Card>
          ) : outcome.data ? (
            <>
              <OutcomeView outcome={outcome.data} />
              <ApplyDraft draft={draft} working={outcome.isFetching} clear={() => void navigate({ search: {} })} />
            </>
          ) : (
            <Card>
              <Skeleton rows={8} label="Working it out" />
            </Card>
          )}
        </div>
      </div>
    </Page>
  );
}

interface PanelProps {
  draft: Draft;
  set: (part: Partial<Draft>) => void;
}

function DraftPanel({ draft, set }: PanelProps) {
  const sites = useQuery(queries.sites()).data?.items ?? [];
  const nodes = useQuery(queries.nodes()).data?.items ?? [];
  return (
    <div className="flex flex-col gap-4 *:shrink-0 lg:sticky lg:top-[4.400rem] lg:max-h-[calc(100dvh-5.500rem)] lg:overflow-y-auto">
      <Card title="Lose sites" aside={draft.lose ? plural(draft.lose.length, "site") : undefined}>
        <ChosenSites label="Sites to lose" sites={sites} chosen={draft.lose} gone set={(lose) => set({ lose })} />
        <ChosenNodes word="Lose" nodes={nodes} chosen={draft.loseNode} set={(loseNode) => set({ loseNode })} />
      </Card>
      <Card title="Drain" aside={draft.drainSite ? plural(draft.drainSite.length, "site") : undefined}>
        <ChosenSites label="Sites to drain" sites={sites} chosen={draft.drainSite} set={(drainSite) => set({ drainSite })} />
        <ChosenNodes word="Drain" nodes={nodes} chosen={draft.drainNode} set={(drainNode) => set({ drainNode })} />
      </Card>
      <Card title="Add a site">
        <AddSite sites={sites} draft={draft} set={set} />
      </Card>
      <Card title="Change a slice">
        <ChangeSlice key={draft.slice} sites={sites} draft={draft} set={set} />
      </Card>
      <Card title="Assumptions">
        <div className="flex flex-col gap-2.5">
          <NumberField label="Rate between sites" unit="Mbit/s" placeholder="?" value={draft.rate} set={(rate) => set({ rate })} />
          <NumberField label="Copies begin after" unit="min" placeholder="30" value={draft.after} set={(after) => set({ after })} />
        </div>
      </Card>
    </div>
  );
}

interface ChosenProps {
  chosen: string[] | undefined;
  set: (chosen: string[] | undefined) => void;
}

function ChosenSites({ label, sites, chosen, gone, set }: ChosenProps & { label: string; sites: Site[]; gone?: boolean }) {
  if (sites.length === 0) return <p className="text-soft">No site is known yet.</p>;
  return (
    <div className="flex flex-wrap gap-1.5" role="group" aria-label={label}>
      {sites.map((s) => {
        const on = chosen?.includes(s.name) ?? false;
        return (
          <button
            key={s.name}
            type="button"
            aria-pressed={on}
            onClick={() => set(toggled(chosen, s.name))}
            className={`inline-flex min-h-8 items-center gap-1.5 rounded-lg border px-2.5 ${on ? (gone ? "border-bad bg-bad-wash font-medium text-bad line-through decoration-1" : "border-accent bg-accent-wash font-medium text-accent") : "border-line hover:border-edge"}`}
          >
            <Mark tone={on && gone ? "bad" : siteTone(s)} size={9} />
            {s.name}
          </button>
        );
      })}
    </div>
  );
}

function ChosenNodes({ word, nodes, chosen, set }: ChosenProps & { word: string; nodes: Node[] }) {
  return (
    <div className="mt-3 flex flex-col gap-2 border-t border-line pt-3">
      <label className="flex items-center justify-between gap-3 text-soft">
        {word} one node
        <select className="field w-40" value="" onChange={(e) => e.target.value && set(toggled(chosen, e.target.value))}>
          <option value="">choose…</option>
          {nodes
            .filter((n) => !chosen?.includes(n.id))
            .map((n) => (
              <option key={n.id} value={n.id}>
                {n.site} {shortId(n.id)}
              </option>
            ))}
        </select>
      </label>
      <Chips items={(chosen ?? []).map((id) => ({ key: id, text: `${word} ${nodes.find((n) => n.id === id)?.site ?? ""} ${shortId(id)}`, drop: () => set(toggled(chosen, id)) }))} />
    </div>
  );
}

function Chips({ items }: { items: { key: string; text: string; drop: () => void }[] }) {
  if (items.length === 0) return null;
  return (
    <ul className="flex flex-wrap gap-1.5">
      {items.map((i) => (
        <li key={i.key}>
          <button type="button" onClick={i.drop} aria-label={`Take out: ${i.text}`} className="inline-flex min-h-7 items-center gap-1.5 rounded-lg bg-accent-wash px-2 text-accent">
            {i.text} <span aria-hidden="true">✕</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function AddSite({ sites, draft, set }: PanelProps & { sites: Site[] }) {
  const [name, setName] = useState("");
  const [count, setCount] = useState<number | undefined>(1);
  const [rtt, setRtt] = useState<Record<string, number>>({});
  const taken = sites.some((s) => s.name === name) || draft.add?.some((a) => a.site === name);
  const why = !name ? "name the site" : taken ? `${name} is taken` : Object.keys(rtt).length === 0 ? "say how far it is from another site" : undefined;
  const add = () => {
    set({ add: [...(draft.add ?? []), { site: name, nodes: Math.max(1, Math.round(count ?? 1)), rtt }] });
    setName("");
    setRtt({});
  };
  return (
    <form
      className="flex flex-col gap-2.5"
      onSubmit={(e) => {
        e.preventDefault();
        if (!why) add();
      }}
    >
      <Chips items={(draft.add ?? []).map((a) => ({ key: a.site, text: `${a.site}, ${plural(a.nodes, "node")}`, drop: () => set({ add: draft.add!.length > 1 ? draft.add!.filter((x) => x !== a) : undefined }) }))} />
      <label className="flex items-center justify-between gap-3 text-soft">
        Name
        <input className="field w-44" value={name} maxLength={63} onChange={(e) => setName(e.target.value.trim())} />
      </label>
      <NumberField label="Nodes" unit="" value={count} set={setCount} />
      <details>
        <summary className="min-h-6 text-soft">Round trips to other sites{Object.keys(rtt).length > 0 ? ` (${Object.keys(rtt).length})` : ""}</summary>
        <div className="mt-2 flex max-h-56 flex-col gap-1.5 overflow-y-auto">
          {sites.map((s) => (
            <NumberField
              key={s.name}
              label={s.name}
              unit="ms"
              value={rtt[s.name]}
              set={(ms) => {
                const next = { ...rtt };
                if (ms === undefined || ms <= 0) delete next[s.name];
                else next[s.name] = ms;
                setRtt(next);
              }}
            />
          ))}
        </div>
      </details>
      <Button type="submit" why={why} onClick={add}>
        Add to the draft
      </Button>
      {why && name ? <p className="text-[0.9rem] text-faint">To add it, {why}.</p> : null}
    </form>
  );
}

function ChangeSlice({ sites, draft, set }: PanelProps & { sites: Site[] }) {
  const [slice, setSlice] = useState<number | undefined>(draft.slice);
  const row = useQuery({ ...queries.slice(slice ?? 0), enabled: slice !== undefined && Number.isInteger(slice) && slice > 0, retry: false });
  const members = row.data?.members.filter((m) => !m.active).map((m) => m.site) ?? [];
  const ok = slice !== undefined && row.data !== undefined;
  return (
    <div className="flex flex-col gap-2.5">
      <Chips
        items={[
          ...(draft.move ?? []).map((m) => ({ key: `m${m.slice}`, text: `Move ${m.slice} to ${m.site}`, drop: () => set({ move: draft.move!.length > 1 ? draft.move!.filter((x) => x !== m) : undefined }) })),
          ...(draft.home ?? []).map((h) => ({ key: `h${h.slice}`, text: `Home of ${h.slice} at ${h.site}`, drop: () => set({ home: draft.home!.length > 1 ? draft.home!.filter((x) => x !== h) : undefined }) })),
          ...(draft.level ?? []).map((l) => ({ key: `l${l.slice}`, text: `${plural(l.level, "copy", "copies")} of ${l.slice}`, drop: () => set({ level: draft.level!.length > 1 ? draft.level!.filter((x) => x !== l) : undefined }) })),
        ]}
      />
      <NumberField label="Slice" unit="" value={slice} set={(v) => setSlice(v === undefined ? undefined : Math.round(v))} />
      {slice !== undefined && row.error ? <p className="text-bad">{row.error.message}</p> : null}
      <label className="flex items-center justify-between gap-3 text-soft">
        Its active to
        <select className="field w-44" disabled={!ok} value="" onChange={(e) => ok && set({ move: [...(draft.move ?? []).filter((m) => m.slice !== slice), { slice, site: e.target.value }] })}>
          <option value="">{ok ? `now ${row.data.active_site}…` : "choose a slice"}</option>
          {[...new Set(members)].map((m) => (
            <option key={m}>{m}</option>
          ))}
        </select>
      </label>
      <label className="flex items-center justify-between gap-3 text-soft">
        Its home at
        <select className="field w-44" disabled={!ok} value="" onChange={(e) => ok && set({ home: [...(draft.home ?? []).filter((h) => h.slice !== slice), { slice, site: e.target.value }] })}>
          <option value="">{ok ? `now ${row.data.policy.home}…` : "choose a slice"}</option>
          {sites.filter((s) => s.name !== row.data?.policy.home).map((s) => (
            <option key={s.name}>{s.name}</option>
          ))}
        </select>
      </label>
      <label className="flex items-center justify-between gap-3 text-soft">
        Its copies
        <select className="field w-44" disabled={!ok} value="" onChange={(e) => ok && set({ level: [...(draft.level ?? []).filter((l) => l.slice !== slice), { slice, level: Number(e.target.value) }] })}>
          <option value="">{ok ? `now ${row.data.policy.level}…` : "choose a slice"}</option>
          {Array.from({ length: Math.max(5, sites.length) }, (_, i) => i + 1).slice(0, 16).map((n) => (
            <option key={n}>{n}</option>
          ))}
        </select>
      </label>
    </div>
  );
}
