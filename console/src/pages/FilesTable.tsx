import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useLacks } from "../api/session";
import { type Entry, fileAddress, inside, windowsTrouble } from "../api/tree";
import { bytes } from "../format";
import { Age, Button, Command, Pill } from "../ui/kit";
import { Empty } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { FilesDelete } from "./FilesDelete";
import { FilesMove } from "./FilesMove";

/** What may be open beside the list, each the path of what it is about. */
export interface Panels {
  show?: string | undefined;
  preview?: string | undefined;
}

/** The name of an entry, which a folder's list ends with a slash. */
const nameOf = (e: Entry) => e.name.replace(/\/$/, "");

const facts: Column<Entry>[] = [
  { id: "kind", name: "Kind", spare: true, value: (e) => String(e.is_dir), cell: (e) => <span className="text-soft">{e.is_dir ? "folder" : e.is_symlink ? "link" : "file"}</span> },
  { id: "size", name: "Size", figure: true, spare: true, value: (e) => (e.is_dir ? undefined : e.size), cell: (e) => (e.is_dir ? "" : bytes(e.size)) },
  { id: "changed", name: "Changed", spare: true, value: (e) => e.mod_time, cell: (e) => <Age at={e.mod_time} /> },
];

function Name({ of: e, path }: { of: Entry; path: string }) {
  if (e.is_dir) return <Link to="/tree" search={{ path }} className="link font-medium">{nameOf(e)}/</Link>;
  return <a href={fileAddress(path)} download={e.name} className="link">{e.name}</a>;
}

/** The names of a folder, and what can be done with each. */
export function FilesTable({ path, entries, panels, open }: { path: string; entries: Entry[]; panels: Panels; open: (panels: Panels) => void }) {
  const lacks = useLacks("operator");
  const [asked, setAsked] = useState<{ what: "move" | "delete"; path: string; isFolder: boolean }>();
  const [done, setDone] = useState("");
  const columns: Column<Entry>[] = [
    { id: "name", name: "Name", value: (e) => `${e.is_dir ? 0 : 1}${e.name}`, cell: (e) => <Name of={e} path={inside(path, nameOf(e))} /> },
    ...facts,
    {
      id: "do",
      name: "",
      cell: (e) => {
        const own = inside(path, nameOf(e));
        const ask = (what: "move" | "delete") => setAsked({ what, path: own, isFolder: e.is_dir });
        const of = <span className="sr-only"> {nameOf(e)}</span>;
        return (
          <span className="flex flex-wrap items-center gap-1">
            {windowsTrouble(nameOf(e)) ? <Pill tone="warn">Mapped on Windows</Pill> : null}
            <Button kind="quiet" aria-label={`Properties of ${nameOf(e)}`} aria-expanded={panels.show === own} onClick={() => open({ ...panels, show: own })}>Properties</Button>
            {e.is_dir ? null : <Button kind="quiet" aria-expanded={panels.preview === own} onClick={() => open({ ...panels, preview: own })}>Preview{of}</Button>}
            <Button kind="quiet" why={lacks} onClick={() => ask("move")}>Rename…{of}</Button>
            <Button kind="quiet" why={lacks} onClick={() => ask("delete")}>Delete…{of}</Button>
          </span>
        );
      },
    },
  ];
  const close = () => setAsked(undefined);
  /** Says what became of a path, and closes what was open about it. */
  const gone = (from: string, words: string) => {
    const stays = (p: string | undefined) => (p === from || p?.startsWith(`${from}/`) ? undefined : p);
    close();
    setDone(words);
    open({ show: stays(panels.show), preview: stays(panels.preview) });
  };
  return (
    <>
      <p role="status" className={done ? "px-4 pt-3 text-ok wrap-anywhere" : ""}>{done}</p>
      {entries.length === 0 ? (
        <Empty title="This folder is empty" action={<Command>{`cp FILE ~/cartwheel${path}`}</Command>} />
      ) : (
        <Table label="Files" columns={columns} rows={entries} rowKey={(e) => e.name} />
      )}
      {asked?.what === "move" ? <FilesMove {...asked} close={close} done={(to) => gone(asked.path, `Moved ${asked.path} to ${to}.`)} /> : null}
      {asked?.what === "delete" ? <FilesDelete {...asked} close={close} done={() => gone(asked.path, `Deleted ${asked.path}.`)} /> : null}
    </>
  );
}
