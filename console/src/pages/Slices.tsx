import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import { answered } from "../api/call";
import { listSlices } from "../api/generated";
import type { Slice, SliceDetail as Detail } from "../api/model";
import { queries, type SliceFilter } from "../api/queries";
import { bytes, count, plural, shortId } from "../format";
import { Page } from "../shell/Page";
import { DownloadAll } from "../ui/Csv";
import { Age, Button, Card, Code, Command, Facts, Pill, Tile } from "../ui/kit";
import { memberWord, ReplicaStrip, sliceStates } from "../ui/Replicas";
import { Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { PolicyCard } from "./Policy";

const rowHeight = 44;

/** All slices; the list is drawn only where it is on the screen. */
export function Slices() {
  const filter = useSearch({ from: "/shell/slices" });
  const navigate = useNavigate({ from: "/slices" });
  const list = useInfiniteQuery(queries.slices(filter));
  const set = (part: SliceFilter) => void navigate({ search: (s) => clean({ ...s, ...part }), replace: true });
  const first = list.data?.pages[0];
  const narrowed = Object.keys(clean({ ...filter, sort: undefined, descending: undefined })).length > 0;
  return (
    <Page
      title="Slices"
      purpose="Parts of the tree, each with copies of its own, one of them active."
      actions={<DownloadAll name="slices" columns={fileColumns} page={(cursor, signal) => answered(listSlices({ signal, query: { ...filter, limit: 500, ...(cursor ? { cursor } : {}) } }))} />}
    >
      <Facets filter={filter} set={set} clear={narrowed ? () => void navigate({ search: {} }) : undefined} total={first?.total} />
      <Card flush className={list.isPlaceholderData ? "opacity-70 transition-opacity delay-150" : ""}>
        <Shown query={list} what="the slices" rows={10}>
          {(data) => {
            const rows = data.pages.flatMap((p) => p.items);
            if (rows.length > 0) return <Rows rows={rows} total={first?.total ?? rows.length} more={() => list.hasNextPage && !list.isFetchingNextPage && void list.fetchNextPage()} sort={filter} set={set} />;
            return narrowed ? (
              <Empty title="No slice matches these filters" action={<Button onClick={() => void navigate({ search: {} })}>Clear the filters</Button>} />
            ) : (
              <Empty title="No slice yet">A slice holds a part of the tree. The first one comes with the first directory.</Empty>
            );
          }}
        </Shown>
      </Card>
    </Page>
  );
}

function clean<T extends object>(o: T): T {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined && v !== "" && v !== false)) as T;
}

function Facets({ filter, set, clear, total }: { filter: SliceFilter; set: (part: SliceFilter) => void; clear: (() => void) | undefined; total: number | undefined }) {
  const sites = useQuery(queries.sites()).data?.items ?? [];
  const states = [undefined, "protected", "under_protected", "unavailable"] as const;
  return (
    <div className="flex flex-wrap items-center gap-2" role="search" aria-label="Filter slices">
      <input data-filter inputMode="numeric" aria-label="Slice number begins with" placeholder="Slice number…" className="field w-36" value={filter.q ?? ""} onChange={(e) => set({ q: e.target.value.replace(/\D/g, "").slice(0, 8) })} />
      <div role="group" aria-label="State" className="flex flex-wrap rounded-lg border border-line bg-surface p-0.5">
        {states.map((s) => (
          <button key={s ?? "all"} type="button" aria-pressed={filter.state === s} onClick={() => set({ state: s })} className={`min-h-7 rounded-md px-2.5 ${filter.state === s ? "bg-accent-wash font-medium text-accent" : "text-soft hover:text-ink"}`}>
            {s ? sliceStates[s].word : "All"}
          </button>
        ))}
      </div>
      <Choice label="Copy at" value={filter.site} options={sites.map((s) => s.name)} set={(site) => set({ site })} />
      <Choice label="Home" value={filter.home} options={sites.map((s) => s.name)} set={(home) => set({ home })} />
      {filter.node ? <Button kind="quiet" onClick={() => set({ node: undefined })}>Node {shortId(filter.node)} ✕</Button> : null}
      {clear ? <Button kind="quiet" onClick={clear}>Clear</Button> : null}
      <span className="ml-auto text-faint" role="status">{total === undefined ? "" : plural(total, "slice")}</span>
    </div>
  );
}

