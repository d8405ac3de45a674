import { useEffect, useRef, useState } from "react";
import { asProblem } from "../api/problem";
import { plural } from "../format";
import { csv, csvFile, fileName, readAll } from "./csvFile";
import { Button, Copy } from "./kit";
import type { Column } from "./Table";

/** Has the browser store a file. */
function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser reads it after the click
}

/** A table's values as CSV: one button copies them, another stores them as a file. */
export function CsvButtons<T>({ name, columns, rows }: { name: string; columns: Column<T>[]; rows: T[] }) {
  return (
    <>
      <Copy label="Copy CSV" text={csv(columns, rows)} />
      <Button kind="quiet" onClick={() => save(csvFile(csv(columns, rows)), fileName(name, new Date()))}>
        Download CSV
      </Button>
    </>
  );
}

/** Rows as the API has them, as a file of JSON. */
export function JsonButton({ name, rows }: { name: string; rows: unknown[] }) {
  return (
    <Button kind="quiet" onClick={() => save(new Blob([JSON.stringify(rows, null, 2), "\n"], { type: "application/json" }), fileName(name, new Date(), "json"))}>
      Download JSON
    </Button>
  );
}

type Progress = { kind: "idle" } | { kind: "reading"; rows: number } | { kind: "said"; text: string };

/** Stores all rows of a list as a file, whose pages it reads by cursors. A second press stops it. */
export function DownloadAll<T>({ name, columns, page }: { name: string; columns: Column<T>[]; page: (cursor: string, signal: AbortSignal) => Promise<{ items: T[]; next?: string | undefined }> }) {
  const [state, setState] = useState<Progress>({ kind: "idle" });
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const press = async () => {
    if (state.kind === "reading") return running.current?.abort();
    const control = new AbortController();
    running.current = control;
    setState({ kind: "reading", rows: 0 });
    try {
      const { rows, isWhole } = await readAll(
        (cursor) => page(cursor, control.signal),
        (n) => setState({ kind: "reading", rows: n }),
      );
      save(csvFile(csv(columns, rows)), fileName(name, new Date()));
      setState(isWhole ? { kind: "said", text: plural(rows.length, "row") } : { kind: "said", text: `Only the first ${plural(rows.length, "row")}: there are more. Narrow the filters for the rest.` });
    } catch (error) {
      setState(control.signal.aborted ? { kind: "said", text: "Stopped" } : { kind: "said", text: `No file: ${asProblem(error).message}` });
    }
  };
  const text = state.kind === "reading" ? `Reading, ${plural(state.rows, "row")} so far` : state.kind === "said" ? state.text : "";
  return (
    <>
      <Button kind="quiet" onClick={() => void press()}>
        {state.kind === "reading" ? "Stop" : "Download CSV"}
      </Button>
      <span role="status" aria-label="Download" className="text-[0.9rem] text-faint empty:hidden">{text}</span>
    </>
  );
}
