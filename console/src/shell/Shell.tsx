import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { LiveProvider } from "../live/provider";
import { CommandMenu } from "./CommandMenu";
import { places } from "./nav";
import { ShortcutSheet, useShortcuts } from "./shortcuts";
import { TopBar } from "./TopBar";

/** The frame around all pages of a person who is signed in. */
export function Shell() {
  const [open, setOpen] = useState(false);
  const [search, setSearch] = useState(false);
  const [sheet, setSheet] = useState(false);
  const navigate = useNavigate();
  useShortcuts({ search: () => setSearch(true), sheet: () => setSheet(true), go: (path) => void navigate({ to: path }) });
  return (
    <LiveProvider>
      <a href="#main" className="sr-only z-50 rounded-lg bg-accent px-3 py-2 text-accent-ink focus:not-sr-only focus:fixed focus:top-2 focus:left-2">
        Skip to the page
      </a>
      <div className="flex min-h-dvh">
        <SideNav open={open} close={() => setOpen(false)} />
        <div className="flex min-w-0 grow flex-col lg:pl-[13.5rem]">
          <TopBar openNav={() => setOpen(true)} openSearch={() => setSearch(true)} openSheet={() => setSheet(true)} />
          <main id="main" tabIndex={-1} className="min-w-0 grow outline-none">
            <Outlet />
          </main>
        </div>
      </div>
      <CommandMenu open={search} setOpen={setSearch} />
      <ShortcutSheet open={sheet} setOpen={setSheet} />
    </LiveProvider>
  );
}

/** The cluster's wheel: one hub and the sites around it. */
export function Wheel({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" fill="none" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" className="text-accent" aria-hidden="true">
      <circle cx="16" cy="16" r="12" />
      <circle cx="16" cy="16" r="3" fill="currentColor" />
      <path d="M16 4v9M16 19v9M5.6 10l7.8 4.500M18.600 17.500l7.800 4.500M5.600 22l7.800-4.500M18.600 14.500l7.800-4.500" />
    </svg>
  );
}

function SideNav({ open, close }: { open: boolean; close: () => void }) {
  useEffect(() => {
    if (!open) return;
    const key = (e: KeyboardEvent) => e.key === "Escape" && close();
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [open, close]);
  return (
    <>
      {open ? <div className="fixed inset-0 z-30 bg-black/40 lg:hidden" onClick={close} aria-hidden="true" /> : null}
      <nav
        aria-label="Main"
        className={`fixed inset-y-0 left-0 z-40 w-[13.5rem] flex-col overflow-y-auto border-r border-line bg-surface px-3 py-4 lg:flex lg:bg-page ${open ? "flex" : "hidden"}`}
      >
        <Link to="/" onClick={close} className="mb-5 flex items-center gap-2.5 px-2.5 text-[1.15rem] font-semibold tracking-tight">
          <Wheel />
          Cartwheel
        </Link>
        <div className="flex flex-col gap-4">
          {places.map((group) => (
            <ul key={group[0]!.path} className="flex flex-col gap-0.5">
              {group.map((p) => (
                <li key={p.path}>
                  <Link
                    to={p.path}
                    onClick={close}
                    activeOptions={{ exact: p.path === "/", includeSearch: false }}
                    className="flex min-h-8 items-center gap-2.5 rounded-lg px-2.5 text-soft hover:bg-sunk hover:text-ink"
                    activeProps={{ className: "bg-accent-wash !text-accent font-medium" }}
                  >
                    <svg width="17" height="17" viewBox="0 0 20 20" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
                      <path d={p.icon} />
                    </svg>
                    {p.name}
                  </Link>
                </li>
              ))}
            </ul>
          ))}
        </div>
      </nav>
    </>
  );
}
