import { useSyncExternalStore } from "react";

/** What the reader chose; system follows the device. */
export type Theme = "system" | "light" | "dark";

const key = "cartwheel.theme";
const listeners = new Set<() => void>();
const device = () => window.matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // storage is switched off
  }
}

function show(): void {
  const theme = chosen();
  const dark = theme === "dark" || (theme === "system" && device().matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  for (const f of listeners) f();
}

/** Keeps a choice on this device and shows it. */
export function setTheme(theme: Theme): void {
  try {
    if (theme === "system") localStorage.removeItem(key);
    else localStorage.setItem(key, theme);
  } catch {
    // Storage is switched off: the choice lasts until the page is left.
    document.documentElement.dataset["theme"] = theme === "dark" ? "dark" : "light";
    return;
  }
  show();
}

/** The theme that the reader chose. */
export function useTheme(): Theme {
  return useSyncExternalStore((f) => {
    listeners.add(f);
    const media = device();
    media.addEventListener("change", show);
    return () => {
      listeners.delete(f);
      media.removeEventListener("change", show);
    };
  }, chosen);
}
