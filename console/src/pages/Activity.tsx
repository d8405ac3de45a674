import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { Activity as Record } from "../api/model";
import { queries } from "../api/queries";
import { shortId } from "../format";
import { useLive } from "../live/provider";
import { Page } from "../shell/Page";
import { Age, Button, Card, Code, Copy } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import { type Column, csv } from "../ui/Table";

/** Where an audit record's subject can be seen. */
function Subject({ subject }: { subject: string }) {
  const [table, ...rest] = subject.split("/");
  const name = decodeURIComponentSafe(rest.join("/"));
  if (table === "sites" && name) return <Link to="/sites/$name" params={{ name }} className="link">{name}</Link>;
  if (table === "nodes" && name) return <Link to="/nodes/$id" params={{ id: name }} className="link"><Code>{shortId(name)}</Code></Link>;
  if (table === "slices" && name) return <Link to="/slices/$id" params={{ id: name }} className="link">slice {name}</Link>;
  if (table === "records" && name) return <span className="break-all">{name.replace("/", " ")}</span>;
  return <span className="break-all">{subject.length > 40 ? shortId(subject) : subject}</span>;
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not encoded: as it is
  }
}

/** One record: who did what to what, and when. */
export function ActivityRow({ record: a }: { record: Record }) {
  return (
    <li className="flex items-baseline justify-between gap-3 px-4 py-2.5">
      <span className="min-w-0">
        <span className="font-medium">{a.action}</span> <Subject subject={a.subject} />
        <span className="block truncate text-[0.9rem] text-faint" title={a.who}>
          by {a.who.length > 24 ? shortId(a.who) : a.who || "the cluster"}
        </span>
        {a.detail ? <span className="block text-[0.9rem] break-words text-soft">{a.detail}</span> : null}
      </span>
      <span className="text-[0.9rem] text-faint">
        <Age at={a.recorded_at} />
      </span>
    </li>
  );
}

const columns: Column<Record>[] = [
  { id: "at", name: "at", value: (a) => a.recorded_at, cell: () => null },
  { id: "who", name: "who", value: (a) => a.who, cell: () => null },
  { id: "action", name: "action", value: (a) => a.action, cell: () => null },
  { id: "subject", name: "subject", value: (a) => a.subject, cell: () => null },
  { id: "detail", name: "detail", value: (a) => a.detail, cell: () => null },
];

/** The audit log, the newest first. */
export function Activity() {
  const filter = useSearch({ from: "/shell/activity" });
  const navigate = useNavigate({ from: "/activity" });
  const { state, toggle } = useLive();
  const log = useInfiniteQuery(queries.activity(filter));
  const rows = log.data?.pages.flatMap((p) => p.items);
  const set = (part: typeof filter) => void navigate({ search: (s) => ({ ...s, ...part }), replace: true });
  return (
    <Page
      title="Activity"
      purpose="Every change of the cluster: who made it, to what, when."
      actions={
        <>
          <Button onClick={toggle}>{state.kind === "paused" ? "Resume" : "Pause"}</Button>
          {rows ? <Copy label="Copy CSV" text={csv(columns, rows)} /> : null}
        </>
      }
    >
      <div className="flex flex-wrap gap-2" role="search" aria-label="Filter the activity">
        <input data-filter className="field" aria-label="Who" placeholder="Who, exactly…" defaultValue={filter.who ?? ""} onChange={(e) => set({ who: e.target.value || undefined })} />
        <input className="field" aria-label="Action" placeholder="Action, such as site.add…" defaultValue={filter.action ?? ""} onChange={(e) => set({ action: e.target.value || undefined })} />
      </div>
      <Card flush>
        <Shown query={log} what="the audit log" rows={8}>
          {() =>
            rows && rows.length > 0 ? (
              <>
                <ul className="divide-y divide-line">
                  {rows.map((a) => (
                    <ActivityRow key={a.number} record={a} />
                  ))}
                </ul>
                {log.hasNextPage ? (
                  <div className="border-t border-line p-3 text-center">
                    <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
                      {log.isFetchingNextPage ? "Loading…" : "Older ones"}
                    </Button>
                  </div>
                ) : null}
              </>
            ) : filter.who || filter.action ? (
              <Empty title="No change matches" action={<Button onClick={() => void navigate({ search: {} })}>Clear the filters</Button>} />
            ) : (
              <Empty title="Nothing has been changed yet">Each change of sites, nodes, slices and people gets a record here.</Empty>
            )
          }
        </Shown>
      </Card>
    </Page>
  );
}
