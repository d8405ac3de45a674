import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type Entry, fileAddress, listQuery, windowsTrouble } from "../api/tree";
import { bytes } from "../format";
import { Page } from "../shell/Page";
import { Age, Button, Card, Command, Pill } from "../ui/kit";
import { Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { FilesProperties } from "./FilesProperties";
import { FilesUpload } from "./FilesUpload";

/** The tree of files, as the gateway serves it. */
export function Files() {
  const { path, show } = useSearch({ from: "/shell/tree" });
  const navigate = useNavigate();
  const open = (of: string | undefined) => void navigate({ to: "/tree", search: of === undefined ? { path } : { path, show: of } });
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
          <a href={fileAddress(inside(e.name))} download={e.name} className="link">
            {e.name}
          </a>
        ),
    },
    { id: "kind", name: "Kind", value: (e) => String(e.is_dir), cell: (e) => <span className="text-faint">{e.is_dir ? "folder" : e.is_symlink ? "link" : "file"}</span> },
    { id: "size", name: "Size", figure: true, value: (e) => (e.is_dir ? undefined : e.size), cell: (e) => (e.is_dir ? "" : bytes(e.size)) },
    { id: "changed", name: "Changed", value: (e) => e.mod_time, cell: (e) => <Age at={e.mod_time} /> },
    {
      id: "do",
      name: "",
      cell: (e) => {
        const name = e.name.replace(/\/$/, "");
        return (
          <span className="flex flex-wrap items-center gap-2">
            {windowsTrouble(name) ? <Pill tone="warn">Mapped on Windows</Pill> : null}
            <Button kind="quiet" aria-label={`Properties of ${name}`} aria-expanded={show === inside(name)} onClick={() => open(inside(name))}>
              Properties
            </Button>
          </span>
        );
      },
    },
  ];
  return (
    <Page title="Files" purpose="The tree, as the gateway shows it. Its rights are those of the gateway's user.">
      <nav aria-label="Folder" className="flex flex-wrap items-center gap-1.5 text-[1.05rem]">
        <Link to="/tree" search={{ path: "/" }} className="link inline-flex min-h-6 min-w-6 items-center justify-center">
          /
        </Link>
        {parts.map((p, i) => (
          <span key={parts.slice(0, i + 1).join("/")} className="flex gap-1.5">
            {i === parts.length - 1 ? <b className="font-semibold">{p}</b> : <Link to="/tree" search={{ path: `/${parts.slice(0, i + 1).join("/")}` }} className="link">{p}</Link>}
            {i === parts.length - 1 ? null : <span aria-hidden="true">/</span>}
          </span>
        ))}
        <Button kind="quiet" aria-expanded={show === path} onClick={() => open(path)}>
          Properties of this folder
        </Button>
      </nav>
      {show === undefined ? null : <FilesProperties path={show} close={() => open(undefined)} />}
      <FilesUpload key={path} path={path} />
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
