// What operators do to nodes, sites and slices, and the same as commands.
import { queryOptions } from "@tanstack/react-query";
import { answered, match, quote } from "./call";
import * as sdk from "./generated";
import { asProblem } from "./problem";

/** A node or a site that is drained. */
export type Drained = { kind: "node"; id: string } | { kind: "site"; name: string };

/** The name by which the API and the commands know it. */
export function nameOf(d: Drained): string {
  return d.kind === "node" ? d.id : d.name;
}

/** The path of its routes. */
export function pathOf(d: Drained): string {
  return `/${d.kind}s/${encodeURIComponent(nameOf(d))}`;
}

/** How a drain begins. */
type How = { dry_run?: boolean; force?: boolean };

/** Has slices leave a node or a site; with dry_run it only says what stands in the way. */
export function drain(d: Drained, body: How, signal?: AbortSignal): Promise<sdk.DrainVerdict> {
  const also = signal ? { signal } : {};
  return answered(d.kind === "node" ? sdk.drainNode({ path: { id: d.id }, body, ...also }) : sdk.drainSite({ path: { name: d.name }, body, ...also }));
}

/** Lets a node or a site take slices again. */
export function undrain(d: Drained): Promise<sdk.Changed> {
  return answered(d.kind === "node" ? sdk.undrainNode({ path: { id: d.id } }) : sdk.undrainSite({ path: { name: d.name } }));
}

/** What a drain would do. Nothing is changed. */
export const drainQuery = (d: Drained) =>
  queryOptions({
    queryKey: ["what-if", "drain", d.kind, nameOf(d)],
    queryFn: ({ signal }) => drain(d, { dry_run: true }, signal),
    // A node makes one prediction at a time.
    retry: (failures, error) => failures < 5 && asProblem(error).code === "overloaded",
    retryDelay: 500,
  });

/** A drain, or its end, as a command. */
export function drainCommand(d: Drained, what: "drain" | "undrain", force = false): string {
  return ["cartwheel", d.kind, what, nameOf(d), ...(force ? ["--force"] : [])].map(quote).join(" ");
}

/** What of a slice's policy becomes different. */
export type PolicyChange = sdk.SetSlicePolicyData["body"];

/** Gives a slice, whose row somebody saw at a revision, another policy. */
export function setPolicy(id: number, revision: number, body: PolicyChange): Promise<sdk.Changed> {
  return answered(sdk.setSlicePolicy({ path: { id }, headers: { "If-Match": match(revision) }, body }));
}

/** A change of a policy as a command. */
export function policyCommand(id: number, c: PolicyChange): string {
  const words = ["cartwheel", "policy", "set", String(id)];
  if (c.level !== undefined) words.push("--level", String(c.level));
  if (c.sites !== undefined) words.push("--sites", String(c.sites));
  if (c.home !== undefined) words.push("--home", c.home);
  return words.map(quote).join(" ");
}

/** A change of a site as a command. */
export function siteCommand(what: "add" | "set" | "remove", name: string, location?: string): string {
  return ["cartwheel", "site", what, name, ...(location !== undefined && (what === "set" || location) ? ["--location", location] : [])].map(quote).join(" ");
}
