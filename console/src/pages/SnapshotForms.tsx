import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answered, asCurl, match } from "../api/call";
import * as sdk from "../api/generated";
import { useLacks } from "../api/session";
import { Dialog } from "../ui/Dialog";
import { Age, Button, Code, Copy } from "../ui/kit";
import { ChangeFailure } from "../ui/states";
import { createCommand, deleteCommand, keepProblem, nameProblem, parseAge, scheduleCommand, timesProblem } from "./past";

type Known = { snapshots: sdk.Snapshot[]; schedules: sdk.Schedule[] };

/** Says why a form cannot be sent. */
function NotNow({ why, shows }: { why: string | undefined; shows: boolean }) {
  return why && shows ? <span className="text-[0.9rem] text-faint">Not now: {why}.</span> : null;
}

/** Makes a snapshot. */
export function NewSnapshot({ snapshots, schedules }: Known) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [keep, setKeep] = useState("");
  const keepMs = parseAge(keep);
  const body = { name, ...(keepMs === undefined ? {} : { keep_ms: keepMs }) };
  const add = useMutation({
    mutationFn: () => answered(sdk.addSnapshot({ body })),
    onSuccess: () => {
      setName("");
      setKeep("");
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["snapshots"] }),
  });
  const why = lacks ?? nameProblem(name, snapshots, schedules) ?? keepProblem(keep);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (!why) add.mutate();
  };
  return (
    <form onSubmit={submit} aria-label="New snapshot" className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3">
      <input className="field min-w-48" aria-label="Name of the new snapshot" placeholder="New snapshot…" maxLength={128} value={name} onChange={(e) => setName(e.target.value.trim())} />
      <input className="field w-56" aria-label="For how long it is kept" placeholder="Keep for 30d, or no end" maxLength={12} value={keep} onChange={(e) => setKeep(e.target.value.trim())} />
      <Button type="submit" kind="main" why={why} busy={add.isPending} onClick={() => undefined}>Keep the tree as it is now</Button>
      {name ? <Copy text={createCommand(name, keep)} label="Copy as command" /> : null}
      {name ? <Copy text={asCurl("/snapshots", { method: "POST", body })} label="Copy as API call" /> : null}
      <NotNow why={why} shows={name !== "" || keep !== "" || lacks !== undefined} />
      {add.isSuccess && !name ? <span role="status" className="text-ok">{add.data.name} is kept, as of <Age at={add.data.taken_at} />.</span> : null}
      {add.error ? <ChangeFailure error={add.error} /> : null}
    </form>
  );
}

/** Makes a schedule. */
export function NewSchedule({ snapshots, schedules }: Known) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [every, setEvery] = useState("");
  const [keep, setKeep] = useState("");
  const body = { name, every_ms: parseAge(every) ?? 0, keep_ms: parseAge(keep) ?? 0 };
  const add = useMutation({
    mutationFn: () => answered(sdk.addSchedule({ body })),
    onSuccess: () => {
      setName("");
      setEvery("");
      setKeep("");
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["schedules"] }),
  });
  const why = lacks ?? nameProblem(name, snapshots, schedules) ?? (name.length > 100 ? "a schedule's name has 100 letters at most" : undefined) ?? timesProblem(every, keep, schedules);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (!why) add.mutate();
  };
  return (
    <form onSubmit={submit} aria-label="New schedule" className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3">
      <input className="field min-w-48" aria-label="Name of the new schedule" placeholder="New schedule…" maxLength={128} value={name} onChange={(e) => setName(e.target.value.trim())} />
      <label className="flex items-center gap-1.5 text-soft">every <input className="field w-20" placeholder="1h" maxLength={12} value={every} onChange={(e) => setEvery(e.target.value.trim())} /></label>
      <label className="flex items-center gap-1.5 text-soft">keep each for <input className="field w-20" placeholder="48h" maxLength={12} value={keep} onChange={(e) => setKeep(e.target.value.trim())} /></label>
      <Button type="submit" why={why} busy={add.isPending} onClick={() => undefined}>Add the schedule</Button>
      {why ? null : <Copy text={scheduleCommand(name, every, keep)} label="Copy as command" />}
      <NotNow why={why} shows={name !== "" || every !== "" || keep !== "" || lacks !== undefined} />
      {add.error ? <ChangeFailure error={add.error} /> : null}
    </form>
  );
}

/** Says what is lost with a snapshot, and deletes it once its name was written. */
export function DeleteSnapshot({ snapshot, close }: { snapshot: sdk.Snapshot; close: () => void }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const [typed, setTyped] = useState("");
  const remove = useMutation({
    mutationFn: () => answered(sdk.removeSnapshot({ path: { name: snapshot.name }, headers: { "If-Match": match(snapshot.revision) } })),
    onSuccess: close,
    onSettled: () => client.invalidateQueries({ queryKey: ["snapshots"] }),
  });
  const why = lacks ?? (typed === snapshot.name ? undefined : "write its name first");
  return (
    <Dialog title="Delete this snapshot?" open setOpen={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(e) => {
          e.preventDefault();
          if (!why) remove.mutate();
        }}
      >
        <p>
          <Code>{snapshot.name}</Code> has {snapshot.path ? <Code>{snapshot.path}</Code> : "the whole tree"} as it was <Age at={snapshot.taken_at} />. It can then no longer be read or restored from.
        </p>
        <p>What files had at that time and nothing else keeps is lost, at all sites. Nobody can bring it back. Current files stay as they are, and so do other snapshots.</p>
        <label className="flex flex-col gap-1">
          Its name, to be sure
          <input className="field" autoComplete="off" value={typed} onChange={(e) => setTyped(e.target.value.trim())} />
        </label>
        {remove.error ? <ChangeFailure error={remove.error} onReload={close} /> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Button type="submit" kind="bad" why={why} busy={remove.isPending} onClick={() => undefined}>Delete it</Button>
          <Button onClick={close}>Keep it</Button>
          <Copy label="Copy as command" text={deleteCommand(snapshot.name)} />
        </div>
      </form>
    </Dialog>
  );
}