function Choice({ label, value, options, set }: { label: string; value: string | undefined; options: string[]; set: (v: string | undefined) => void }) {
  return (
    <label className="flex items-center gap-1.5 text-soft">
      {label}
      <select className="field" value={value ?? ""} onChange={(e) => set(e.target.value || undefined)}>
        <option value="">any</option>
        {options.map((o) => <option key={o}>{o}</option>)}
      </select>
    </label>
  );
}

const columns: { id: NonNullable<SliceFilter["sort"]> | "state" | "active" | "copies" | "home"; name: string; sorts: boolean; figure?: boolean }[] = [
  { id: "id", name: "Slice", sorts: true },
  { id: "state", name: "State", sorts: false },
  { id: "active", name: "Active", sorts: false },
  { id: "copies", name: "Copies", sorts: false },
  { id: "missing", name: "Missing", sorts: true, figure: true },
  { id: "home", name: "Home", sorts: false },
  { id: "epoch", name: "Epoch", sorts: true, figure: true },
];

/** What the list is as a file. */
const fileColumns: Column<Slice>[] = [
  { id: "id", name: "slice", value: (s) => s.id, cell: (s) => s.id },
  { id: "state", name: "state", value: (s) => s.state, cell: (s) => s.state },
  { id: "active", name: "active", value: (s) => s.active, cell: (s) => s.active },
  { id: "site", name: "active_site", value: (s) => s.active_site, cell: (s) => s.active_site },
  { id: "home", name: "home", value: (s) => s.policy.home, cell: (s) => s.policy.home },
  { id: "level", name: "level", value: (s) => s.policy.level, cell: (s) => s.policy.level },
  { id: "copies", name: "copies", value: (s) => s.copies, cell: (s) => s.copies },
  { id: "members", name: "members", value: (s) => s.members.map((m) => `${m.site}/${m.node} ${m.state}`).join(" "), cell: () => null },
  { id: "closed", name: "closed", value: (s) => String(s.closed), cell: () => null },
  { id: "epoch", name: "epoch", value: (s) => s.epoch, cell: (s) => s.epoch },
  { id: "revision", name: "revision", value: (s) => s.revision, cell: (s) => s.revision },
];

const grid = "grid grid-cols-[5.500rem_9rem_7rem_minmax(15rem,1fr)_6rem_7rem_5rem] items-center gap-x-3 px-4";

function Rows({ rows, total, more, sort, set }: { rows: Slice[]; total: number; more: () => void; sort: SliceFilter; set: (part: SliceFilter) => void }) {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => frame.current, estimateSize: () => rowHeight, overscan: 6 });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 120) more();
  });
  return (
    <div ref={frame} role="table" aria-label="Slices" aria-rowcount={total + 1} tabIndex={0} className="max-h-[calc(100dvh-15rem)] min-h-72 overflow-auto">
      <div role="rowgroup" className="sticky top-0 z-10 w-max min-w-full border-b border-line bg-surface">
        <div role="row" aria-rowindex={1} className={`${grid} min-h-10 text-[0.86rem] font-medium text-faint`}>
          {columns.map((c) => {
            const on = (sort.sort ?? "id") === c.id;
            return (
              <span key={c.id} role="columnheader" aria-sort={on ? (sort.descending ? "descending" : "ascending") : undefined} className={c.figure ? "text-right" : ""}>
                {c.sorts ? (
                  <button type="button" className="min-h-6 hover:text-ink" onClick={() => set({ sort: c.id as NonNullable<SliceFilter["sort"]>, descending: on ? !sort.descending : c.figure })}>
                    {c.name} <span aria-hidden="true">{on ? (sort.descending ? "↓" : "↑") : ""}</span>
                  </button>
                ) : c.name}
              </span>
            );
          })}
        </div>
      </div>
      <div role="rowgroup" className="relative w-max min-w-full" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => <Row key={item.key} slice={rows[item.index]!} index={item.index} top={item.start} />)}
      </div>
    </div>
  );
}

