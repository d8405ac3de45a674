import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answered, newKey } from "../api/call";
import * as sdk from "../api/generated";
import { useLacks } from "../api/session";
import { plural } from "../format";
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

/** What of the draft the API can do, and what it cannot, with the reason. */
function plan(d: Draft, homes: Map<number, string>): { steps: Step[]; left: string[] } {
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
  for (const m of d.move ?? []) {
    const was = homes.get(m.slice);
    steps.push({
      text: `Hand slice ${m.slice} over to ${m.site}`,
      run: () => handOver(m.slice, m.site),
      ...(was ? { undo: { text: `Hand slice ${m.slice} back to ${was}`, run: () => handOver(m.slice, was) } } : {}),
    });
  }
  if (d.level) left.push("The number of copies is part of a slice's policy, which this API does not set yet.");
  if (d.lose || d.loseNode) left.push("A loss is only rehearsed here. Nothing is switched off.");
  return { steps, left };
}

type Done = "waiting" | "running" | "done" | "failed" | "undone";

/** Applies the draft step by step, shows how far it is, and can put back what was done. */
export function ApplyDraft({ draft, working, clear }: { draft: Draft; working: boolean; clear: () => void }) {
  const client = useQueryClient();
  const needs = draft.add ? "administrator" : "operator";
  const lacks = useLacks(needs);
  const [homes, setHomes] = useState(new Map<number, string>());
  const [states, setStates] = useState<Done[]>([]);
  const { steps, left } = plan(draft, homes);
  const mark = (i: number, state: Done) => setStates((s) => Object.assign([...s], { [i]: state }));
  const apply = useMutation({
    mutationFn: async () => {
      const was = new Map<number, string>();
      for (const m of draft.move ?? []) was.set(m.slice, (await answered(sdk.getSlice({ path: { id: m.slice } }))).active_site);
      setHomes(was);
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
