// What a panel shows while it loads, when it is empty, and when it fails.
import { useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { asProblem, Problem } from "../api/problem";
import { Button, Code, Copy, Mark } from "./kit";

/** The shape of what comes, from 150 ms on. */
export function Skeleton({ rows = 4, label = "Loading" }: { rows?: number; label?: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" className="flex flex-col gap-3 p-4" style={{ minHeight: `${rows * 2.4}rem` }}>
      <span className="sr-only">{label}</span>
      {late ? Array.from({ length: rows }, (_, i) => <div key={i} className="bone h-5" style={{ width: `${92 - ((i * 17) % 40)}%` }} />) : null}
    </div>
  );
}

/** What an empty list is, why it is empty, and the one next step. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-12 text-center">
      <svg width="40" height="40" viewBox="0 0 40 40" fill="none" stroke="currentColor" strokeWidth="1.4" className="text-edge" aria-hidden="true">
        <circle cx="20" cy="20" r="15" strokeDasharray="3 4" />
        <circle cx="20" cy="20" r="3.5" />
      </svg>
      <p className="text-[1.05rem] font-semibold">{title}</p>
      {children ? <div className="max-w-prose text-soft">{children}</div> : null}
      {action ? <div className="mt-2 w-full max-w-md">{action}</div> : null}
    </div>
  );
}

/** What failed, what it means, and what to do. */
export function Failure({ error, retry, what }: { error: unknown; retry?: (() => void) | undefined; what: string }) {
  const p = asProblem(error);
  const denied = p.status === 403;
  return (
    <div role="alert" className="flex flex-col items-start gap-2 p-4">
      <p className="flex items-center gap-2 font-semibold">
        <Mark tone={denied ? "idle" : "bad"} />
        {denied ? `You may not see ${what}` : `Could not load ${what}`}
      </p>
      <p className="max-w-prose text-soft">{sentence(p.message)}</p>
      {p.remedy ? <p className="max-w-prose text-soft">{sentence(p.remedy)}</p> : null}
      <div className="flex flex-wrap items-center gap-2">
        {retry ? <Button onClick={retry}>Try again</Button> : null}
        {p.requestId ? (
          <span className="flex items-center text-[0.9rem] text-faint">
            Request <Code>&nbsp;{p.requestId}</Code> <Copy text={p.requestId} label="Copy ID" />
          </span>
        ) : null}
      </div>
    </div>
  );
}

/** A text as a sentence: a capital at its beginning, a full stop at its end. */
export function sentence(text: string): string {
  const t = text.trim();
  if (!t) return t;
  return t[0]!.toUpperCase() + t.slice(1) + (/[.!?]$/.test(t) ? "" : ".");
}

/** Shows a query's answer, or how it stands. The last answer stays while a newer one is on its way. */
export function Shown<T>({ query, what, rows, children }: { query: UseQueryResult<T>; what: string; rows?: number; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error ? <StaleNotice error={query.error} at={query.dataUpdatedAt} retry={() => void query.refetch()} /> : null}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <Failure error={query.error} what={what} retry={() => void query.refetch()} />;
  return <Skeleton rows={rows ?? 4} label={`Loading ${what}`} />;
}

/** Says that what is shown is old, and why. */
function StaleNotice({ error, at, retry }: { error: unknown; at: number; retry: () => void }) {
  return (
    <div role="status" className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-warn-wash px-4 py-2 text-warn">
      <Mark tone="warn" />
      <span>
        As of {new Date(at).toLocaleTimeString()}: {sentence(asProblem(error).message)}
      </span>
      <button type="button" className="link min-h-6 text-warn" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

/** Why one thing was refused and what to do, in a line. */
export function Refusal({ error }: { error: unknown }) {
  const p = asProblem(error);
  return (
    <span role="alert" className="text-bad wrap-anywhere">
      {sentence(p.message)} {p.remedy ? sentence(p.remedy) : ""}
    </span>
  );
}

/** The problem of a change, beside the form that asked for it. */
export function ChangeFailure({ error, onReload }: { error: unknown; onReload?: () => void }) {
  const client = useQueryClient();
  const p: Problem = asProblem(error);
  const conflict = p.status === 409 || p.status === 412;
  return (
    <div role="alert" className="rounded-lg bg-bad-wash px-3 py-2 text-bad">
      <p className="font-medium">{sentence(p.message)}</p>
      {p.remedy ? <p>{sentence(p.remedy)}</p> : null}
      {p.fields.map((f) => (
        <p key={f.location}>
          <Code>{f.location.replace(/^body\./, "")}</Code>: {f.message}
        </p>
      ))}
      {p.requestId ? <p className="text-[0.86rem]">Request {p.requestId}</p> : null}
      {conflict ? (
        <button
          type="button"
          className="link mt-1 min-h-6 text-bad"
          onClick={() => {
            void client.invalidateQueries();
            onReload?.();
          }}
        >
          Load what it is now, then apply this change again
        </button>
      ) : null}
    </div>
  );
}
