import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLacks } from "../api/session";
import { changeMode, modeTrouble, mounted, type Properties, turned } from "../api/tree";
import { Button, Copy } from "../ui/kit";
import { Refusal, sentence } from "../ui/states";

const classes = [["Owner", 6], ["Group", 3], ["Others", 0]] as const;
const rights = [["read", 4], ["write", 2], ["run", 1]] as const;

/** Changes the mode of a file or folder: a grid of boxes and the octal number, which say the same. */
export function FilesMode({ of: p }: { of: Properties }) {
  const lacks = useLacks("operator");
  const client = useQueryClient();
  const [mode, setMode] = useState(p.mode);
  const stranger = p.as.uid !== 0 && p.as.uid !== p.uid ? `Only the owner, uid ${p.uid}, may change the mode; the gateway acts as uid ${p.as.uid}.` : undefined;
  const why = lacks ?? stranger;
  const trouble = modeTrouble(mode, p.mode);
  const change = useMutation({
    mutationFn: () => changeMode(p.path, mode),
    onSuccess: () => client.invalidateQueries({ queryKey: ["properties", p.path] }),
  });
  return (
    <fieldset className="mt-3 flex flex-col gap-2" aria-label="Permissions">
      {classes.map(([who, at]) => (
        <div key={who} className="flex flex-wrap gap-3">
          <span className="w-16">{who}</span>
          {rights.map(([right, bit]) => {
            const word = p.is_folder && right === "run" ? "go through" : right;
            return (
              <label key={right} className="flex items-center gap-1">
                <input type="checkbox" aria-label={`${who}: ${word}`} disabled={why !== undefined || !/^[0-7]{3,4}$/.test(mode)} checked={((Number.parseInt(mode, 8) >> at) & bit) !== 0} onChange={() => setMode(turned(mode, bit << at))} />
                {word}
              </label>
            );
          })}
        </div>
      ))}
      <div className="flex flex-wrap items-center gap-3">
        <label className="flex items-center gap-2">
          Octal
          <input className="w-20 rounded border border-line bg-transparent px-2 py-1" value={mode} maxLength={4} disabled={why !== undefined} onChange={(e) => setMode(e.target.value)} />
        </label>
        <Button why={why ?? (trouble ? sentence(trouble) : mode === p.mode ? "The mode is this one already." : undefined)} busy={change.isPending} onClick={() => change.mutate()}>Change mode</Button>
        {trouble ? null : <Copy label="Copy as command" text={`chmod ${mode} ${mounted(p.path)}`} />}
      </div>
      {stranger ? <span className="text-faint">{stranger}</span> : null}
      {change.error ? <Refusal error={change.error} /> : null}
    </fieldset>
  );
}
