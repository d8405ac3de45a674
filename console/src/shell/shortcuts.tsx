import { useEffect, useLayoutEffect, useRef } from "react";
import { useLive } from "../live/provider";
import { Dialog } from "../ui/Dialog";
import { Button } from "../ui/kit";
import { allPlaces } from "./nav";

interface Handlers {
  search: () => void;
  sheet: () => void;
  go: (path: string) => void;
}

/** Whether single keys are switched off on this device (WCAG 2.1.4). */
export function keysAreOff(): boolean {
  try {
    return localStorage.getItem("cartwheel.keys") === "off";
  } catch {
    return false; // storage is switched off: the default holds
  }
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** How soon the letter has to follow g, in milliseconds. */
const together = 1200;

/**
 * Listens for the keys that work on every page, from the moment that a page is
 * drawn: an effect after the drawing would miss a key that comes at once.
 */
export function useShortcuts(handlers: Handlers): void {
  const now = useRef(handlers);
  now.current = handlers;
  useLayoutEffect(() => {
    let prefix: number | undefined; // when g was pressed, if the last key was g
    const press = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
        e.preventDefault();
        now.current.search();
        return;
      }
      if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || keysAreOff() || document.querySelector('[role="dialog"]')) return;
      const isSecond = prefix !== undefined && e.timeStamp - prefix < together;
      prefix = undefined;
      if (isSecond) {
        const place = allPlaces.find((p) => p.key === e.key);
        if (place) now.current.go(place.path);
        return;
      }
      if (e.key === "g") prefix = e.timeStamp;
      else if (e.key === "?") now.current.sheet();
      else if (e.key === "/") focusFilter(e);
      else if (e.key === "j" || e.key === "k") moveRow(e.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function focusFilter(e: KeyboardEvent): void {
  const filter = document.querySelector<HTMLElement>("[data-filter]");
  if (!filter) return;
  e.preventDefault();
  filter.focus();
}

/** Moves the focus to the next or the previous row's link. */
function moveRow(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("main tbody th a, main [data-row-link]")];
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement as HTMLElement);
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))]?.focus();
}

/** Space pauses and resumes the stream, where no control has the focus. */
export function usePauseKey(): void {
  const { toggle } = useLive();
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key !== " " || e.target !== document.body || keysAreOff()) return;
      e.preventDefault();
      toggle();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [toggle]);
}

const keys: [string, string][] = [
  ["Ctrl K", "Search and commands"],
  ["?", "This list"],
  ["/", "Go to the filter"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open"],
  ["Space", "Pause and resume live changes"],
  ["Esc", "Close"],
];

/** All shortcuts, and the switch that turns single keys off. */
export function ShortcutSheet({ open, setOpen }: { open: boolean; setOpen: (open: boolean) => void }) {
  usePauseKey();
  return (
    <Dialog title="Keyboard" open={open} setOpen={setOpen}>
      <dl className="grid grid-cols-1 gap-x-8 gap-y-1.5 sm:grid-cols-2">
        {[...keys, ...allPlaces.map((p): [string, string] => [`g ${p.key}`, p.name])].map(([key, what]) => (
          <div key={key} className="flex justify-between gap-4">
            <dt>{what}</dt>
            <dd>
              <kbd className="rounded border border-line bg-sunk px-1.5 font-mono text-[0.86rem]">{key}</kbd>
            </dd>
          </div>
        ))}
      </dl>
      <label className="mt-4 flex items-center gap-2 border-t border-line pt-3 text-soft">
        <input type="checkbox" defaultChecked={!keysAreOff()} onChange={(e) => localStorage.setItem("cartwheel.keys", e.target.checked ? "on" : "off")} />
        Single keys work on this device
      </label>
      <Button className="mt-4" onClick={() => setOpen(false)}>Close</Button>
    </Dialog>
  );
}
