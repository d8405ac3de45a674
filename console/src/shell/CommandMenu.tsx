import { Dialog } from "@base-ui/react/dialog";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { queries } from "../api/queries";
import { shortId } from "../format";
import { allPlaces } from "./nav";
import { setTheme } from "./theme";

interface Entry {
  id: string;
  group: string;
  name: string;
  note?: string;
  run: () => void;
}

/** The most entries that are shown at once. */
const most = 12;

/** Search over pages, sites, nodes and slices. */
export function CommandMenu({ open, setOpen }: { open: boolean; setOpen: (open: boolean) => void }) {
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-50 bg-black/40" />
        <Dialog.Popup className="fixed top-[10vh] left-1/2 z-50 w-[min(38rem,calc(100vw-2rem))] -translate-x-1/2 overflow-hidden rounded-xl border border-line bg-raised shadow-[var(--float)]">
          <Dialog.Title className="sr-only">Search and commands</Dialog.Title>
          <Finder close={() => setOpen(false)} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Finder({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(text);
  const chosen = Math.min(at, entries.length - 1);
  const run = (e: Entry | undefined) => {
    if (!e) return;
    close();
    e.run();
  };
  const press = (e: React.KeyboardEvent) => {
    if (e.key === "ArrowDown") setAt(Math.min(entries.length - 1, chosen + 1));
    else if (e.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
    else if (e.key === "Enter") run(entries[chosen]);
    else return;
    e.preventDefault();
  };
  return (
    <>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={entries[chosen] ? `found-${entries[chosen].id}` : undefined}
        aria-label="Search pages, sites, nodes and slices"
        autoFocus
        placeholder="Page, site, node, slice number…"
        className="w-full bg-transparent px-4 py-3.5 text-[1.1rem] outline-none placeholder:text-faint"
        value={text}
        onChange={(e) => {
          setText(e.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <ul id="found" role="listbox" aria-label="Results" className="max-h-[50vh] overflow-y-auto border-t border-line p-1.5">
        {entries.map((e, i) => (
          <li
            key={e.id}
            id={`found-${e.id}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => run(e)}
            onPointerMove={() => setAt(i)}
            className={`flex min-h-9 cursor-pointer items-center justify-between gap-3 rounded-lg px-3 ${i === chosen ? "bg-accent-wash" : ""}`}
          >
            <span className="truncate">
              {e.name} {e.note ? <span className="text-faint">{e.note}</span> : null}
            </span>
            <span className="text-[0.86rem] text-faint">{e.group}</span>
          </li>
        ))}
        {entries.length === 0 ? <li className="px-3 py-4 text-soft">Nothing has this name.</li> : null}
      </ul>
    </>
  );
}

function useEntries(text: string): Entry[] {
  const navigate = useNavigate();
  const sites = useQuery(queries.sites()).data?.items;
  const nodes = useQuery(queries.nodes()).data?.items;
  return useMemo(() => {
    const want = text.trim().toLowerCase();
    const has = (...words: (string | undefined)[]) => words.some((w) => w?.toLowerCase().includes(want));
    const out: Entry[] = allPlaces.filter((p) => has(p.name)).map((p) => ({ id: `page-${p.key}`, group: "Page", name: p.name, run: () => void navigate({ to: p.path }) }));
    for (const s of sites ?? []) {
      if (!has(s.name, s.location)) continue;
      out.push({ id: `site-${s.name}`, group: "Site", name: s.name, note: s.location ?? "", run: () => void navigate({ to: "/sites/$name", params: { name: s.name } }) });
      out.push({ id: `lose-${s.name}`, group: "What-if", name: `Rehearse the loss of ${s.name}`, run: () => void navigate({ to: "/what-if", search: { lose: [s.name] } }) });
    }
    for (const n of nodes ?? []) {
      if (want && has(n.id, n.site)) out.push({ id: `node-${n.id}`, group: "Node", name: shortId(n.id), note: n.site, run: () => void navigate({ to: "/nodes/$id", params: { id: n.id } }) });
    }
    if (/^\d+$/.test(want)) out.unshift({ id: "slice", group: "Slice", name: `Slice ${want}`, run: () => void navigate({ to: "/slices/$id", params: { id: want } }) });
    for (const theme of ["light", "dark"] as const) {
      if (want && has(`${theme} theme`)) out.push({ id: theme, group: "Command", name: `Use the ${theme} theme`, run: () => setTheme(theme) });
    }
    return out.slice(0, most);
  }, [text, sites, nodes, navigate]);
}
