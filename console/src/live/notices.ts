// What each notice of the stream makes old.
import { z } from "zod";

/** The events' names that the API sends, and the parser's own. */
export const eventNames = ["revision", "audit", "status", "gap", "heartbeat"] as const;

const revision = z.object({ tables: z.array(z.string()) });

/** Which answers depend on which table, by the first part of their key. */
const byTable: Record<string, string[]> = {
  cluster: ["overview", "settings"],
  sites: ["sites", "overview", "network", "what-if"],
  nodes: ["nodes", "sites", "overview", "network", "operations", "what-if"],
  slices: ["slices", "overview", "sites", "operations", "what-if"],
  users: ["users", "tokens"],
  records: ["accounts", "sessions", "snapshots", "schedules"],
};

/** The first parts of the keys that a notice makes old; "all" where it does not say. */
export function keysOf(name: string, data: unknown): string[] | "all" {
  switch (name) {
    case "heartbeat":
      return [];
    case "audit":
      return ["activity", "drills", "snapshots", "schedules"]; // records make no notice of their own
    case "status":
      return ["overview", "nodes", "sites", "network", "slices", "operations", "database", "clients", "what-if", "scrub", "space"];
    case "revision": {
      const parsed = revision.safeParse(data);
      if (!parsed.success) return "all";
      const keys = new Set<string>();
      for (const table of parsed.data.tables) {
        const old = byTable[table];
        if (!old) return "all";
        for (const key of old) keys.add(key);
      }
      return [...keys];
    }
    default:
      return "all";
  }
}
