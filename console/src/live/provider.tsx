import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { base } from "../api/call";
import { eventNames, keysOf } from "./notices";
import { openSource } from "./source";
import { type LiveState, Stream } from "./stream";

interface Live {
  state: LiveState;
  toggle: () => void;
}

const LiveContext = createContext<Live>({ state: { kind: "connecting" }, toggle: () => undefined });

/** How the stream of events is, and the switch that pauses it. */
export function useLive(): Live {
  return useContext(LiveContext);
}

/** Notices within this time make one refetch, in milliseconds. */
const gather = 250;

/** Keeps the one stream of events while the session lasts. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<LiveState>({ kind: "connecting" });
  const stream = useRef<Stream>(undefined);

  useEffect(() => {
    const old = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refetch = () => {
      timer = undefined;
      const keys = [...old];
      old.clear();
      for (const key of keys) void client.invalidateQueries({ queryKey: [key] });
    };
    const made = new Stream({
      open: (after) => openSource(`${base}/events`, after),
      names: eventNames,
      onNotice: (name, data) => {
        const keys = keysOf(name, data);
        if (keys === "all") {
          void client.invalidateQueries();
          return;
        }
        for (const key of keys) old.add(key);
        if (old.size > 0) timer ??= setTimeout(refetch, gather);
      },
      onGap: () => void client.invalidateQueries(),
      onState: setState,
    });
    stream.current = made;
    made.start();
    const offline = () => made.lose();
    addEventListener("offline", offline);
    return () => {
      removeEventListener("offline", offline);
      clearTimeout(timer);
      made.stop();
    };
  }, [client]);

  // Without the stream the page asks by itself, every ten seconds.
  useEffect(() => {
    if (state.kind !== "reconnecting") return;
    const timer = setInterval(() => void client.invalidateQueries(), 10_000);
    return () => clearInterval(timer);
  }, [state.kind, client]);

  const live = useMemo(
    () => ({
      state,
      toggle: () => (state.kind === "paused" ? stream.current?.resume() : stream.current?.pause()),
    }),
    [state],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}
