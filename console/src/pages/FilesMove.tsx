import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLacks } from "../api/session";
import { mounted, move, pathTrouble } from "../api/tree";
import { Button, Copy } from "../ui/kit";
import { Dialog } from "../ui/Dialog";
import { Refusal } from "../ui/states";

/** Asks for the new path of a file or folder, and moves it there. */
export function FilesMove({ path, isFolder, done, close }: { path: string; isFolder: boolean; done: (to: string) => void; close: () => void }) {
  const lacks = useLacks("operator");
  const client = useQueryClient();
  const [to, setTo] = useState(path);
  const [replace, setReplace] = useState(false);
  const begin = useMutation({
    mutationFn: () => move(path, to, replace),
    onSuccess: () => done(to),
    onSettled: () => client.invalidateQueries({ queryKey: ["files"] }),
  });
  const trouble = pathTrouble(to) ?? (to === path ? "it has this path already" : undefined);
  const why = lacks ?? trouble;
  return (
    <Dialog title={`Rename or move ${path}`} open setOpen={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(e) => {
          e.preventDefault();
          if (!why) begin.mutate();
        }}
      >
        <label className="flex flex-col gap-1">
          New path
          <input className="field w-full" value={to} onChange={(e) => setTo(e.target.value)} />
        </label>
        {isFolder ? null : (
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={replace} onChange={(e) => setReplace(e.target.checked)} /> Replace a file that has this path
          </label>
        )}
        {begin.error ? <Refusal error={begin.error} /> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Button type="submit" kind="main" why={why} busy={begin.isPending} onClick={() => undefined}>Move</Button>
          <Button onClick={close}>Cancel</Button>
          {trouble ? null : <Copy label="Copy as command" text={`mv ${replace ? "-f" : "-n"} ${mounted(path)} ${mounted(to)}`} />}
        </div>
        {trouble && to !== path ? <span className="text-[0.9rem] text-faint">Not now: {trouble}.</span> : null}
      </form>
    </Dialog>
  );
}
