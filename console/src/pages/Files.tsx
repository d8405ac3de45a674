import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { z } from "zod";
import { asProblem, Problem, problemOf } from "../api/problem";
import { bytes } from "../format";
import { Page } from "../shell/Page";
import { Age, Card, Command, Copy } from "../ui/kit";
import { quote } from "../api/call";
import { Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";

const listing = z.array(z.object({ name: z.string(), size: z.number().optional(), mod_time: z.string().optional(), is_dir: z.boolean().default(false), is_symlink: z.boolean().default(false) }));
type Entry = z.infer<typeof listing>[number];

/** A path of the tree as an address of the gateway. */
function address(path: string): string {
  return `/files${path.split("/").map(encodeURIComponent).join("/")}`;
}

async function list(path: string, signal: AbortSignal): Promise<Entry[]> {
  const folder = path.endsWith("/") ? path : `${path}/`;
  let response: Response;
  try {
    response = await fetch(address(folder), { headers: { Accept: "application/json" }, credentials: "same-origin", signal });
  } catch (error) {
    throw asProblem(error);
  }
  if (!response.ok) throw await problemOf(response);
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) {
    throw new Problem({ title: "", status: 404, detail: "This gateway serves no files of the tree", code: "not_supported", remedy: "Name a tree in the gateway's Caddyfile, or mount the cluster." });
  }
  return listing.nullable().parse(await response.json()) ?? [];
}

const listQuery = (path: string) => queryOptions({ queryKey: ["files", path], queryFn: ({ signal }) => list(path, signal), retry: false });

/** The tree of files, as the gateway serves it. */
export function Files() {
  const { path } = useSearch({ from: "/shell/tree" });
  const entries = useQuery(listQuery(path));
  const parts = path.split("/").filter(Boolean);
  const inside = (name: string) => `/${[...parts, name].join("/")}`;
  const columns: Column<Entry>[] = [
    {
      id: "name",
      name: "Name",
      value: (e) => `${e.is_dir ? 0 : 1}${e.name}`,
      cell: (e) =>
        e.is_dir ? (
          <Link to="/tree" search={{ path: inside(e.name.replace(/\/$/, "")) }} className="link font-medium">
            {e.name.replace(/\/$/, "")}/
          </Link>
        ) : (
          <a href={address(inside(e.name))} download={e.name} className="link">
            {e.name}
          </a>
        ),
    },
    { id: "kind", name: "Kind", value: (e) => String(e.is_dir), cell: (e) => <span className="text-faint">{e.is_dir ? "folder" : e.is_symlink ? "link" : "file"}</span> },
    { id: "size", name: "Size", figure: true, value: (e) => (e.is_dir ? undefined : e.size), cell: (e) => (e.is_dir ? "" : bytes(e.size)) },
    { id: "changed", name: "Changed", value: (e) => e.mod_time, cell: (e) => <Age at={e.mod_time} /> },
    { id: "do", name: "", cell: (e) => <Copy text={`cartwheel where ${quote(inside(e.name.replace(/\/$/, "")))}`} label="Where is it?" /> },
  ];
  return (
    <Page title="Files" purpose="The tree, as the gateway shows it. Its rights are those of the gateway's user.">
      <nav aria-label="Folder" className="flex flex-wrap items-center gap-1.5 text-[1.05rem]">
        <Link to="/tree" search={{ path: "/" }} className="link">
          /
        </Link>
        {parts.map((p, i) => (
          <span key={parts.slice(0, i + 1).join("/")} className="flex gap-1.5">
            {i === parts.length - 1 ? <b className="font-semibold">{p}</b> : <Link to="/tree" search={{ path: `/${parts.slice(0, i + 1).join("/")}` }} className="link">{p}</Link>}
            {i === parts.length - 1 ? null : <span aria-hidden="true">/</span>}
          </span>
        ))}
      </nav>
      <Card flush>
        <Shown query={entries} what="this folder">
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="This folder is empty" action={<Command>{`cp FILE ~/cartwheel${path}`}</Command>} />
            ) : (
              <Table label="Files" columns={columns} rows={rows} rowKey={(e) => e.name} />
            )
          }
        </Shown>
      </Card>
    </Page>
  );
}
