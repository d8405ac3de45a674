import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLacks } from "../api/session";
import { mounted, remove } from "../api/tree";
import { Dialog } from "../ui/Dialog";
import { Button, Code, Copy } from "../ui/kit";
import { Refusal } from "../ui/states";

/** Asks whether a file or folder is to be deleted, and deletes it. */
export function FilesDelete({ path, isFolder, done, close }: { path: string; isFolder: boolean; done: () => void; close: () => void }) {
  const lacks = useLacks("operator");
  const client = useQueryClient();
  const begin = useMutation({
    mutationFn: () => remove(path),
    onSuccess: done,
    onSettled: () => client.invalidateQueries({ queryKey: ["files"] }),
  });
  return (
    <Dialog title={isFolder ? "Delete this folder?" : "Delete this file?"} open setOpen={close}>
      <div className="flex flex-col gap-3">
        <p>
          <Code>{path}</Code> {isFolder ? "goes, if nothing is in it." : "goes, at all sites."}
        </p>
        {begin.error ? <Refusal error={begin.error} /> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Button kind="bad" why={lacks} busy={begin.isPending} onClick={() => begin.mutate()}>Delete</Button>
          <Button onClick={close}>Keep it</Button>
          <Copy label="Copy as command" text={`${isFolder ? "rmdir" : "rm"} ${mounted(path)}`} />
        </div>
      </div>
    </Dialog>
  );
}
