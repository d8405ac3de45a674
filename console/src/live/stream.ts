// The one stream of events of this tab. Notices mark cached answers as old, so that
// what is on the screen is asked for again. A gap makes everything old.

/** How the stream is: see the README's "Live". */
export type LiveState =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "paused"; since: number }
  | { kind: "reconnecting"; since: number; attempt: number };

/** What the stream needs of a browser's EventSource. */
export interface Source {
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

/** Options of a Stream. */
export interface StreamOptions {
  /** Opens the connection; after is the last event's ID, or empty. */
  open: (after: string) => Source;
  /** The events' names that the API sends. */
  names: readonly string[];
  /** Called with each notice. */
  onNotice: (name: string, data: unknown) => void;
  /** Called when notices may have been missed. */
  onGap: () => void;
  /** Called whenever the state changes. */
  onState: (state: LiveState) => void;
  /** Silence after which the connection counts as lost, in milliseconds. */
  silence?: number;
}

/** The longest pause between two attempts, in milliseconds. */
const longestPause = 15_000;

/** A Stream keeps one connection, opens it again when it is lost, and ends with stop. */
export class Stream {
  private source: Source | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = "";
  private attempt = 0;
  private lostAt = 0;
  private readonly silence: number;

  constructor(private readonly options: StreamOptions) {
    this.silence = options.silence ?? 40_000;
  }

  /** Opens the connection. */
  start(): void {
    this.options.onState(this.lostAt ? { kind: "reconnecting", since: this.lostAt, attempt: this.attempt } : { kind: "connecting" });
    this.connect();
  }

  /** Closes the connection until resume. */
  pause(): void {
    this.drop();
    this.options.onState({ kind: "paused", since: Date.now() });
  }

  /** Opens it again. What happened meanwhile counts as missed. */
  resume(): void {
    this.options.onGap();
    this.attempt = 0;
    this.start();
  }

  /** Counts the connection as lost, because the device says that it has none. */
  lose(): void {
    if (this.source) this.lost();
  }

  /** Ends it. */
  stop(): void {
    this.drop();
  }

  private drop(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  private connect(): void {
    this.drop();
    const source = this.options.open(this.last);
    this.source = source;
    source.addEventListener("open", () => this.opened());
    source.addEventListener("error", () => this.lost());
    for (const name of this.options.names) {
      source.addEventListener(name, (event) => this.heard(name, event));
    }
    this.watch();
  }

  private opened(): void {
    const again = this.lostAt !== 0;
    this.attempt = 0;
    this.lostAt = 0;
    this.options.onState({ kind: "live" });
    if (again) this.options.onGap();
    this.watch();
  }

  private heard(name: string, event: MessageEvent<string>): void {
    if (event.lastEventId) this.last = event.lastEventId;
    this.watch();
    let data: unknown;
    try {
      data = JSON.parse(event.data);
    } catch {
      this.options.onGap(); // unreadable: as if it had been missed
      return;
    }
    this.options.onNotice(name, data);
  }

  private watch(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.lost(), this.silence);
  }

  private lost(): void {
    this.drop();
    if (!this.lostAt) this.lostAt = Date.now();
    this.attempt++;
    this.options.onState({ kind: "reconnecting", since: this.lostAt, attempt: this.attempt });
    this.timer = setTimeout(() => this.connect(), Math.min(500 * 2 ** (this.attempt - 1), longestPause));
  }
}
