import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answered, match } from "../api/call";
import * as sdk from "../api/generated";
import { queries } from "../api/queries";
import { useLacks } from "../api/session";
import { count, span } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Age, Button, Card, Code, Command, Copy } from "../ui/kit";
import { ChangeFailure, Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { deleteCommand, pathOf } from "./past";
import { PastSpace } from "./PastSpace";
import { Confirmed } from "./People";
import { DeleteSnapshot, NewSchedule, NewSnapshot } from "./SnapshotForms";

const zoned: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "medium" };

const columns: Column<sdk.Snapshot>[] = [
  { id: "name", name: "Snapshot", value: (s) => s.name, cell: (s) => <Code>{s.name}</Code> },
  { id: "taken", name: "As of", value: (s) => s.taken_at, cell: (s) => <span className="whitespace-nowrap">{new Date(s.taken_at).toLocaleString(undefined, zoned)}</span> },
  { id: "age", name: "Age", cell: (s) => <Age at={s.taken_at} /> },
  { id: "of", name: "Of", value: (s) => s.path ?? "", cell: (s) => (s.path ? <Code>{s.path}</Code> : <span className="text-faint">the whole tree</span>) },
  { id: "by", name: "Made by", value: (s) => s.made_by, cell: (s) => s.made_by },
  { id: "ends", name: "Is deleted", value: (s) => s.expires_at, cell: (s) => (s.expires_at ? <Age at={s.expires_at} /> : <span className="text-faint">only by order</span>) },
];

/** The named snapshots, their schedules, and what the past holds. */
export function Snapshots() {
  const snapshots = useQuery(queries.snapshots());
  const schedules = useQuery(queries.schedules());
  return (
    <Page title="Snapshots" purpose="The tree, or a directory of it, as it was at a time, kept under a name. Any directory of it shows that below .Snapshot=NAME." actions={snapshots.data ? <CsvButtons name="snapshots" columns={columns} rows={snapshots.data.items} /> : null}>
      <Card title="All snapshots" flush>
        <Shown query={snapshots} what="the snapshots">{(list) => <SnapshotTable list={list.items} />}</Shown>
        <NewSnapshot snapshots={snapshots.data?.items ?? []} schedules={schedules.data?.items ?? []} />
      </Card>
      <Card title="Schedules" flush>
        <Shown query={schedules} what="the schedules">{(list) => <ScheduleTable list={list.items} />}</Shown>
        <NewSchedule snapshots={snapshots.data?.items ?? []} schedules={schedules.data?.items ?? []} />
      </Card>
      <PastSpace />
    </Page>
  );
}

/** All snapshots, each with a way to delete it. */
function SnapshotTable({ list }: { list: sdk.Snapshot[] }) {
  const lacks = useLacks("administrator");
  const [going, setGoing] = useState<sdk.Snapshot>();
  if (list.length === 0) {
    return (
      <Empty title="No snapshot yet" action={<Command>cartwheel snapshot create before-upgrade --keep 30d</Command>}>
        Earlier times can be read for as long as the nodes retain them. A snapshot keeps one for longer.
      </Empty>
    );
  }
  const actions: Column<sdk.Snapshot> = {
    id: "do",
    name: "",
    cell: (s) => (
      <span className="flex justify-end gap-1">
        <Copy text={pathOf(s.name)} label="Copy path" />
        <Button kind="quiet" className="btn-bad" why={lacks} aria-label={`Delete ${s.name}…`} onClick={() => setGoing(s)}>Delete…</Button>
      </span>
    ),
  };
  return (
    <>
      <Table label="Snapshots" columns={[...columns, actions]} rows={list} rowKey={(s) => s.name} />
      {going ? <DeleteSnapshot snapshot={going} close={() => setGoing(undefined)} /> : null}
    </>
  );
}

/** All schedules, each with a way to end it. */
function ScheduleTable({ list }: { list: sdk.Schedule[] }) {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: (s: sdk.Schedule) => answered(sdk.removeSchedule({ path: { name: s.name }, headers: { "If-Match": match(s.revision) } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["schedules"] }),
  });
  const named: Column<sdk.Schedule>[] = [
    { id: "name", name: "Schedule", value: (s) => s.name, cell: (s) => <Code>{s.name}</Code> },
    { id: "every", name: "Makes one every", figure: true, value: (s) => s.every_ms, cell: (s) => span(s.every_ms) },
    { id: "keep", name: "Keeps each for", figure: true, value: (s) => s.keep_ms, cell: (s) => span(s.keep_ms) },
    { id: "most", name: "At once, at most", figure: true, value: (s) => s.most_snapshots, cell: (s) => count(s.most_snapshots) },
    { id: "next", name: "Next", value: (s) => s.next_at, cell: (s) => <Age at={s.next_at} /> },
    { id: "by", name: "Made by", value: (s) => s.made_by, cell: (s) => s.made_by },
    {
      id: "do",
      name: "",
      cell: (s) => (
        <span className="flex justify-end gap-1">
          <Copy text={deleteCommand(s.name)} label="Copy as command" />
          <Confirmed kind="End" name={s.name} why={lacks} run={() => end.mutate(s)} />
        </span>
      ),
    },
  ];
  return (
    <>
      {end.error ? <ChangeFailure error={end.error} /> : null}
      {list.length === 0 ? (
        <Empty title="No schedule yet">
          A schedule has the nodes make snapshots again and again, and delete each after its time. Several keep the past the thinner the older it is: one of 1h for 48h, one of 1d for 30d.
        </Empty>
      ) : (
        <Table label="Schedules" columns={named} rows={list} rowKey={(s) => s.name} />
      )}
    </>
  );
}
