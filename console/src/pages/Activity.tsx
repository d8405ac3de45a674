import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Activity as Record } from "../api/model";
import { queries } from "../api/queries";
import { useLive } from "../live/provider";
import { Page } from "../shell/Page";
import { ActivityRow } from "../ui/ActivityRow";
import { Button, Card, Copy } from "../ui/kit";
import { csv } from "../ui/csvFile";
import { Empty, Shown } from "../ui/states";
import type { Column } from "../ui/Table";

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
