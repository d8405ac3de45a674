// Numbers, times and names as people read them. Unknown values are undefined or
// null and always come out as the same dash, never as zero.

/** The text that stands for a value that nobody knows. */
export const unknown = "–";

type Maybe<T> = T | null | undefined;

/** A count, grouped as the reader's locale does. */
export function count(n: Maybe<number>): string {
  return n == null ? unknown : n.toLocaleString();
}

/** "1 node", "2 nodes". */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString()} ${n === 1 ? one : many}`;
}

/** Milliseconds: "0.42 ms", "31 ms", "1.4 s", "3 min". */
export function millis(ms: Maybe<number>): string {
  if (ms == null || !Number.isFinite(ms)) return unknown;
  const size = Math.abs(ms);
  if (size === 0) return "0 ms";
  if (size < 0.995) return `${ms.toFixed(2)} ms`;
  if (size < 9.95) return `${ms.toFixed(1)} ms`;
  if (size < 999.5) return `${ms.toFixed(0)} ms`;
  if (size < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return span(ms);
}

/** A span of time in its two largest units: "3 min 20 s", "2 d 4 h". */
export function span(ms: Maybe<number>): string {
  if (ms == null || !Number.isFinite(ms)) return unknown;
  const units: [string, number][] = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ];
  let rest = Math.round(Math.abs(ms) / 1000) * 1000;
  const parts: string[] = [];
  for (const [name, length] of units) {
    const n = Math.floor(rest / length);
    rest -= n * length;
    if (n > 0) parts.push(`${n} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(" ") : "0 s";
}

/** Bytes in powers of 1024: "3.2 GiB". */
export function bytes(n: Maybe<number>): string {
  if (n == null || n < 0) return unknown;
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = n;
  let i = 0;
  while (value >= 1023.5 && i < names.length - 1) {
    value /= 1024;
    i++;
  }
  const digits = i === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return `${value.toFixed(digits)} ${names[i]}`;
}

/** The time of day, with the zone in the title that stands beside it. */
export function clock(at: Maybe<string>): string {
  if (!at) return unknown;
  return new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** How long ago, or how far ahead: "12 s ago", "in 3 min". */
export function ago(at: Maybe<string>, now = Date.now()): string {
  if (!at) return unknown;
  const ms = now - Date.parse(at);
  if (Number.isNaN(ms)) return unknown;
  if (Math.abs(ms) < 1500) return "just now";
  const text = span(ms).split(" ").slice(0, 2).join(" ");
  return ms > 0 ? `${text} ago` : `in ${text}`;
}

/** The last eight characters of a node's ID, which tell nodes of a cluster apart. */
export function shortId(id: Maybe<string>): string {
  if (!id) return unknown;
  return id.length <= 12 ? id : `…${id.slice(-8)}`;
}

/** A figure with three significant digits, and never fewer than its whole number has; a text as it is. */
export function figure(v: unknown): string {
  if (typeof v !== "number") return typeof v === "string" ? v : unknown;
  return Number.isInteger(v) || Math.abs(v) >= 100 ? Math.round(v).toLocaleString() : v.toPrecision(3);
}
