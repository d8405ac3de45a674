// The draft of a what-if, as the address keeps it.
import { z } from "zod";
import type { Assumptions, WhatIfChange } from "../api/whatif";

const names = z.array(z.string().max(128)).max(64);

/** The search parameters of the what-if page. */
export const draftSchema = z.object({
  lose: names.optional().catch(undefined),
  loseNode: names.optional().catch(undefined),
  drainNode: names.optional().catch(undefined),
  drainSite: names.optional().catch(undefined),
  add: z
    .array(z.object({ site: z.string().min(1).max(63), nodes: z.number().int().min(1).max(1000), rtt: z.record(z.string(), z.number().min(0.01).max(10_000)) }))
    .max(8)
    .optional()
    .catch(undefined),
  move: z.array(z.object({ slice: z.number().int().positive(), site: z.string().max(63) })).max(64).optional().catch(undefined),
  home: z.array(z.object({ slice: z.number().int().positive(), site: z.string().max(63) })).max(64).optional().catch(undefined),
  level: z.array(z.object({ slice: z.number().int().positive(), level: z.number().int().min(1).max(16) })).max(64).optional().catch(undefined),
  /** The slice that a form begins with. */
  slice: z.number().int().positive().optional().catch(undefined),
  /** Mbit/s from one site to another. */
  rate: z.number().positive().max(1e6).optional().catch(undefined),
  /** Minutes until a silent node's copies are made elsewhere. */
  after: z.number().min(0).max(10_080).optional().catch(undefined),
});

/** A draft. */
export type Draft = z.infer<typeof draftSchema>;

/** The draft's changes in the order in which they are made on paper. */
export function changesOf(d: Draft): WhatIfChange[] {
  return [
    ...(d.lose ?? []).map((site): WhatIfChange => ({ kind: "lose_site", site })),
    ...(d.loseNode ?? []).map((node): WhatIfChange => ({ kind: "lose_node", node })),
    ...(d.add ?? []).map((a): WhatIfChange => ({ kind: "add_site", site: a.site, nodes: a.nodes, rtt_ms: a.rtt })),
    ...(d.drainSite ?? []).map((site): WhatIfChange => ({ kind: "drain_site", site })),
    ...(d.drainNode ?? []).map((node): WhatIfChange => ({ kind: "drain_node", node })),
    ...(d.home ?? []).map((h): WhatIfChange => ({ kind: "set_home", slice: h.slice, site: h.site })),
    ...(d.level ?? []).map((l): WhatIfChange => ({ kind: "set_level", slice: l.slice, level: l.level })),
    ...(d.move ?? []).map((m): WhatIfChange => ({ kind: "move_active", slice: m.slice, site: m.site })),
  ];
}

/** What the draft takes for granted. */
export function assumptionsOf(d: Draft): Assumptions {
  return { ...(d.rate ? { rate_bytes_per_s: Math.round((d.rate * 1e6) / 8) } : {}), ...(d.after !== undefined ? { failed_after_ms: d.after * 60_000 } : {}) };
}

/** A list with a name added, or taken out where it was there. */
export function toggled(list: string[] | undefined, name: string): string[] | undefined {
  const next = list?.includes(name) ? list.filter((x) => x !== name) : [...(list ?? []), name];
  return next.length > 0 ? next : undefined;
}
