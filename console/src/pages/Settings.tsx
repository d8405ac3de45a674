import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Setting } from "../api/model";
import { queries } from "../api/queries";
import { Page } from "../shell/Page";
import { Card, Code } from "../ui/kit";
import { Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { Switch } from "./Network";
import { People } from "./People";
import { Tokens, Users } from "./Users";

const tabs = [
  ["people", "People", "Accounts of this console, their roles, and who is signed in."],
  ["users", "Users", "Keys that mount the tree and sign commands."],
  ["tokens", "Tokens", "A token lets one machine join the cluster as a node, once."],
  ["node", "Node", "The configuration of the node that answers this page."],
] as const;

/** People, keys, tokens and the node's settings. */
export function Settings() {
  const { tab } = useSearch({ from: "/shell/settings" });
  const navigate = useNavigate({ from: "/settings" });
  return (
    <Page title="Settings" purpose={tabs.find(([t]) => t === tab)?.[2]}>
      <div className="flex">
        <Switch label="Section" value={tab} options={tabs.map(([t, name]) => [t, name])} set={(t) => void navigate({ search: { tab: t } })} />
      </div>
      {tab === "people" ? <People /> : tab === "users" ? <Users /> : tab === "tokens" ? <Tokens /> : <NodeSettings />}
    </Page>
  );
}

const columns: Column<Setting>[] = [
  { id: "key", name: "Key", value: (s) => s.key, cell: (s) => <Code>{s.key}</Code> },
  { id: "value", name: "Value", value: (s) => s.value, cell: (s) => <span className={s.is_default ? "text-faint" : "font-medium"}>{s.value || "not set"}</span> },
  { id: "default", name: "From", value: (s) => (s.is_default ? "default" : "node.yaml"), cell: (s) => (s.is_default ? <span className="text-faint">default</span> : "set") },
];

function NodeSettings() {
  const settings = useQuery(queries.settings());
  return (
    <Card flush>
      <Shown query={settings} what="the settings">{(list) => <Table label="Settings" columns={columns} rows={list.items} rowKey={(s) => s.key} />}</Shown>
    </Card>
  );
}
