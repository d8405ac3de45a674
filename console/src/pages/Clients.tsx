import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Client } from "../api/model";
import { queries } from "../api/queries";
import { shortId } from "../format";
import { Page } from "../shell/Page";
import { CsvButtons } from "../ui/Csv";
import { Card, Code, Command } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";

const columns: Column<Client>[] = [
  { id: "name", name: "Client", value: (c) => c.name, cell: (c) => c.name || <span className="text-faint">without a name</span> },
  { id: "user", name: "User", value: (c) => c.user, cell: (c) => c.user },
  { id: "from", name: "Stands at", value: (c) => c.from_site, cell: (c) => c.from_site || <span className="text-faint">not said</span> },
  { id: "site", name: "Connected to", value: (c) => c.site, cell: (c) => <Link to="/nodes/$id" params={{ id: c.node }} className="link" title={c.node}>{c.site} <Code>{shortId(c.node)}</Code></Link> },
];

/** The clients that are connected. */
export function Clients() {
  const clients = useQuery({ ...queries.clients(), refetchInterval: 10_000 });
  return (
    <Page title="Clients" purpose="Mounts and programs that are connected to the node that answers this page." actions={clients.data ? <CsvButtons name="clients" columns={columns} rows={clients.data.items} /> : null}>
      <Card flush>
        <Shown query={clients} what="the clients">
          {(list) =>
            list.items.length === 0 ? (
              <Empty title="No client is connected here" action={<Command>cartwheel mount ~/cartwheel</Command>}>
                A mount shows the tree as a folder of a machine. Clients of other nodes are not listed on this page.
              </Empty>
            ) : (
              <Table label="Clients" columns={columns} rows={list.items} rowKey={(c) => `${c.node} ${c.user} ${c.name} ${list.items.indexOf(c)}`} />
            )
          }
        </Shown>
      </Card>
    </Page>
  );
}
