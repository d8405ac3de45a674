// The tree of files, as the gateway serves it beside the API.
import { queryOptions } from "@tanstack/react-query";
import { z } from "zod";
import { csrfMark, quote } from "./call";
import { asProblem, Problem, problemOf } from "./problem";

const listing = z.array(z.object({ name: z.string(), size: z.number().optional(), mod_time: z.string().optional(), is_dir: z.boolean().default(false), is_symlink: z.boolean().default(false) }));

/** One name of a folder. */
export type Entry = z.infer<typeof listing>[number];

const member = z.object({ node: z.string(), site: z.string(), state: z.string().optional() });

const properties = z.object({
  path: z.string(),
  is_folder: z.boolean(),
  mode: z.string(),
  uid: z.number(),
  gid: z.number(),
  size_bytes: z.number(),
  links: z.number(),
  modified_at: z.string(),
  changed_at: z.string(),
  made_at: z.string(),
  cues: z.string(),
  where: z.object({
    object: z.string(),
    slice: z.number(),
    epoch: z.number(),
    version: z.number(),
    policy: z.object({ home: z.string(), level: z.number() }),
    active: member,
    standbys: z.array(member),
    read: z.object({ node: z.string(), site: z.string(), why: z.string() }),
  }),
  as: z.object({ uid: z.number(), read: z.boolean(), write: z.boolean(), search: z.boolean() }),
});

/** What the gateway knows of a file or folder. */
export type Properties = z.infer<typeof properties>;

/** A path of the tree as a word of a command, for a mount that stands in the folder of the shell. */
export function mounted(path: string): string {
  return quote(`cartwheel${path}`);
}

/** The path of a name in a folder. */
export function inside(folder: string, name: string): string {
  return `${folder.replace(/\/$/, "")}/${name}`;
}

/** A path of the tree as an address of the gateway. */
export function fileAddress(path: string): string {
  return below("/files", path);
}

function below(root: string, path: string): string {
  return `${root}${path.split("/").map(encodeURIComponent).join("/")}`;
}

async function ask(address: string, signal: AbortSignal): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(address, { headers: { Accept: "application/json" }, credentials: "same-origin", signal });
  } catch (error) {
    throw asProblem(error);
  }
  if (!response.ok) throw await problemOf(response);
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) {
    throw new Problem({ title: "", status: 404, detail: "This gateway serves no files of the tree", code: "not_supported", remedy: "Name a tree in the gateway's Caddyfile, or mount the cluster." });
  }
  return response.json();
}

async function list(path: string, signal: AbortSignal): Promise<Entry[]> {
  const folder = path.endsWith("/") ? path : `${path}/`;
  return listing.nullable().parse(await ask(fileAddress(folder), signal)) ?? [];
}

/** The names of a folder. */
export const listQuery = (path: string) => queryOptions({ queryKey: ["files", path], queryFn: ({ signal }) => list(path, signal), retry: false });

/** What is known of a file or folder. */
export const propertiesQuery = (path: string) =>
  queryOptions({ queryKey: ["properties", path], queryFn: async ({ signal }) => properties.parse(await ask(below("/properties", path), signal)), retry: false });

/** Stores a file of this computer in a folder of the tree, under its name. fetch tells no progress, so this is an XMLHttpRequest. */
export function upload(folder: string, file: File, progress: (share: number) => void, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const cancelled = () => failed(asProblem(new Error("the upload was cancelled: nothing was stored")));
    if (signal.aborted) return cancelled();
    const request = new XMLHttpRequest();
    request.open("PUT", fileAddress(inside(folder, file.name)));
    request.setRequestHeader("X-Cartwheel-CSRF", csrfMark());
    request.upload.onprogress = (e) => progress(e.total > 0 ? e.loaded / e.total : 1);
    request.onload = () => {
      if (request.status === 201) done();
      else problemOf(new Response(request.responseText, { status: request.status })).then(failed, failed);
    };
    request.onerror = () => failed(asProblem(new Error("the upload broke off")));
    request.onabort = cancelled;
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** Sends a change of one path; more are its headers. */
async function change(method: "PATCH" | "MKCOL" | "MOVE" | "DELETE", path: string, more: Record<string, string> = {}, body?: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch(fileAddress(path), { method, headers: { "X-Cartwheel-CSRF": csrfMark(), ...more }, credentials: "same-origin", ...(body === undefined ? {} : { body }) });
  } catch (error) {
    throw asProblem(error);
  }
  if (!response.ok) throw await problemOf(response);
}

/** Gives a file or folder a mode, which is octal. */
export const changeMode = (path: string, mode: string) => change("PATCH", path, { "Content-Type": "application/json" }, JSON.stringify({ mode }));

/** Makes an empty folder. */
export const makeFolder = (path: string) => change("MKCOL", path);

/** Gives a file or folder another path. Only with replace may a file be there, which is gone then. */
export const move = (path: string, to: string, replace: boolean) => change("MOVE", path, { Destination: fileAddress(to), Overwrite: replace ? "T" : "F" });

/** Deletes a file or an empty folder. */
export const remove = (path: string) => change("DELETE", path);

/** Why a name cannot be one of the tree; undefined: the gateway has the word. */
export function nameTrouble(name: string): string | undefined {
  if (name === "") return "write a name";
  if (name === "." || name === "..") return `${name} is no name`;
  if (name.includes("/")) return "a name has no slash";
  return new TextEncoder().encode(name).length > 255 ? "a name has at most 255 bytes" : undefined;
}

/** Why a path cannot be one of the tree; undefined: the gateway has the word. */
export function pathTrouble(path: string): string | undefined {
  if (!path.startsWith("/") || path.endsWith("/")) return "a path begins with a slash and ends with a name";
  return path.slice(1).split("/").map(nameTrouble).find((t) => t !== undefined);
}

/** A mode with one bit turned over, octal in four digits. */
export function turned(octal: string, bit: number): string {
  return (Number.parseInt(octal, 8) ^ bit).toString(8).padStart(4, "0");
}

/** Why a mode cannot be set, where its set-id and sticky bits have to stay; undefined: it can. */
export function modeTrouble(octal: string, now: string): string | undefined {
  if (!/^[0-7]{3,4}$/.test(octal)) return "a mode is three or four octal digits, like 0640";
  const special = Number.parseInt(octal, 8) & 0o7000;
  if (special !== 0 && special !== (Number.parseInt(now, 8) & 0o7000)) return "the set-id and sticky bits stay as they are: change those at a mount";
  return undefined;
}

/** Bits of a mode as ls shows them, without the type: "rwxr-xr-x". */
export function modeWords(octal: string): string {
  const mode = Number.parseInt(octal, 8);
  const letters = [6, 3, 0].map((at) => {
    const special = mode & (at === 6 ? 0o4000 : at === 3 ? 0o2000 : 0o1000);
    const runs = (mode >> at) & 1;
    const mark = at === 0 ? "t" : "s";
    return `${(mode >> at) & 4 ? "r" : "-"}${(mode >> at) & 2 ? "w" : "-"}${special ? (runs ? mark : mark.toUpperCase()) : runs ? "x" : "-"}`;
  });
  return letters.join("");
}

/** Why Windows cannot show a name as it is; undefined: it can. */
export function windowsTrouble(name: string): string | undefined {
  const bad = [...name].find((c) => c < " " || '<>:"\\|?*'.includes(c));
  if (bad !== undefined) return bad < " " ? "it has a control character" : `it has the character ${bad}`;
  if (/[. ]$/.test(name)) return "it ends in a dot or a space";
  if (/^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)/i.test(name)) return "Windows keeps this name for a device";
  return undefined;
}
