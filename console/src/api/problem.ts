import { z } from "zod";

const shape = z.object({
  title: z.string().default(""),
  status: z.number().default(0),
  detail: z.string().default(""),
  code: z.string().default(""),
  subject: z.string().optional(),
  remedy: z.string().optional(),
  request_id: z.string().optional(),
  fields: z.array(z.object({ location: z.string(), message: z.string() })).nullish(),
});

/** What failed, as the API's problem documents (RFC 9457) say it. */
export class Problem extends Error {
  /** The HTTP status; 0: no answer came. */
  readonly status: number;
  /** The kind of failure, such as "not_found"; "unreachable" where no answer came. */
  readonly code: string;
  readonly subject: string | undefined;
  /** What to do now, in the node's words. */
  readonly remedy: string | undefined;
  /** Names the request in the node's log. */
  readonly requestId: string | undefined;
  /** What is wrong with single values of the request. */
  readonly fields: { location: string; message: string }[];

  constructor(document: z.infer<typeof shape>) {
    super(document.detail || document.title || "The request failed.");
    this.name = "Problem";
    this.status = document.status;
    this.code = document.code;
    this.subject = document.subject;
    this.remedy = document.remedy;
    this.requestId = document.request_id;
    this.fields = document.fields ?? [];
  }
}

/** Reads the problem of an answer that failed, whatever stands in its body. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => "");
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined; // not from the API: a proxy's page, or nothing
  }
  const parsed = shape.safeParse(body);
  if (parsed.success && (parsed.data.detail || parsed.data.title)) {
    return new Problem({ ...parsed.data, status: response.status });
  }
  return new Problem({
    title: response.statusText,
    status: response.status,
    detail: `The server answered ${response.status}${response.statusText ? ` (${response.statusText})` : ""} without a reason.`,
    code: response.status >= 500 ? "unreachable" : "other",
    remedy: response.status >= 500 ? "Check that a node of the cluster is up, then try again." : undefined,
  });
}

/** Any thrown value as a Problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({
    title: "No answer",
    status: 0,
    detail: `No answer came: ${detail}`,
    code: "unreachable",
    remedy: "Check the connection to the cluster. Nothing was changed by reading.",
  });
}
