import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { listQuery } from "../api/tree";
import { Page } from "../shell/Page";
import { Button, Card } from "../ui/kit";
import { Shown } from "../ui/states";
import { FilesFolder } from "./FilesFolder";
import { FilesPreview } from "./FilesPreview";
import { FilesProperties } from "./FilesProperties";
import { FilesTable, type Panels } from "./FilesTable";
import { FilesUpload } from "./FilesUpload";

/** The tree of files, as the gateway serves it. */
export function Files() {
  const { path, show, preview } = useSearch({ from: "/shell/tree" });
  const navigate = useNavigate();
  const open = (p: Panels) => void navigate({ to: "/tree", search: { path, ...(p.show === undefined ? {} : { show: p.show }), ...(p.preview === undefined ? {} : { preview: p.preview }) } });
  const entries = useQuery(listQuery(path));
  const parts = path.split("/").filter(Boolean);
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
        <Button kind="quiet" aria-expanded={show === path} onClick={() => open({ show: path, preview })}>
          Properties of this folder
        </Button>
      </nav>
      {show === undefined ? null : <FilesProperties path={show} close={() => open({ preview })} />}
      {preview === undefined ? null : <FilesPreview path={preview} close={() => open({ show })} />}
      <FilesUpload key={path} path={path} />
      <FilesFolder key={`folder ${path}`} path={path} />
      <Card flush>
        <Shown query={entries} what="this folder">
          {(rows) => <FilesTable key={path} path={path} entries={rows} panels={{ show, preview }} open={open} />}
        </Shown>
      </Card>
    </Page>
  );
}
