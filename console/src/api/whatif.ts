// The what-if route: what a change would do, without doing it.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answered, quote } from "./call";
import { type Prediction as Outcome, type WhatIf, type WhatIfChange, whatIf } from "./generated";
import { asProblem } from "./problem";

export type { Prediction as Outcome, PredictedLatency as Latencies, PredictedSite as SiteOutcome, SliceState, Summary, WhatIfChange } from "./generated";

/** What a prediction takes for granted. */
export type Assumptions = Omit<WhatIf, "changes">;

/** Asks what changes would do. Nothing is changed. */
export const whatIfQuery = (changes: WhatIfChange[], assumptions: Assumptions) =>
  queryOptions({
    queryKey: ["what-if", changes, assumptions],
    queryFn: ({ signal }) => answered(whatIf({ signal, body: { changes, ...assumptions } })),
    enabled: changes.length > 0,
    placeholderData: keepPreviousData,
    // A node makes one prediction at a time.
    retry: (failures, error) => failures < 5 && asProblem(error).code === "overloaded",
    retryDelay: 500,
  });

/** The same question as a command. */
export function asCommand(changes: WhatIfChange[], a: Assumptions): string {
  const words = ["cartwheel", "what-if"];
  for (const c of changes) {
    if (c.kind === "lose_site") words.push("--lose-site", c.site ?? "");
    else if (c.kind === "lose_node") words.push("--lose-node", c.node ?? "");
    else if (c.kind === "add_site") {
      const far = Object.entries(c.rtt_ms ?? {}).map(([site, ms]) => `${site}=${ms}ms`);
      words.push("--add-site", [c.site, c.nodes ?? 1, far.join(",")].join(":"));
    } else if (c.kind === "drain_node") words.push("--drain-node", c.node ?? "");
    else if (c.kind === "drain_site") words.push("--drain-site", c.site ?? "");
    else if (c.kind === "set_home") words.push("--home", `${c.slice}=${c.site}`);
    else if (c.kind === "move_active") words.push("--move", `${c.slice}=${c.site}`);
    else words.push("--level", `${c.slice}=${c.level}`);
  }
  if (a.rate_bytes_per_s) words.push("--rate", String((a.rate_bytes_per_s * 8) / 1e6));
  if (a.failed_after_ms !== undefined) words.push("--failed-after", `${a.failed_after_ms / 60_000}m`);
  return words.map(quote).join(" ");
}

/** What an outcome means, in one sentence. */
export function verdict(o: Outcome): { tone: "ok" | "warn" | "bad"; text: string } {
  const n = (count: number) => `${count.toLocaleString()} ${count === 1 ? "slice" : "slices"}`;
  const lost = o.after.lost - o.before.lost;
  const stopped = o.during.waiting + o.during.lost - o.before.waiting - o.before.lost;
  const still = o.after.waiting - o.before.waiting;
  const thin = o.during.under - o.before.under;
  if (lost > 0) return { tone: "bad", text: `No copy would be left of ${n(lost)}.` };
  if (stopped > 0) {
    const end = still > 0 ? `${n(still)} of them until a lost member is back` : "until copies have been made";
    return { tone: "bad", text: `${n(stopped)} would stop serving, ${end}.` };
  }
  if (o.after.under > o.before.under) return { tone: "warn", text: `All stays available, but ${n(o.after.under)} would have too few copies for good.` };
  if (thin > 0) return { tone: "warn", text: `All stays available. ${n(o.during.under)} would have too few copies until new ones are made.` };
  if (o.slices_changed === 0) return { tone: "ok", text: "No slice would change." };
  return { tone: "ok", text: `All stays available and protected. ${n(o.slices_changed)} would change.` };
}
