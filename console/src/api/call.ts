// The one way to the API: same origin, the session's cookie, problems as errors.
import { client } from "./generated/client.gen";
import { asProblem, Problem, problemOf } from "./problem";

/** The API's base path. */
export const base = "/api/v1";

/** Called when the session is over. */
let onSignedOut: () => void = () => undefined;

/** Sets what happens when a call finds no session. */
export function whenSignedOut(f: () => void): void {
  onSignedOut = f;
}

/** What a session's changes carry, so that no other site's page can make them. */
let csrf: string | undefined;

/** Keeps the session's mark for changes. */
export function setCsrf(mark: string | undefined): void {
  csrf = mark;
}

/** The session's mark for changes that go past this module, such as uploads. */
export function csrfMark(): string {
  return csrf ?? "";
}

/** Adds what each change carries. */
function marked(request: Request): Request {
  if (request.method === "GET") return request;
  if (csrf) request.headers.set("X-Cartwheel-CSRF", csrf);
  if (!request.headers.has("Idempotency-Key")) request.headers.set("Idempotency-Key", newKey());
  return request;
}

/** A name for one change. randomUUID is missing where the page came by plain http. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** The header that ties a change to the row's revision that its author saw. */
export function match(revision: number): string {
  return `"${revision}"`;
}

/** Sends a request and answers with what succeeded; all else is thrown as a Problem. */
async function checked(request: Request): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw asProblem(error);
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (problem.status === 401 && !new URL(request.url).pathname.endsWith("/session")) onSignedOut();
    throw problem;
  }
  const type = response.headers.get("Content-Type") ?? "";
  if (response.status !== 204 && type.includes("html")) {
    // A file server answers unknown paths with the console's own page.
    throw new Problem({ title: "", status: 502, detail: "this address serves no API", code: "unreachable", remedy: "Open the console at the gateway's address." });
  }
  return response;
}

client.setConfig({ baseUrl: globalThis.location?.origin ?? "", credentials: "same-origin", fetch: (input, init) => checked(marked(new Request(input, init))) });

/** The data of a generated call. Its failures are thrown as Problems. */
export async function answered<T>(call: Promise<{ data: T | undefined; error: unknown }>): Promise<NonNullable<T>> {
  const { data, error } = await call;
  if (data === undefined || data === null) throw asProblem(error ?? new Error("the answer is empty"));
  return data;
}

/** Waits for a generated change that answers nothing. Its failures are thrown as Problems. */
export async function made(call: Promise<{ error: unknown }>): Promise<void> {
  const { error } = await call;
  if (error !== undefined) throw asProblem(error);
}

/** The same call as a curl command, for scripts. */
export function asCurl(path: string, c?: { method: "POST" | "PUT" | "DELETE"; body?: unknown; revision?: number }): string {
  const url = `${location.origin}${base}${path}`;
  const parts = ["curl -sS -H \"Authorization: Bearer $CARTWHEEL_TOKEN\""];
  if (c) parts.push(`-X ${c.method}`, '-H "Idempotency-Key: $(uuidgen)"');
  if (c?.revision !== undefined) parts.push(`-H 'If-Match: "${c.revision}"'`);
  if (c?.body !== undefined) parts.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(c.body))}`);
  parts.push(quote(url));
  return parts.join(" ");
}

/** A word as a shell takes it. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
