import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Operation } from "../api/model";
import { queries } from "../api/queries";
import { bytes, count, shortId } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Card, Code, Pill } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";

const kinds: Record<Operation["kind"], string> = { copy: "Copy", catch_up: "Catch up" };

const columns: Column<Operation>[] = [
  { id: "kind", name: "Work", value: (o) => o.kind, cell: (o) => <Pill tone="idle">{kinds[o.kind]}</Pill> },
  { id: "text", name: "What", value: (o) => o.text, cell: (o) => o.text },
  { id: "slice", name: "Slice", figure: true, value: (o) => o.slice, cell: (o) => <Link to="/slices/$id" params={{ id: String(o.slice) }} className="link">{o.slice}</Link> },
  { id: "site", name: "To site", value: (o) => o.site, cell: (o) => <Link to="/sites/$name" params={{ name: o.site }} className="link">{o.site}</Link> },
  { id: "node", name: "To node", value: (o) => o.node, cell: (o) => <Link to="/nodes/$id" params={{ id: o.node }} className="link" title={o.node}><Code>{shortId(o.node)}</Code></Link> },
  { id: "behind", name: "Behind by", figure: true, value: (o) => o.behind, cell: (o) => (o.behind === undefined ? count(undefined) : `${count(o.behind)} operations`) },
  { id: "bytes", name: "Size", figure: true, value: (o) => o.total_bytes, cell: (o) => bytes(o.total_bytes) },
];

/** Work under way: copies, catching up, hand-overs. */
export function Operations() {
  const operations = useQuery({ ...queries.operations(), refetchInterval: (q) => ((q.state.data?.items.length ?? 0) > 0 ? 1000 : false) });
  return (
    <Page title="Operations" purpose="Work under way: copies being made, members catching up." actions={operations.data ? <CsvButtons name="operations" columns={columns} rows={operations.data.items} /> : null}>
      <Card flush>
        <Shown query={operations} what="the operations">
          {(list) =>
            list.items.length === 0 ? (
              <Empty title="All is at rest">Work appears here when a node fails or comes back, and when a policy or an active changes.</Empty>
            ) : (
              <Table label="Operations" header="text" columns={columns} rows={list.items} rowKey={(o) => `${o.kind} ${o.slice} ${o.node}`} />
            )
          }
        </Shown>
      </Card>
    </Page>
  );
}
