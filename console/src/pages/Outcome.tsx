import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Latencies, type Outcome, type SiteOutcome, type SliceState, type Summary, verdict } from "../api/whatif";
import { bytes, count, millis, plural, span } from "../format";
import { Card, Mark, Pill, type Tone, toneInk } from "../ui/kit";
import { Switch } from "./Network";

const stands: Record<string, [Tone, string]> = { protected: ["ok", "Protected"], under: ["warn", "Too few copies"], waiting: ["bad", "Waiting"], lost: ["bad", "Lost"] };

/** A slice's state in words; one of a newer node is shown as it is. */
function standing(s: SliceState): [Tone, string] {
  return stands[s.stands] ?? ["idle", s.stands];
}

/** What a draft would do. */
export function OutcomeView({ outcome: o }: { outcome: Outcome }) {
  const v = verdict(o);
  return (
    <>
      <p role="status" className={`flex items-center gap-3 text-[1.3rem] leading-snug font-medium tracking-tight ${v.tone === "bad" ? toneInk("bad") : ""}`}>
        <Mark tone={v.tone} size={16} />
        {v.text}
      </p>
      <div className="grid gap-3 md:grid-cols-3">
        <Phase title="Now" note="before" s={o.before} />
        <Phase title="Seconds later" note="during" s={o.during} from={o.before} />
        <Phase title="Copies made" note={o.copy_ms ? `after ${span(o.copy_ms)} of copying` : "after"} s={o.after} from={o.before} />
      </div>
      <LatencyTable sites={o.sites} />
      <div className="grid grid-cols-1 items-start gap-5 min-[100rem]:grid-cols-2">
        <LinkBytes outcome={o} />
        <Changed outcome={o} />
      </div>
      {o.notes.length > 0 ? (
        <Card title="What the prediction does not know">
          <ul className="flex list-disc flex-col gap-1 pl-5 text-soft">
            {o.notes.map((n) => (
              <li key={n}>{n}</li>
            ))}
          </ul>
        </Card>
      ) : null}
    </>
  );
}

const parts = [
  ["protected", "Protected", "fill-ok", "ok"],
  ["under", "Too few copies", "fill-warn", "warn"],
  ["waiting", "Waiting", "fill-bad", "bad"],
  ["lost", "Lost", "fill-ink", "bad"],
] as const;

function Phase({ title, note, s, from }: { title: string; note: string; s: Summary; from?: Summary }) {
  let x = 0;
  return (
    <section aria-label={title} className="card px-4 py-3">
      <h2 className="font-semibold">
        {title} <span className="font-normal text-faint">{note}</span>
      </h2>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" className="mt-2 mb-2.5 h-2 w-full rounded-full" aria-hidden="true">
        <rect width="100" height="8" className="fill-line" />
        {parts.map(([key, , fill]) => {
          const w = s.slices > 0 ? (s[key] / s.slices) * 100 : 0;
          const at = x;
          x += w;
          return w > 0 ? <rect key={key} x={at} width={w} height="8" className={fill} /> : null;
        })}
      </svg>
      <dl className="flex flex-col gap-0.5">
        {parts.map(([key, name, , tone]) => (
          <div key={key} className={`flex items-center justify-between ${s[key] === 0 ? "text-faint" : ""}`}>
            <dt className="flex items-center gap-2">
              <Mark tone={s[key] === 0 ? "idle" : tone} size={9} />
              {name}
            </dt>
            <dd className="flex items-baseline gap-2">
              {from && s[key] !== from[key] ? <span className="text-[0.86rem] text-faint">{delta(s[key] - from[key])}</span> : null}
              <span className="font-medium">{count(s[key])}</span>
            </dd>
          </div>
        ))}
      </dl>
      <p className="mt-2 border-t border-line pt-2 text-[0.9rem] text-soft">
        {!s.critical || s.critical.length === 0 ? "Any one site may be lost, and all goes on." : `Would stop slices if lost next: ${s.critical.join(", ")}.`}
      </p>
    </section>
  );
}

function delta(n: number): string {
  return n > 0 ? `+${n.toLocaleString()}` : `−${Math.abs(n).toLocaleString()}`;
}

type Which = "median" | "worst";
type What = "read" | "write";

/** A latency in milliseconds; undefined: no slice could be predicted. */
function pick(l: Latencies, which: Which, what: What): number | undefined {
  return l[`${which}_${what}_ms`];
}

