import { Link } from "@tanstack/react-router";
import type { Activity as Record } from "../api/model";
import { shortId } from "../format";
import { Age, Code } from "./kit";

/** Where an audit record's subject can be seen. */
function Subject({ subject }: { subject: string }) {
  const [table, ...rest] = subject.split("/");
  const name = decodeURIComponentSafe(rest.join("/"));
  if (table === "sites" && name) return <Link to="/sites/$name" params={{ name }} className="link">{name}</Link>;
  if (table === "nodes" && name) return <Link to="/nodes/$id" params={{ id: name }} className="link"><Code>{shortId(name)}</Code></Link>;
  if (table === "slices" && name) return <Link to="/slices/$id" params={{ id: name }} className="link">slice {name}</Link>;
  if (table === "records" && name) return <span className="wrap-anywhere">{name.replace("/", " ")}</span>;
  return <span className="wrap-anywhere">{subject.length > 40 ? shortId(subject) : subject}</span>;
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not encoded: as it is
  }
}

/** One record: who did what to what, and when. */
export function ActivityRow({ record: a }: { record: Record }) {
  return (
    <li className="flex items-baseline justify-between gap-3 px-4 py-2.5">
      <span className="min-w-0">
        <span className="font-medium">{a.action}</span> <Subject subject={a.subject} />
        <span className="block truncate text-[0.9rem] text-faint" title={a.who}>
          by {a.who.length > 24 ? shortId(a.who) : a.who || "the cluster"}
        </span>
        {a.detail ? <span className="block text-[0.9rem] break-words text-soft">{a.detail}</span> : null}
      </span>
      <span className="text-[0.9rem] text-faint">
        <Age at={a.recorded_at} />
      </span>
    </li>
  );
}
