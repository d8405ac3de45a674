import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answered, newKey } from "../api/call";
import * as sdk from "../api/generated";
import { drain, type Drained, type PolicyChange, undrain } from "../api/operate";
import { useLacks } from "../api/session";
import { plural, shortId } from "../format";
import { Button, Card, Mark } from "../ui/kit";
import { ChangeFailure } from "../ui/states";
import type { Draft } from "./draft";

interface Step {
  text: string;
  run: (key: string) => Promise<unknown>;
  /** Puts back what was before. */
  undo?: { text: string; run: (key: string) => Promise<unknown> };
}

/** Hands a slice over to its member at a site, and learns which member was the active. */
async function handOver(id: number, site: string): Promise<void> {
  const slice = await answered(sdk.getSlice({ path: { id } }));
  const member = slice.members.find((m) => m.site === site && !m.active && m.state === "normal");
  if (slice.active_site === site) return; // it is there already
  if (!member) throw new Error(`Slice ${id} has no up-to-date standby at ${site}. Wait until its member there has caught up.`);
  await answered(sdk.handOverSlice({ path: { id }, body: { node: member.node } }));
}

/** What a slice was like before the draft. */
interface Before {
  active: string;
  policy: sdk.Policy;
}

/** The slices that a draft changes. */
function slicesOf(d: Draft): Set<number> {
  return new Set([...(d.move ?? []), ...(d.level ?? []), ...(d.home ?? [])].map((x) => x.slice));
}

function drainStep(of: Drained, name: string): Step {
  return { text: `Drain ${name}`, run: () => drain(of, {}), undo: { text: `End the drain of ${name}`, run: () => undrain(of) } };
}

function policyStep(id: number, text: string, to: PolicyChange, back: PolicyChange | undefined): Step {
  const set = (key: string, body: PolicyChange) => answered(sdk.setSlicePolicy({ headers: { "Idempotency-Key": key }, path: { id }, body }));
  return { text, run: (key) => set(key, to), ...(back ? { undo: { text: `Undo: ${text}`, run: (key: string) => set(key, back) } } : {}) };
}

/** What of the draft the API can do, and what it cannot, with the reason. */
function plan(d: Draft, before: Map<number, Before>): { steps: Step[]; left: string[] } {
  const steps: Step[] = [];
  const left: string[] = [];
  for (const a of d.add ?? []) {
    steps.push({
      text: `Add the site ${a.site}`,
      run: (key) => answered(sdk.addSite({ headers: { "Idempotency-Key": key }, body: { name: a.site } })),
      undo: { text: `Remove the site ${a.site}`, run: (key) => answered(sdk.removeSite({ headers: { "Idempotency-Key": key }, path: { name: a.site } })) },
    });
    left.push(`Its ${plural(a.nodes, "node")} join with tokens: see Settings, Tokens.`);
  }
  for (const name of d.drainSite ?? []) steps.push(drainStep({ kind: "site", name }, name));
  for (const id of d.drainNode ?? []) steps.push(drainStep({ kind: "node", id }, `node ${shortId(id)}`));
  for (const h of d.home ?? []) {
    const was = before.get(h.slice)?.policy;
    steps.push(policyStep(h.slice, `Set the home of slice ${h.slice} to ${h.site}`, { home: h.site }, was && { home: was.home }));
  }
  for (const l of d.level ?? []) {
    const was = before.get(l.slice)?.policy;
    steps.push(policyStep(l.slice, `Set the copies of slice ${l.slice} to ${l.level}`, { level: l.level }, was && { level: was.level }));
  }
  for (const m of d.move ?? []) {
    const was = before.get(m.slice)?.active;
    steps.push({
      text: `Hand slice ${m.slice} over to ${m.site}`,
      run: () => handOver(m.slice, m.site),
      ...(was ? { undo: { text: `Hand slice ${m.slice} back to ${was}`, run: () => handOver(m.slice, was) } } : {}),
    });
  }
  if (d.lose || d.loseNode) left.push("A loss is only rehearsed here. Nothing is switched off.");
  return { steps, left };
}

type Done = "waiting" | "running" | "done" | "failed" | "undone";

/** Applies the draft step by step, shows how far it is, and can put back what was done. */
export function ApplyDraft({ draft, working, clear }: { draft: Draft; working: boolean; clear: () => void }) {
  const client = useQueryClient();
  const needs = draft.add ? "administrator" : "operator";
  const lacks = useLacks(needs);
  const [before, setBefore] = useState(new Map<number, Before>());
  const [states, setStates] = useState<Done[]>([]);
  const { steps, left } = plan(draft, before);
  const mark = (i: number, state: Done) => setStates((s) => Object.assign([...s], { [i]: state }));
  const apply = useMutation({
    mutationFn: async () => {
      const was = new Map<number, Before>();
      for (const id of slicesOf(draft)) {
        const s = await answered(sdk.getSlice({ path: { id } }));
        was.set(id, { active: s.active_site, policy: s.policy });
      }
      setBefore(was);
      for (const [i, step] of steps.entries()) {
        mark(i, "running");
        try {
          await step.run(newKey());
        } catch (error) {
          mark(i, "failed");
          throw error;
        }
        mark(i, "done");
      }
    },
    onSettled: () => client.invalidateQueries(),
  });
  const undo = useMutation({
    mutationFn: async () => {
      for (let i = steps.length - 1; i >= 0; i--) {
        const back = steps[i]!.undo;
        if (states[i] !== "done" || !back) continue;
        await back.run(newKey());
        mark(i, "undone");
      }
    },
    onSettled: () => client.invalidateQueries(),
  });
  const why = lacks ?? (working ? "the prediction is being worked out" : steps.length === 0 ? "nothing in the draft can be applied" : undefined);
  const canUndo = states.some((s, i) => s === "done" && steps[i]?.undo) && !apply.isPending;
  return (
    <Card title="Apply">
      <div className="flex flex-col gap-3">
        {steps.length > 0 ? (
          <ol className="flex flex-col gap-1.5" aria-label="Steps">
            {steps.map((s, i) => (
              <li key={s.text} className="flex items-center gap-2.5">
                <Mark tone={states[i] === "done" ? "ok" : states[i] === "failed" ? "bad" : states[i] === "running" ? "warn" : "idle"} />
                {s.text}
                <span className="text-faint">{states[i] ?? "waiting"}</span>
              </li>
            ))}
          </ol>
        ) : null}
        {left.map((t) => (
          <p key={t} className="text-soft">
            {t}
          </p>
        ))}
        {apply.error ? <ChangeFailure error={apply.error} /> : undo.error ? <ChangeFailure error={undo.error} /> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Button kind="main" why={why} busy={apply.isPending} onClick={() => apply.mutate()}>
            {apply.isPending ? "Applying…" : "Apply the draft"}
          </Button>
          {canUndo ? (
            <Button busy={undo.isPending} onClick={() => undo.mutate()}>
              Undo
            </Button>
          ) : null}
          {apply.isSuccess ? (
            <>
              <Link to="/operations" className="btn">
                Watch
              </Link>
              <Button kind="quiet" onClick={clear}>
                Done
              </Button>
            </>
          ) : null}
          {why && steps.length > 0 ? <span className="text-faint">Not now: {why}.</span> : null}
        </div>
      </div>
    </Card>
  );
}
