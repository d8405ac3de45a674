import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { modeWords, mounted, type Properties, propertiesQuery, windowsTrouble } from "../api/tree";
import { bytes, shortId } from "../format";
import { Age, Button, Card, Code, Copy, Facts, Pill } from "../ui/kit";
import { sentence, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { FilesMode } from "./FilesMode";

interface Holder {
  node: string;
  site: string;
  part: string;
  why: string;
}

const parts: Record<string, string> = { N: "standby", R: "junior, catches up", M: "junior, gets its state", F: "failed" };

/** The copies of the slice, with the reason of each. All of a file's chunks are with each member of its slice. */
function holders({ where: w }: Properties): Holder[] {
  const active = w.active.site === w.policy.home ? `the active; the policy's home is ${w.policy.home}` : `the active for now; the policy's home is ${w.policy.home || "nowhere in particular"}`;
  const others = w.standbys.map((m) => ({ node: m.node, site: m.site, part: parts[m.state ?? ""] ?? "member", why: `the policy asks for ${w.policy.level} copies` }));
  return [{ node: w.active.node, site: w.active.site, part: "active", why: active }, ...others];
}

const columns: Column<Holder>[] = [
  { id: "site", name: "Site", value: (h) => h.site, cell: (h) => <Link to="/sites/$name" params={{ name: h.site }} className="link">{h.site}</Link> },
  { id: "node", name: "Node", value: (h) => h.node, cell: (h) => <Link to="/nodes/$id" params={{ id: h.node }} className="link"><Code title={h.node}>{shortId(h.node)}</Code></Link> },
  { id: "part", name: "Part", value: (h) => h.part, cell: (h) => h.part },
  { id: "why", name: "Why", cell: (h) => <span className="text-soft">{h.why}</span> },
];

function Rights({ of: p }: { of: Properties }) {
  const may = [p.as.read && "read", p.as.write && (p.is_folder ? "add and remove names" : "write"), p.as.search && (p.is_folder ? "go through" : "run")].filter(Boolean);
  return <>{may.length > 0 ? `uid ${p.as.uid} may ${may.join(", ")}` : `uid ${p.as.uid} may do nothing`}</>;
}

function Body({ of: p }: { of: Properties }) {
  const name = p.path.split("/").pop() ?? "";
  const trouble = windowsTrouble(name);
  const inside = p.path.slice(1);
  return (
    <>
      <div className="px-4 pb-4">
        <Facts
          items={[
            ["Path", <Code key="path">{p.path}</Code>],
            ["Mode", <span key="mode"><Code>{p.mode}</Code> <Code>{modeWords(p.mode)}</Code></span>],
            ["Owner", `uid ${p.uid}, gid ${p.gid}`],
            ["Gateway's user", <Rights key="rights" of={p} />],
            ["Size", p.is_folder ? undefined : bytes(p.size_bytes)],
            ["Content changed", <Age key="modified" at={p.modified_at} />],
            ["Attributes changed", <Age key="changed" at={p.changed_at} />],
            ["Made", <Age key="made" at={p.made_at} />],
            ["Cues in force", p.cues ? <Code key="cues">{p.cues}</Code> : "none"],
            ["Slice", <Link key="slice" to="/slices/$id" params={{ id: String(p.where.slice) }} className="link">{p.where.slice}</Link>],
            ["Object", <span key="object"><Code>{p.where.object}</Code>, version {p.where.version}</span>],
            ["Read from", <span key="read">{p.where.read.site}: <span className="text-soft">{sentence(p.where.read.why)}</span></span>],
            ["On Windows", trouble ? <Pill key="windows" tone="warn">The name is mapped: {trouble}</Pill> : "The name is shown as it is."],
          ]}
        />
        <FilesMode key={`${p.path} ${p.mode}`} of={p} />
        <div className="mt-3 flex flex-wrap gap-1">
          <Copy label="Copy path: Linux" text={`~/cartwheel${p.path}`} />
          <Copy label="macOS" text={`~/cartwheel${p.path}`} />
          <Copy label="Windows" text={`C:\\cartwheel\\${inside.replaceAll("/", "\\")}`} />
          <Copy label="Copy as command" text={`cartwheel where ${mounted(p.path)}`} />
        </div>
      </div>
      <Table label="Copies" columns={columns} rows={holders(p)} rowKey={(h) => h.node} />
    </>
  );
}

/** The panel with what is known of a file or folder. */
export function FilesProperties({ path, close }: { path: string; close: () => void }) {
  const known = useQuery(propertiesQuery(path));
  return (
    <Card title={`Properties of ${path}`} flush aside={<Button kind="quiet" onClick={close}>Close</Button>}>
      <Shown query={known} what="these properties" rows={8}>
        {(p) => <Body of={p} />}
      </Shown>
    </Card>
  );
}