function LatencyTable({ sites }: { sites: SiteOutcome[] }) {
  const [scope, setScope] = useState<"own" | "all">("own");
  const [which, setWhich] = useState<Which>("median");
  const rows = sites.map((s) => ({ site: s, before: scope === "own" ? s.own_before : s.all_before, after: scope === "own" ? s.own_after : s.all_after }));
  const most = Math.max(1, ...rows.flatMap((r) => [r.before, r.after].flatMap((l) => [pick(l, which, "read") ?? 0, pick(l, which, "write") ?? 0])));
  return (
    <Card
      flush
      title="Latency for users at each site"
      aside={
        <span className="flex flex-wrap gap-2">
          <Switch label="Slices" value={scope} options={[["own", "Their own slices"], ["all", "The whole tree"]]} set={setScope} />
          <Switch label="Figure" value={which} options={[["median", "Median"], ["worst", "Worst"]]} set={setWhich} />
        </span>
      }
    >
      <div className="overflow-x-auto" role="region" aria-label="Latency by site" tabIndex={0}>
        <table className="grid-table">
          <thead>
            <tr>
              <th scope="col">Users at</th>
              <th scope="col" className="num">Slices</th>
              <th scope="col">Read</th>
              <th scope="col">Write</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ site, before, after }) => (
              <tr key={site.name}>
                <th scope="row">
                  {site.name} {site.lost ? <Pill tone="bad">no node left</Pill> : null}
                </th>
                <td className="num">{count(after.slices)}</td>
                {(["read", "write"] as const).map((what) => (
                  <td key={what}>
                    <Change before={before} after={after} which={which} what={what} most={most} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** A latency before and after: two numbers, two bars. */
function Change({ before, after, which, what, most }: { before: Latencies; after: Latencies; which: Which; what: What; most: number }) {
  const b = pick(before, which, what);
  const a = pick(after, which, what);
  const same = a === undefined || b === undefined ? a === b : Math.abs(a - b) < 0.05;
  const worse = a !== undefined && b !== undefined && a > b * 1.1 + 0.5;
  const better = a !== undefined && b !== undefined && a < b * 0.9 - 0.5;
  return (
    <span className="block min-w-32">
      <span className="flex items-baseline gap-1.5">
        {same ? null : (
          <>
            <span className="text-faint">{millis(b)}</span>
            <span aria-label="becomes" className="text-faint">→</span>
          </>
        )}
        <span className={`font-medium ${worse ? "text-bad" : better ? "text-ok" : ""}`}>{a === undefined && b === undefined ? millis(undefined) : a === undefined ? "none serves" : millis(a)}</span>
        {worse ? <span aria-hidden="true" className="text-bad">↑</span> : better ? <span aria-hidden="true" className="text-ok">↓</span> : null}
      </span>
      <svg viewBox="0 0 100 7" preserveAspectRatio="none" className="mt-1 h-[7px] w-full max-w-44" aria-hidden="true">
        <rect width={((b ?? 0) / most) * 100} height="2.500" className="fill-edge" opacity="0.5" />
        <rect y="4" width={((a ?? 0) / most) * 100} height="3" className={worse ? "fill-bad" : "fill-accent"} />
      </svg>
    </span>
  );
}

function LinkBytes({ outcome: o }: { outcome: Outcome }) {
  const most = Math.max(1, ...o.copies.map((c) => c.total_bytes));
  const all = o.copies.reduce((sum, c) => sum + c.total_bytes, 0);
  return (
    <Card title="Bytes over each link" aside={o.copies.length > 0 ? `${bytes(all)} in all` : undefined}>
      {o.copies.length === 0 ? (
        <p className="text-soft">No copy has to be made.</p>
      ) : (
        <>
          <ul className="flex flex-col gap-2.5">
            {o.copies.map((c) => (
              <li key={`${c.from} ${c.to}`}>
                <span className="flex justify-between gap-3">
                  <span>
                    {c.from} → {c.to} <span className="text-faint">{plural(c.slices, "slice")}</span>
                  </span>
                  <span>
                    {bytes(c.total_bytes)}
                    {c.unknown_slices ? <span className="text-faint"> and {plural(c.unknown_slices, "slice")} of unknown size</span> : null}
                  </span>
                </span>
                <svg viewBox="0 0 100 4" preserveAspectRatio="none" className="mt-1 h-1 w-full rounded-full" aria-hidden="true">
                  <rect width="100" height="4" className="fill-line" />
                  <rect width={(c.total_bytes / most) * 100} height="4" className="fill-accent" />
                </svg>
              </li>
            ))}
          </ul>
          <p className="mt-3 border-t border-line pt-2 text-soft">{o.copy_ms ? `About ${span(o.copy_ms)} at the rate assumed, all links at once.` : "How long it takes is not known: set the rate between sites."}</p>
        </>
      )}
    </Card>
  );
}

const shownSlices = 100;

function Changed({ outcome: o }: { outcome: Outcome }) {
  return (
    <Card title="Slices that change" aside={plural(o.slices_changed, "slice")} flush>
      {o.slices.length === 0 ? (
        <p className="px-4 pb-4 text-soft">None.</p>
      ) : (
        <div className="max-h-96 overflow-auto" role="region" aria-label="Slices that change" tabIndex={0}>
          <table className="grid-table">
            <thead className="sticky top-0 bg-surface">
              <tr>
                <th scope="col" className="num">Slice</th>
                <th scope="col">Active</th>
                <th scope="col">During</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {o.slices.slice(0, shownSlices).map((s) => (
                <tr key={s.id}>
                  <th scope="row" className="num">
                    <Link to="/slices/$id" params={{ id: String(s.id) }} className="link">{s.id}</Link>
                  </th>
                  <td className="whitespace-nowrap">{s.before.site === s.after.site ? s.after.site : `${s.before.site} → ${s.after.site || "none"}`}</td>
                  <td><Pill tone={standing(s.during)[0]}>{standing(s.during)[1]}</Pill></td>
                  <td><Pill tone={standing(s.after)[0]}>{standing(s.after)[1]}</Pill></td>
                </tr>
              ))}
            </tbody>
          </table>
          {o.slices_changed > shownSlices ? <p className="px-4 py-3 text-soft">The first {shownSlices} of {count(o.slices_changed)}; the command prints all.</p> : null}
        </div>
      )}
    </Card>
  );
}
