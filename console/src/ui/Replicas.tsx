import type { Member, Slice } from "../api/model";
import type { Tone } from "./kit";

/** A slice's state in words and how well that is. */
export const sliceStates: Record<Slice["state"], { word: string; tone: Tone }> = {
  protected: { word: "Protected", tone: "ok" },
  under_protected: { word: "Too few copies", tone: "warn" },
  unavailable: { word: "Unavailable", tone: "bad" },
};

const words: Record<Member["state"], string> = { normal: "up to date", recovering: "catches up", migrating: "gets its state", failed: "does not take part" };

/** What a member is, in words. */
export function memberWord(m: Member): string {
  return m.active ? "active" : m.state === "normal" ? "standby" : `junior, ${words[m.state]}`;
}

/** One box for each member: filled is a copy, ringed the active, hatched catching up, crossed failed. */
export function ReplicaStrip({ members }: { members: Member[] }) {
  const text = members.map((m) => `${m.site} ${memberWord(m)}`).join(", ");
  return (
    <span role="img" aria-label={`Copies: ${text || "none"}`} title={text} className="inline-flex flex-wrap gap-1">
      {members.map((m) => (
        <span key={m.node} className={`inline-flex h-[1.45rem] items-center gap-1 rounded border px-1.5 text-[0.84rem] whitespace-nowrap ${boxes(m)}`}>
          {m.active ? <span className="size-1.5 rounded-full bg-current" /> : null}
          {m.state === "failed" ? "✕ " : m.state === "normal" ? "" : "↻ "}
          {m.site}
        </span>
      ))}
    </span>
  );
}

function boxes(m: Member): string {
  if (m.state === "failed") return "border-dashed border-bad text-bad";
  if (m.state !== "normal") return "border-dashed border-warn text-warn";
  return m.active ? "border-accent bg-accent-wash font-medium text-accent" : "border-line bg-sunk text-soft";
}
