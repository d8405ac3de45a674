import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLacks } from "../api/session";
import { inside, makeFolder, mounted, nameTrouble } from "../api/tree";
import { Button, Copy } from "../ui/kit";
import { Refusal } from "../ui/states";

/** Makes a folder in a folder. */
export function FilesFolder({ path }: { path: string }) {
  const lacks = useLacks("operator");
  const client = useQueryClient();
  const [name, setName] = useState("");
  const make = useMutation({
    mutationFn: () => makeFolder(inside(path, name)),
    onSuccess: () => setName(""),
    onSettled: () => client.invalidateQueries({ queryKey: ["files", path] }),
  });
  const trouble = nameTrouble(name);
  const why = lacks ?? trouble;
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={(e) => {
        e.preventDefault();
        if (!why) make.mutate();
      }}
    >
      <input className="field w-72 max-w-full" aria-label="Name of the new folder" placeholder="New folder…" readOnly={lacks !== undefined} value={name} onChange={(e) => setName(e.target.value)} />
      <Button type="submit" why={why} busy={make.isPending} onClick={() => undefined}>Make folder</Button>
      {trouble ? null : <Copy label="Copy as command" text={`mkdir ${mounted(inside(path, name))}`} />}
      {why && (name || lacks) ? <span className="text-[0.9rem] text-faint">Not now: {why}.</span> : null}
      {make.error ? <Refusal error={make.error} /> : null}
    </form>
  );
}
