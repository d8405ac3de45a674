import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { Activity as Record } from "../api/model";
import { activityPage, queries } from "../api/queries";
import { useLive } from "../live/provider";
import { Page } from "../shell/Page";
import { ActivityRow } from "../ui/ActivityRow";
import { DownloadAll } from "../ui/Csv";
import { Age, Button, Card } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import type { Column } from "../ui/Table";
import { type ActivityFilter, asQuery, goesOn, isNarrowed, ofField, ranges, rangeWords, toField } from "./range";

const columns: Column<Record>[] = [
  { id: "number", name: "number", value: (a) => a.number, cell: () => null },
  { id: "at", name: "at", value: (a) => a.recorded_at, cell: () => null },
  { id: "who", name: "who", value: (a) => a.who, cell: () => null },
  { id: "action", name: "action", value: (a) => a.action, cell: () => null },
  { id: "subject", name: "subject", value: (a) => a.subject, cell: () => null },
  { id: "detail", name: "detail", value: (a) => a.detail, cell: () => null },
];

const now = (f: ActivityFilter) => asQuery(f, Date.now());

/** The audit log, the newest first. */
export function Activity() {
  const filter = useSearch({ from: "/shell/activity" });
  const navigate = useNavigate({ from: "/activity" });
  const { state, toggle } = useLive();
  const { log, more } = useSearched(filter);
  const rows = log.data?.pages.flatMap((p) => p.items) ?? [];
  const searchedTo = log.data?.pages.at(-1)?.searched_to_at;
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title="Activity"
      purpose="Every change of the cluster: who made it, to what, when."
      actions={
        <>
          <Button onClick={toggle}>{state.kind === "paused" ? "Resume" : "Pause"}</Button>
          <DownloadAll name="activity" columns={columns} page={(cursor, signal) => activityPage(now(filter), cursor, 500, signal)} />
        </>
      }
    >
      <Filters filter={filter} set={(part) => void navigate({ search: (s) => ({ ...s, ...part }), replace: true })} clear={isNarrowed(filter) ? clear : undefined} />
      <Card flush className={log.isPlaceholderData ? "opacity-70 transition-opacity delay-150" : ""}>
        <Shown query={log} what="the audit log" rows={8}>
          {() => (
            <>
              <ul className="divide-y divide-line" aria-label="Changes">
                {rows.map((a) => (
                  <ActivityRow key={a.number} record={a} />
                ))}
              </ul>
              {log.hasNextPage ? (
                <div className="flex flex-wrap items-center justify-center gap-3 border-t border-line p-3">
                  <span role="status" className="text-faint">{isNarrowed(filter) ? <>{rows.length === 0 ? "Nothing yet. " : ""}Searched back to <Age at={searchedTo} /></> : null}</span>
                  <Button busy={log.isFetching} onClick={more}>
                    {log.isFetching ? "Searching…" : isNarrowed(filter) ? "Search further back" : "Older ones"}
                  </Button>
                </div>
              ) : rows.length > 0 ? null : isNarrowed(filter) ? (
                <Empty title="No change matches" action={<Button onClick={clear}>Clear the filters</Button>} />
              ) : (
                <Empty title="Nothing has been changed yet">Each change of sites, nodes, slices and people gets a record here.</Empty>
              )}
            </>
          )}
        </Shown>
      </Card>
    </Page>
  );
}

/** The log as far as it was searched. Pages with few matches are followed by others, up to a bound; more moves that on. */
function useSearched(filter: ActivityFilter) {
  const log = useInfiniteQuery(queries.activity(filter, now));
  const of = JSON.stringify(filter);
  const [asked, setAsked] = useState({ of, presses: 1 });
  const presses = asked.of === of ? asked.presses : 1;
  const pages = log.data?.pages ?? [];
  const found = pages.reduce((n, p) => n + p.items.length, 0);
  const { hasNextPage, isFetching, isPlaceholderData, isError, fetchNextPage } = log;
  const isShort = hasNextPage && !isFetching && !isPlaceholderData && !isError && goesOn(found, pages.length, presses);
  useEffect(() => {
    if (isShort) void fetchNextPage();
  }, [isShort, fetchNextPage]);
  const more = () => {
    setAsked({ of, presses: presses + 1 });
    if (isError) void fetchNextPage();
  };
  return { log, more };
}

function Filters({ filter, set, clear }: { filter: ActivityFilter; set: (part: ActivityFilter) => void; clear: (() => void) | undefined }) {
  const own = filter.range === "custom" || (filter.range === undefined && (filter.from !== undefined || filter.to !== undefined));
  return (
    <div className="flex flex-wrap items-center gap-2" role="search" aria-label="Filter the activity">
      <Words main label="Text" hint="Any text…" most={128} value={filter.q} set={(q) => set({ q })} />
      <Words label="Who" hint="Who, exactly…" most={128} value={filter.who} set={(who) => set({ who })} />
      <Words label="Action" hint="Action: site.add…" most={64} value={filter.action} set={(action) => set({ action })} />
      <Words label="Object" hint="Object: sites/oslo…" most={128} value={filter.subject} set={(subject) => set({ subject })} />
      <label className="flex items-center gap-1.5 text-soft">
        Time
        <select className="field" value={own ? "custom" : (filter.range ?? "")} onChange={(e) => set({ range: ranges.find((r) => r === e.target.value), ...(e.target.value === "custom" ? {} : { from: undefined, to: undefined }) })}>
          <option value="">all</option>
          {ranges.map((r) => (
            <option key={r} value={r}>{rangeWords[r]}</option>
          ))}
        </select>
      </label>
      {own ? (
        <>
          <Time label="From" value={filter.from} set={(from) => set({ range: "custom", from })} />
          <Time label="To" value={filter.to} set={(to) => set({ range: "custom", to })} />
        </>
      ) : null}
      {clear ? <Button kind="quiet" onClick={clear}>Clear</Button> : null}
    </div>
  );
}

/** A text field whose value counts once its writer pauses: each value searches the whole log. */
function Words({ label, hint, most, value = "", set, main }: { label: string; hint: string; most: number; value: string | undefined; set: (v: string | undefined) => void; main?: boolean }) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value; // it was changed elsewhere, such as by Clear
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      set(text || undefined);
    }, 300);
    return () => clearTimeout(timer);
  }, [text]);
  return <input {...(main ? { "data-filter": true } : {})} className="field" aria-label={label} placeholder={hint} maxLength={most} value={text} onChange={(e) => setText(e.target.value)} />;
}

/** A moment in the reader's own zone. */
function Time({ label, value, set }: { label: string; value: string | undefined; set: (v: string | undefined) => void }) {
  return (
    <label className="flex items-center gap-1.5 text-soft">
      {label}
      <input type="datetime-local" step={1} className="field" value={toField(value)} onChange={(e) => set(ofField(e.target.value))} />
    </label>
  );
}
