// The beginning of a file of the tree, as text.
import { queryOptions } from "@tanstack/react-query";
import { asProblem, Problem, problemOf } from "./problem";
import { fileAddress } from "./tree";

/** How much of a text a preview shows, in bytes. */
export const previewBytes = 64 << 10;

/** The beginning of a file. */
export interface Beginning {
  /** undefined: the file is no text. */
  text: string | undefined;
  /** There is more behind it. */
  cut: boolean;
}

/** Whether browsers show a name's file as a picture. */
export function isPicture(name: string): boolean {
  return /\.(png|jpe?g|gif|webp|svg)$/i.test(name);
}

/** Bytes as text; undefined: they are none. A character that is cut off at the end is left out. */
export function textOf(bytes: Uint8Array, cut: boolean): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
  } catch {
    return undefined;
  }
}

/** Reads a body to a limit, and lets the rest be. */
export async function beginning(response: Response, limit: number): Promise<Beginning> {
  const bytes = new Uint8Array(limit);
  const reader = response.body?.getReader();
  let filled = 0;
  let cut = Number(/\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "")?.[1] ?? 0) > limit;
  for (;;) {
    const part = await reader?.read();
    if (part?.value === undefined) break;
    const room = part.value.subarray(0, limit - filled);
    bytes.set(room, filled);
    filled += room.length;
    if (room.length < part.value.length) {
      cut = true; // the server took no range
      await reader?.cancel();
      break;
    }
  }
  return { text: textOf(bytes.subarray(0, filled), cut), cut };
}

async function read(path: string, signal: AbortSignal): Promise<Beginning> {
  let response: Response;
  try {
    response = await fetch(fileAddress(path), { headers: { Range: `bytes=0-${previewBytes - 1}` }, credentials: "same-origin", redirect: "manual", signal });
  } catch (error) {
    throw asProblem(error);
  }
  if (response.type === "opaqueredirect") throw new Problem({ title: "", status: 400, detail: `${path} is a folder`, code: "is_directory", remedy: "Open it, and choose a file in it." });
  if (!response.ok) throw await problemOf(response);
  return beginning(response, previewBytes);
}

/** The beginning of a file. */
export const beginningQuery = (path: string) => queryOptions({ queryKey: ["preview", path], queryFn: ({ signal }) => read(path, signal), retry: false });
