// The small parts that every page is made of.
import { type ComponentProps, type ReactNode, useEffect, useState } from "react";
import { ago, unknown } from "../format";

/** How well something is; each has a colour, a shape and a word. */
export type Tone = "ok" | "warn" | "bad" | "idle";

const tones: Record<Tone, { ink: string; wash: string }> = {
  ok: { ink: "text-ok", wash: "bg-ok-wash" },
  warn: { ink: "text-warn", wash: "bg-warn-wash" },
  bad: { ink: "text-bad", wash: "bg-bad-wash" },
  idle: { ink: "text-soft", wash: "bg-sunk" },
};

/** The class of a tone's text colour. */
export function toneInk(tone: Tone): string {
  return tones[tone].ink;
}

/** A mark whose shape tells the tone without colour. */
export function Mark({ tone, size = 12 }: { tone: Tone; size?: number }) {
  const common = { width: size, height: size, viewBox: "0 0 12 12", "aria-hidden": true, className: `shrink-0 ${tones[tone].ink}` };
  if (tone === "ok")
    return (
      <svg {...common}>
        <circle cx="6" cy="6" r="4.5" fill="currentColor" />
      </svg>
    );
  if (tone === "warn")
    return (
      <svg {...common}>
        <path d="M6 .8 11.6 11H.4Z" fill="currentColor" />
      </svg>
    );
  if (tone === "bad")
    return (
      <svg {...common}>
        <path d="M2 2l8 8M10 2l-8 8" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" />
      </svg>
    );
  return (
    <svg {...common}>
      <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="1.6" strokeDasharray="2 2" />
    </svg>
  );
}

/** A state in words, with its mark. */
export function Pill({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={`inline-flex items-center gap-1.5 rounded-full px-2 py-0.5 text-[0.86rem] font-medium whitespace-nowrap ${tones[tone].wash} ${tones[tone].ink}`}>
      <Mark tone={tone} size={9} />
      {children}
    </span>
  );
}

type ButtonProps = Omit<ComponentProps<"button">, "disabled"> & { kind?: "main" | "plain" | "quiet" | "bad"; why?: string | undefined; busy?: boolean };

/** A button. With why it is off, stays focusable, and tells the reason. */
export function Button({ kind = "plain", why, busy, onClick, children, className = "", ...rest }: ButtonProps) {
  const off = why !== undefined || busy;
  return (
    <button
      type="button"
      {...rest}
      className={`btn ${kind === "plain" ? "" : `btn-${kind}`} ${className}`}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      title={why ?? rest.title}
      onClick={off ? (event) => event.preventDefault() : onClick}
    >
      {children}
      {why ? <span className="sr-only"> (not possible: {why})</span> : null}
    </button>
  );
}

/** A surface with a heading. */
export function Card({ title, aside, children, className = "", flush }: { title?: ReactNode; aside?: ReactNode; children: ReactNode; className?: string; flush?: boolean }) {
  return (
    <section className={`card min-w-0 overflow-hidden ${className}`}>
      {title ? (
        <header className="flex min-h-12 flex-wrap items-center justify-between gap-x-3 gap-y-1 px-4 py-2">
          <h2 className="text-[1.02rem] font-semibold">{title}</h2>
          {aside ? <div className="flex items-center gap-2 text-[0.9rem] text-faint">{aside}</div> : null}
        </header>
      ) : null}
      <div className={flush ? "" : title ? "px-4 pb-4" : "p-4"}>{children}</div>
    </section>
  );
}

/** One figure with its name. */
export function Tile({ label, value, note, tone }: { label: string; value: ReactNode; note?: ReactNode; tone?: Tone }) {
  return (
    <div className="card flex min-w-0 flex-col px-4 py-3">
      <span className="flex items-center gap-1.5 text-[0.9rem] text-faint">
        {label}
        {tone && tone !== "ok" ? <Mark tone={tone} size={9} /> : null}
      </span>
      <span className={`mt-0.5 text-[1.65rem] leading-tight font-semibold tracking-tight ${tone === "bad" ? "text-bad" : ""}`}>{value}</span>
      {note ? <span className="mt-0.5 text-[0.86rem] text-faint">{note}</span> : null}
    </div>
  );
}

/** A list of names with values. */
export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_1fr] gap-x-4 gap-y-1.5">
      {items.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-faint">{name}</dt>
          <dd className="min-w-0 break-words">{value ?? unknown}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A share as a bar, with its words beside it. */
export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  const colour = share > 0.92 ? "fill-bad" : share > 0.8 ? "fill-warn" : "fill-accent";
  return (
    <svg role="img" aria-label={label} viewBox="0 0 100 6" preserveAspectRatio="none" className="h-1.5 w-full rounded-full">
      <rect width="100" height="6" className="fill-line" />
      <rect width={share * 100} height="6" className={colour} />
    </svg>
  );
}

/** The current time, renewed each interval, for ages on the screen. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** A time as an age. Its title has the time itself, in the reader's zone and in UTC. */
export function Age({ at }: { at: string | null | undefined }) {
  const now = useNow(5000);
  if (!at) return <span className="text-faint">{unknown}</span>;
  const date = new Date(at);
  return (
    <time dateTime={at} title={`${date.toLocaleString(undefined, { timeZoneName: "short" })}\n${date.toUTCString()}`} className="whitespace-nowrap">
      {ago(at, Math.max(now, Date.now()))}
    </time>
  );
}

/** Text of a fixed width, for IDs and commands. */
export function Code({ children, title }: { children: ReactNode; title?: string }) {
  return (
    <code title={title} className={`font-mono text-[0.92em] ${typeof children === "string" && children.length <= 16 ? "whitespace-nowrap" : "break-all"}`}>
      {children}
    </code>
  );
}

/** A button that copies a text. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState<"no" | "yes" | "failed">("no");
  useEffect(() => {
    if (done === "no") return;
    const timer = setTimeout(() => setDone("no"), 1600);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("yes");
    } catch {
      setDone("failed"); // no permission, or no secure connection
    }
  };
  return (
    <Button kind="quiet" title={text} onClick={() => void copy()}>
      <svg width="13" height="13" viewBox="0 0 14 14" fill="none" stroke="currentColor" strokeWidth="1.4" aria-hidden="true">
        <rect x="4.5" y="4.5" width="8" height="8" rx="1.6" />
        <path d="M2.5 9.5h-.4a.9.9 0 0 1-.9-.9V2.1c0-.5.4-.9.9-.9h6.5c.5 0 .9.4.9.9v.4" />
      </svg>
      <span aria-live="polite">{done === "yes" ? "Copied" : done === "failed" ? "Select and copy by hand" : label}</span>
    </Button>
  );
}

/** A command that can be copied. */
export function Command({ children }: { children: string }) {
  return (
    <div className="flex min-w-0 items-center gap-2 rounded-lg border border-line bg-sunk py-1 pr-1 pl-3">
      <code className="min-w-0 grow text-left font-mono text-[0.92rem] wrap-anywhere whitespace-pre-wrap">{children}</code>
      <Copy text={children} />
    </div>
  );
}
