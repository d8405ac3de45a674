// Answers /api/v1 in the development server, and before a build that is looked at,
// with the cluster of cluster.ts.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";
import { availability, drills, freshness, network, nodes, now, schedules, scrubs, slice, sliceCount, sites, snapshots, space } from "./cluster.ts";

type Answer = object | undefined;

const list = (items: object[], total = items.length, next?: string) => ({ items, total, revision: 4211, freshness, ...(next ? { next } : {}) });

// All slices, made once: to make them for each request takes longer than a node takes to answer.
const allSlices = Array.from({ length: sliceCount }, (_, i) => slice(i + 1));

function slices(query: URLSearchParams): Answer {
  const from = Number(query.get("cursor") ?? 0);
  const limit = Number(query.get("limit") ?? 100);
  const wanted = (s: ReturnType<typeof slice>) =>
    (!query.get("state") || s.state === query.get("state")) &&
    (!query.get("home") || s.policy.home === query.get("home")) &&
    (!query.get("q") || String(s.id).startsWith(query.get("q")!)) &&
    (!query.get("site") || s.members.some((m) => m.site === query.get("site"))) &&
    (!query.get("node") || s.members.some((m) => m.node === query.get("node")));
  const all = allSlices.filter(wanted);
  const next = from + limit < all.length ? String(from + limit) : undefined;
  return list(all.slice(from, from + limit), all.length, next);
}

const overview = {
  cluster: "mock",
  healthy: false,
  sentence: "Site nairobi does not answer; 7,142 slices have too few copies.",
  causes: [
    { kind: "node_silent", severity: "critical", text: "The only node at nairobi does not answer.", subject: `nodes/${freshness.unreachable[0]!.node}` },
    { kind: "slices_under", severity: "warning", text: "7,142 slices have fewer copies than their policy asks for.", subject: "slices" },
  ],
  counts: { sites: 7, sites_up: 6, nodes: 15, nodes_up: 14, slices: sliceCount, slices_protected: 92_858, slices_under_protected: 7_142, slices_unavailable: 0, sessions: 128 },
  capacity: { capacity_bytes: 6e13, used_bytes: 2.1e13, free_bytes: 3.9e13, nodes: 15 },
  feature: { level: 2, known: 2 },
  versions: [{ version: "0.1.0", nodes: nodes.map((n) => n.id) }],
  served_by: { node: nodes[0]!.id, site: "amsterdam", version: "0.1.0" },
  revision: 4211,
  freshness,
};

const fixed: Record<string, Answer> = {
  "/session": { account: "mock", role: "administrator", csrf: "x", has_password: true, degraded: false },
  "/session/ways": { password: true },
  "/overview": overview,
  "/sites": list(sites),
  "/nodes": list(nodes),
  "/operations": list([{ kind: "copy", slice: 41, node: nodes[4]!.id, site: nodes[4]!.site, text: "copies slice 41 to boston", total_bytes: 3.2e9, behind: 412 }]),
  "/activity": list(Array.from({ length: 12 }, (_, i) => ({ number: 90 - i, recorded_at: now, who: "mock", action: i % 2 ? "site.set" : "slice.hand-over", subject: i % 2 ? "sites/tokyo" : `slices/${i + 1}`, revision: 4211 - i }))),
  "/drills": list(drills),
  "/snapshots": list(snapshots),
  "/schedules": list(schedules),
  "/scrub": list(scrubs),
  "/space": space,
  "/clients": list([{ node: nodes[0]!.id, site: "amsterdam", user: "anna", name: "laptop:/home/anna/cartwheel", from_site: "amsterdam" }]),
  "/users": list([{ name: "anna", key: nodes[0]!.id, uid: 1000, gids: [1000], trusted_host: false, role: "user", revision: 9 }]),
  "/tokens": list([]),
  "/accounts": list([{ name: "mock", role: "administrator", disabled: false, has_password: true, created_at: now, revision: 8 }]),
  "/sessions": list([]),
  "/database": { reachable: true, name: "embedded", single_point: true, durable: true, revision: 4211, as_of_at: now },
  "/settings": list([{ key: "site", value: "amsterdam", is_default: false }, { key: "failed_after", value: "30m0s", is_default: true }]),
};

function answer(path: string, query: URLSearchParams): Answer {
  if (path === "/slices") return slices(query);
  if (path === "/network") return network();
  const [, kind, id = ""] = path.split("/");
  if (kind === "slices") {
    const s = slice(Number(id));
    return { ...s, freshness, why_here: s.members.map((m) => ({ node: m.node, site: m.site, text: m.active ? "it is the active, at the slice's home site" : "the policy asks for 3 copies" })), live: { as_of_at: now, serving: true, commit: 8812, objects: 3100, stored_bytes: 3.2e9 } };
  }
  if (kind === "nodes") return nodes.find((n) => n.id === decodeURIComponent(id));
  return fixed[path];
}

/** Answers a question that a body asks. */
async function predict(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = "";
  for await (const part of request) text += String(part);
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(availability(JSON.parse(text) as Parameters<typeof availability>[0])));
}

function serve(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const url = new URL(request.url ?? "/", "http://mock");
  if (!url.pathname.startsWith("/api/v1/")) return next();
  if (url.pathname === "/api/v1/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(": hello\n\n");
    const beat = setInterval(() => response.write(": alive\n\n"), 15_000);
    response.on("close", () => clearInterval(beat));
    return;
  }
  if (request.method === "POST" && url.pathname === "/api/v1/availability") {
    predict(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
    return;
  }
  const found = request.method === "GET" ? answer(url.pathname.slice("/api/v1".length), url.searchParams) : undefined;
  const problem = { type: "about:blank", title: "Not Found", status: 404, detail: "the mock does not answer this", code: "not_found", request_id: "mock" };
  response.writeHead(found ? 200 : 404, { "Content-Type": found ? "application/json" : "application/problem+json" });
  response.end(JSON.stringify(found ?? problem));
}

/** The mock as a plugin of the development and the preview server. No build contains it. */
export function mockApi(): Plugin {
  return {
    name: "cartwheel-mock",
    configureServer(server) {
      server.middlewares.use(serve);
    },
    configurePreviewServer(server) {
      server.middlewares.use(serve);
    },
  };
}
