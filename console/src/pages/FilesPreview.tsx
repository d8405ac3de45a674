import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Beginning, beginningQuery, isPicture, previewBytes } from "../api/preview";
import { fileAddress, mounted } from "../api/tree";
import { Button, Card, Copy } from "../ui/kit";
import { Shown } from "../ui/states";

/** A picture, as an image element shows it: scripts in it do not run. */
function Picture({ path, name }: { path: string; name: string }) {
  const [failed, setFailed] = useState(false);
  if (failed) return <p role="status">The browser cannot show this picture. Download it instead.</p>;
  return <img src={fileAddress(path)} alt={`Picture ${name}`} className="max-h-[60vh] max-w-full rounded border border-line object-contain" onError={() => setFailed(true)} />;
}

function Text({ of, name }: { of: Beginning; name: string }) {
  if (of.text === undefined) return <p role="status">This is neither a text nor a picture that browsers show. Download it instead.</p>;
  if (of.text === "") return <p role="status">This file is empty.</p>;
  return (
    <div className="flex flex-col gap-2">
      {of.cut ? <p role="status" className="text-soft">The first {previewBytes >> 10} KiB of it.</p> : null}
      <div role="region" aria-label={`Content of ${name}`} tabIndex={0} className="max-h-[60vh] overflow-auto rounded border border-line bg-sunk p-3">
        <pre className="font-mono text-[0.92rem] wrap-anywhere whitespace-pre-wrap">{of.text}</pre>
      </div>
    </div>
  );
}

function Beginnings({ path, name }: { path: string; name: string }) {
  const read = useQuery(beginningQuery(path));
  return (
    <Shown query={read} what="this file" rows={6}>
      {(of) => <Text of={of} name={name} />}
    </Shown>
  );
}

/** The panel with the beginning of a text, or with a picture. */
export function FilesPreview({ path, close }: { path: string; close: () => void }) {
  const name = path.split("/").pop() ?? "";
  return (
    <Card title={`Preview of ${path}`} aside={<Button kind="quiet" onClick={close}>Close</Button>}>
      <div className="flex flex-col gap-3">
        {isPicture(name) ? <Picture key={path} path={path} name={name} /> : <Beginnings path={path} name={name} />}
        <div className="flex flex-wrap items-center gap-2">
          <a href={fileAddress(path)} download={name} className="link">Download {name}</a>
          {isPicture(name) ? null : <Copy label="Copy as command" text={`head -c ${previewBytes} ${mounted(path)}`} />}
        </div>
      </div>
    </Card>
  );
}
