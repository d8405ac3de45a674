import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answered } from "../api/call";
import * as sdk from "../api/generated";
import { queries } from "../api/queries";
import { useLacks } from "../api/session";
import { bytes, count, plural, shortId, span } from "../format";
import { Age, Button, Card, Code, Copy, Facts, Tile } from "../ui/kit";
import { ChangeFailure, sentence, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";

const columns: Column<sdk.NodeSpace>[] = [
  { id: "node", name: "Node", value: (n) => n.node, cell: (n) => <Link to="/nodes/$id" params={{ id: n.node }} className="link" title={n.node}><Code>{shortId(n.node)}</Code></Link> },
  { id: "site", name: "Site", value: (n) => n.site, cell: (n) => n.site },
  { id: "live", name: "Live, at most", figure: true, value: (n) => n.disk?.live_most_bytes, cell: (n) => bytes(n.disk?.live_most_bytes) },
  { id: "retained", name: "Past, at least", figure: true, value: (n) => n.disk?.retained_least_bytes, cell: (n) => bytes(n.disk?.retained_least_bytes) },
  { id: "waiting", name: "Waiting", figure: true, value: (n) => n.disk?.waiting_bytes, cell: (n) => bytes(n.disk?.waiting_bytes) },
  { id: "empty", name: "Empty in packs", figure: true, value: (n) => n.disk?.pack_empty_bytes, cell: (n) => bytes(n.disk?.pack_empty_bytes) },
  { id: "meta", name: "Metadata", figure: true, value: (n) => n.disk?.metadata_bytes, cell: (n) => bytes(n.disk?.metadata_bytes) },
  { id: "journal", name: "Journal", figure: true, value: (n) => n.disk?.journal_bytes, cell: (n) => bytes(n.disk?.journal_bytes) },
  { id: "seen", name: "Last word", value: (n) => n.as_of_at, cell: (n) => <Age at={n.as_of_at} /> },
];

/** What current files and the past hold, of the disks and of the slices. */
export function PastSpace() {
  const space = useQuery(queries.space());
  return (
    <>
      <Counted space={space.data} />
      <Card title="What holds the disks" flush>
        <Shown query={space} what="what holds the disks">
          {(s) => (
            <>
              <div className="grid grid-cols-2 gap-3 px-4 pb-4 lg:grid-cols-4">
                <Tile label="Current files" value={bytes(s.sum.live_most_bytes)} note="at most, at all nodes" />
                <Tile label="The past" value={bytes(s.sum.retained_least_bytes)} note="at least: older versions, deleted files, snapshots" />
                <Tile label="Waiting" value={bytes(s.sum.waiting_bytes)} note="nothing needs it; collection gives it back" />
                <Tile label="Empty in packs" value={bytes(s.sum.pack_empty_bytes)} note="room where no chunk lies" />
              </div>
              <Table label="Disks" header="node" columns={columns} rows={s.nodes} rowKey={(n) => n.node} />
            </>
          )}
        </Shown>
      </Card>
    </>
  );
}

/** What the newest count found in one copy of each slice, and the button that counts anew. */
export function Counted({ space }: { space: sdk.Space | undefined }) {
  const lacks = useLacks("operator");
  const client = useQueryClient();
  const begin = useMutation({ mutationFn: () => answered(sdk.countSpace()), onSuccess: (s) => client.setQueryData(queries.space().queryKey, s) });
  const running = space?.counting;
  const c = space?.count;
  return (
    <Card
      title="What the past holds"
      aside={
        <>
          <span role="status">{running ? `Counting: ${count(running.done)} of ${plural(running.slices, "slice")}` : c ? <>counted <Age at={c.ended_at} />, in {span(Date.parse(c.ended_at) - Date.parse(c.began_at))}</> : null}</span>
          <Button why={lacks} busy={begin.isPending || running !== undefined} onClick={() => begin.mutate()}>Count now</Button>
        </>
      }
    >
      {begin.error ? <ChangeFailure error={begin.error} /> : null}
      {c ? (
        <Figures of={c} />
      ) : (
        <p className="max-w-prose text-soft">
          {running ? "The figures come when all slices were counted." : "Not counted yet by the node that answers. A count reads every slice's records at one of its nodes, a page at a time; reads and writes go on."}
        </p>
      )}
    </Card>
  );
}

function Figures({ of: c }: { of: sdk.SpaceCount }) {
  return (
    <div className="flex flex-col gap-3">
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Tile label="Snapshots" value={bytes(c.snapshot_bytes)} note="needed by snapshots alone" />
        <Tile label="Retention" value={bytes(c.older_bytes - c.snapshot_bytes)} note="needed by recent versions and deleted files alone" />
        <Tile label="Current files" value={bytes(c.chunk_bytes)} note={`sharing saves ${bytes(c.shared_bytes)} more`} />
        <Tile label="Waiting" value={bytes(c.waiting_bytes)} note="nothing needs it; collection gives it back" />
      </div>
      <Facts
        items={[
          ["Of", `one copy of each of ${plural(c.slices - c.failed_total, "slice")}; a chunk counts once in each slice that has it`],
          ["Files now", `${plural(c.objects, "object")}, ${bytes(c.live_bytes)} before deduplication`],
          ["Deleted files", `${count(c.deleted_files.count)}, ${bytes(c.deleted_files.bytes)} before deduplication`],
          ["Older versions", `${count(c.older_versions.count)}, ${bytes(c.older_versions.bytes)} before deduplication`],
          ...(c.missing_chunks > 0 ? [["Missing", `${plural(c.missing_chunks, "chunk")} that follow or are sought`] as [string, string]] : []),
        ]}
      />
      {c.failed_total > 0 ? (
        <div className="rounded-lg bg-warn-wash px-3 py-2 text-warn">
          <p className="font-medium">{plural(c.failed_total, "slice")} could not be counted, and {c.failed_total === 1 ? "is" : "are"} in no figure.</p>
          <ul aria-label="Not counted">
            {c.failed.slice(0, 5).map((f) => <li key={f.slice}>Slice {f.slice}: {sentence(f.text)}</li>)}
          </ul>
        </div>
      ) : null}
      <p><Copy text="cartwheel space PATH" label="Copy the command for one tree" /></p>
    </div>
  );
}
