// The range of time of the activity page, as the address keeps it.
import { z } from "zod";

const minute = 60_000;

/** The ranges that end now, by their length. */
export const lengths = { "15m": 15 * minute, "1h": 60 * minute, "24h": 24 * 60 * minute, "7d": 7 * 24 * 60 * minute } as const;

/** What the choice of a range offers; absent in the address: all of the time. */
export const ranges = ["15m", "1h", "24h", "7d", "custom"] as const;

/** Their words. */
export const rangeWords: Record<(typeof ranges)[number], string> = { "15m": "the last 15 minutes", "1h": "the last hour", "24h": "the last 24 hours", "7d": "the last 7 days", custom: "from and to…" };

const text = (most: number) => z.string().max(most).optional().catch(undefined);
const time = z.iso.datetime({ offset: true }).optional().catch(undefined);

/** The search parameters of the activity page. */
export const activitySchema = z.object({
  who: text(128),
  action: text(64),
  subject: text(128),
  q: text(128),
  range: z.enum(ranges).optional().catch(undefined),
  from: time,
  to: time,
});

/** What is searched for in the activity. */
export type ActivityFilter = z.infer<typeof activitySchema>;

/** The same as the API takes it, at a time. */
export function asQuery({ range, from, to, ...rest }: ActivityFilter, now: number): Omit<ActivityFilter, "range"> {
  if (range && range !== "custom") return { ...rest, from: new Date(now - lengths[range]).toISOString() };
  return { ...rest, ...(from ? { from } : {}), ...(to ? { to } : {}) };
}

/** Whether anything narrows the activity. */
export function isNarrowed(f: ActivityFilter): boolean {
  return Object.entries(f).some(([key, v]) => v !== undefined && v !== "" && !(key === "range" && v === "custom"));
}

/** A time as a field of the reader's own zone has it, to the second. */
export function toField(at: string | undefined): string {
  if (!at) return "";
  const t = new Date(at);
  return Number.isNaN(t.getTime()) ? "" : new Date(t.getTime() - t.getTimezoneOffset() * minute).toISOString().slice(0, 19);
}

/** What a field of the reader's own zone says, as a time. */
export function ofField(text: string): string | undefined {
  const t = new Date(text);
  return Number.isNaN(t.getTime()) ? undefined : t.toISOString();
}

/** How many rows each press asks for, and by how many requests at most. */
export const press = { rows: 100, requests: 5 };

/** Whether the search goes on by itself: it has too few rows, and requests left of the presses so far. */
export function goesOn(rows: number, requests: number, presses: number): boolean {
  return rows < presses * press.rows && requests < presses * press.requests;
}
