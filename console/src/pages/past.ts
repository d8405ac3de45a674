// Names, ages and commands of snapshots and schedules, as the node and the command line have them.
import { quote } from "../api/call";
import type { Schedule } from "../api/generated";

const units: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** The longest age: ten years. */
const longest = 10 * 365 * 86_400_000;

/** The milliseconds of an age such as 12h, 30d or 8w; undefined: the text is none. */
export function parseAge(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^(\d{1,9})([smhdw])$/.exec(text) ?? [];
  const ms = Number(digits) * (units[unit] ?? 0);
  return ms > 0 && ms <= longest ? ms : undefined;
}

/** How many snapshots all schedules may keep together. */
const mostScheduled = 224;

/** What is wrong with a name; undefined: nothing that can be seen from here. */
export function nameProblem(name: string, snapshots: { name: string }[], schedules: { name: string }[]): string | undefined {
  if (!name) return "write a name";
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) return "a name has letters, digits, and behind the first also . _ -";
  // In paths, .Snapshot= takes a date with or without a time of day, whose colons may be dots.
  if (/^\d{4}-\d\d-\d\d(T\d\d\.\d\d(\.\d\d)?)?$/.test(name)) return "this means a time, so it cannot be a name";
  if (snapshots.some((s) => s.name === name)) return `${name} is a snapshot already`;
  if (schedules.some((s) => s.name === name)) return `${name} is a schedule already`;
  return undefined;
}

/** What is wrong with the age after which a new snapshot is deleted; empty: it never is. */
export function keepProblem(keep: string): string | undefined {
  return keep && parseAge(keep) === undefined ? "keep it for an age such as 12h, 30d or 8w" : undefined;
}

/** What is wrong with a schedule's times; undefined: nothing that can be seen from here. */
export function timesProblem(every: string, keep: string, others: Schedule[]): string | undefined {
  const [e, k] = [parseAge(every), parseAge(keep)];
  if (e === undefined || e % 60_000 !== 0) return "make one every so many whole minutes, such as 15m, 1h or 1d";
  if (k === undefined) return "keep each for an age such as 48h, 30d or 8w";
  if (k < e) return "keep each at least until the next one is made";
  const room = mostScheduled - others.reduce((n, s) => n + s.most_snapshots, 0);
  const needs = Math.ceil(k / e) + 1;
  if (needs > room) return `that keeps ${needs} snapshots, and there is room for ${Math.max(room, 0)}: make them less often, or keep them for less long`;
  return undefined;
}

/** What a snapshot's tree is called in a path. */
export function pathOf(name: string): string {
  return `.Snapshot=${name}`;
}

const command = (...words: string[]) => ["cartwheel", ...words].map(quote).join(" ");

/** The command that makes a snapshot. */
export function createCommand(name: string, keep: string): string {
  return command("snapshot", "create", name, ...(keep ? ["--keep", keep] : []));
}

/** The command that deletes a snapshot, or ends a schedule. */
export function deleteCommand(name: string): string {
  return command("snapshot", "delete", name);
}

/** The command that makes a schedule. */
export function scheduleCommand(name: string, every: string, keep: string): string {
  return command("snapshot", "schedule", name, "--every", every, "--keep", keep);
}

/** The command that has a node read all that it stores. */
export function scrubCommand(node: string): string {
  return command("scrub", node);
}
