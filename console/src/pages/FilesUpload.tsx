import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { asProblem, type Problem } from "../api/problem";
import { useLacks } from "../api/session";
import { upload } from "../api/tree";
import { Button, Meter } from "../ui/kit";
import { Refusal } from "../ui/states";

interface Task {
  name: string;
  share: number;
  state: "runs" | "stored" | Problem;
  cancel: () => void;
}

/** Takes files by a button or by drag and drop, one after the other, and says how each fares. */
export function FilesUpload({ path }: { path: string }) {
  const lacks = useLacks("operator");
  const input = useRef<HTMLInputElement>(null);
  const client = useQueryClient();
  const [tasks, setTasks] = useState<Task[]>([]);
  const take = async (files: File[]) => {
    const own: Task[] = [];
    const controls = files.map(() => new AbortController());
    files.forEach((f, i) => own.push({ name: f.name, share: 0, state: "runs", cancel: () => controls[i]?.abort() }));
    setTasks(own);
    const change = (i: number, part: Partial<Task>) => setTasks((now) => now.map((t, at) => (at === i ? { ...t, ...part } : t)));
    for (const [i, file] of files.entries()) {
      try {
        await upload(path, file, (share) => change(i, { share }), controls[i]!.signal); // one for each file
        change(i, { share: 1, state: "stored" });
      } catch (error) {
        change(i, { state: asProblem(error) });
      }
    }
    await client.invalidateQueries({ queryKey: ["files", path] });
  };
  const busy = tasks.some((t) => t.state === "runs");
  return (
    <div
      className="flex flex-col gap-2 rounded-lg border border-dashed border-line p-3"
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        if (lacks === undefined && !busy) void take([...e.dataTransfer.files]);
      }}
    >
      <div className="flex flex-wrap items-center gap-3">
        <Button why={lacks} busy={busy} onClick={() => input.current?.click()}>Upload…</Button>
        <span className="text-faint">or drop files here. They get the rights of the gateway's user.</span>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(e) => {
            void take([...(e.target.files ?? [])]);
            e.target.value = "";
          }}
        />
      </div>
      {tasks.length > 0 ? (
        <ul aria-label="Uploads" className="flex flex-col gap-1">
          {tasks.map((t, i) => (
            <li key={i} className="flex flex-col gap-1">
              <span className="flex flex-wrap items-center gap-2">
                {t.name}
                {t.state === "runs" ? <Button kind="quiet" onClick={t.cancel}>Cancel</Button> : t.state === "stored" ? <span className="text-ok">stored</span> : null}
              </span>
              {t.state === "runs" ? <Meter value={t.share} max={1} label={`${t.name}: ${Math.floor(t.share * 100)} % sent`} /> : null}
              {typeof t.state === "object" ? <Refusal error={t.state} /> : null}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