/** One row. It is drawn again only when its slice or its place changes, not while the list scrolls. */
const Row = memo(function Row({ slice: s, index, top }: { slice: Slice; index: number; top: number }) {
  const state = sliceStates[s.state];
  const missing = Math.max(0, s.policy.level - s.copies);
  return (
    <div role="row" aria-rowindex={index + 2} className={`${grid} absolute inset-x-0 border-b border-line hover:bg-sunk`} style={{ height: rowHeight, transform: `translateY(${top}px)` }}>
      <span role="rowheader"><Link data-row-link to="/slices/$id" params={{ id: String(s.id) }} className="link font-medium">{s.id}</Link></span>
      <span role="cell"><Pill tone={state.tone}>{state.word}</Pill></span>
      <span role="cell" className="truncate">{s.active_site}</span>
      <span role="cell" className="overflow-hidden"><ReplicaStrip members={s.members} /></span>
      <span role="cell" className="text-right">{missing === 0 ? <span className="text-faint">0</span> : missing}</span>
      <span role="cell" className={`truncate ${s.policy.home === s.active_site ? "text-faint" : ""}`} title={s.policy.home === s.active_site ? "The active is at home" : "The active is away from home"}>{s.policy.home}</span>
      <span role="cell" className="text-right">{s.epoch}</span>
    </div>
  );
});

/** One slice. */
export function SliceDetail() {
  const { id } = useParams({ from: "/shell/slices/$id" });
  const slice = useQuery(queries.slice(Number(id)));
  return (
    <Page
      title={`Slice ${id}`}
      trail={[{ name: "Slices", to: "/slices" }]}
      purpose={slice.data ? `${plural(slice.data.copies, "copy", "copies")} up to date of ${slice.data.policy.level} that its policy asks for.` : undefined}
      actions={slice.data ? <Link to="/what-if" search={{ slice: Number(id) }} className="btn btn-main">Try a change on paper</Link> : null}
    >
      <Shown query={slice} what="the slice">{(s) => <SliceBody slice={s} />}</Shown>
    </Page>
  );
}

function SliceBody({ slice: s }: { slice: Detail }) {
  const state = sliceStates[s.state];
  const columns: Column<Detail["members"][number]>[] = [
    { id: "site", name: "Site", value: (m) => m.site, cell: (m) => <Link to="/sites/$name" params={{ name: m.site }} className="link">{m.site}</Link> },
    { id: "node", name: "Node", value: (m) => m.node, cell: (m) => <Link to="/nodes/$id" params={{ id: m.node }} className="link" title={m.node}><Code>{shortId(m.node)}</Code></Link> },
    { id: "role", name: "Role", value: memberWord, cell: (m) => <Pill tone={m.state === "normal" ? "ok" : m.state === "failed" ? "bad" : "warn"}>{memberWord(m)}</Pill> },
    { id: "why", name: "Why here", cell: (m) => <span className="block min-w-64 text-soft">{s.why_here.find((w) => w.node === m.node)?.text ?? "not known"}</span> },
  ];
  return (
    <>
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Tile label="State" value={<Pill tone={state.tone}>{state.word}</Pill>} note={s.live ? (s.live.serving ? "its active serves" : (s.live.why ?? "its active does not serve")) : "its active has not said"} />
        <Tile label="Active" value={s.active_site} note={s.active_site === s.policy.home ? "at its home site" : `away from home, ${s.policy.home}`} tone={s.active_site === s.policy.home ? "ok" : "warn"} />
        <Tile label="Objects" value={count(s.live?.objects)} note={s.live ? <Age at={s.live.as_of_at} /> : undefined} />
        <Tile label="One copy stores" value={bytes(s.live?.stored_bytes)} note={s.live?.stored_bytes === undefined ? "not known" : undefined} />
      </div>
      <div className="grid grid-cols-1 items-start gap-5 xl:grid-cols-[minmax(0,1fr)_21rem]">
        <Card title="Placement" flush aside={<ReplicaStrip members={s.members} />}>
          <Table label="Copies" columns={columns} rows={s.members} rowKey={(m) => m.node} />
        </Card>
        <div className="flex flex-col gap-5">
          <PolicyCard key={s.id} slice={s} />
          <Card title="Lease">
            <Facts items={[["Holder", <Link key="l" to="/nodes/$id" params={{ id: s.active }} className="link"><Code>{shortId(s.active)}</Code></Link>], ["Epoch", s.epoch], ["Committed", s.live ? `serial ${count(s.live.commit)}` : "not known"], ["Row", `revision ${s.revision}`]]} />
          </Card>
          <Card title="From a shell">
            <div className="flex flex-col gap-2"><Command>{`cartwheel what-if --move ${s.id}=SITE`}</Command></div>
          </Card>
        </div>
      </div>
    </>
  );
}
