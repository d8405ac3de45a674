// Reads server-sent events with fetch. A browser's EventSource hides the
// comments that keep a silent stream alive, and sends no event's ID of the
// page's choice; both are needed to tell "nothing happens" from "not connected".
import type { Source } from "./stream";

type Listener = (event: MessageEvent<string>) => void;

/** Opens a stream of events at url, behind the event that after names. */
export function openSource(url: string, after: string): Source {
  const listeners = new Map<string, Listener[]>();
  const abort = new AbortController();
  const tell = (name: string, data = "", id = "") => {
    if (abort.signal.aborted) return;
    for (const f of listeners.get(name) ?? []) f(new MessageEvent(name, { data, lastEventId: id }));
  };
  void run(url, after, abort.signal, tell).catch(() => tell("error"));
  return {
    addEventListener: (name, f) => listeners.set(name, [...(listeners.get(name) ?? []), f]),
    close: () => abort.abort(),
  };
}

async function run(url: string, after: string, signal: AbortSignal, tell: (name: string, data?: string, id?: string) => void): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (after) headers["Last-Event-ID"] = after;
  const response = await fetch(url, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
  tell("open");
  const parser = new Parser(tell);
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the stream ended");
    parser.take(decoder.decode(value, { stream: true }));
  }
}

/** The most that one event may have; a longer one ends the stream. */
const longest = 1 << 20;

/** Cuts a stream's text into events. A comment is an event named "heartbeat". */
export class Parser {
  private rest = "";
  private name = "";
  private id = "";
  private data: string[] = [];

  constructor(private readonly tell: (name: string, data: string, id: string) => void) {}

  /** Takes the next part of the text, cut anywhere. */
  take(text: string): void {
    this.rest += text;
    if (this.rest.length > longest) throw new Error("an event is too long");
    let end = this.rest.indexOf("\n");
    while (end >= 0) {
      this.line(this.rest.slice(0, end).replace(/\r$/, ""));
      this.rest = this.rest.slice(end + 1);
      end = this.rest.indexOf("\n");
    }
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) this.tell(this.name || "message", this.data.join("\n"), this.id);
      this.name = "";
      this.data = [];
      return;
    }
    if (line.startsWith(":")) {
      this.tell("heartbeat", "{}", "");
      return;
    }
    const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
  }
}
