import { Menu } from "@base-ui/react/menu";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { made } from "../api/call";
import { signOut } from "../api/generated";
import { queries } from "../api/queries";
import { useSession } from "../api/session";
import { clock, span } from "../format";
import { useLive } from "../live/provider";
import { Mark, Pill, type Tone, useNow } from "../ui/kit";
import { setTheme, type Theme, useTheme } from "./theme";

interface TopBarProps {
  openNav: () => void;
  openSearch: () => void;
  openSheet: () => void;
}

/** The bar above each page. */
export function TopBar({ openNav, openSearch, openSheet }: TopBarProps) {
  return (
    <header className="sticky top-0 z-20 flex h-[3.4rem] items-center gap-2 border-b border-line bg-page/90 px-3 backdrop-blur sm:px-5">
      <button type="button" className="btn btn-quiet px-2 lg:hidden" onClick={openNav} aria-label="Open the navigation">
        <svg width="18" height="18" viewBox="0 0 18 18" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" aria-hidden="true">
          <path d="M3 5h12M3 9h12M3 13h12" />
        </svg>
      </button>
      <Cluster />
      <button
        type="button"
        onClick={openSearch}
        aria-keyshortcuts="Control+K Meta+K"
        className="ml-auto flex h-8 items-center gap-2 rounded-lg border border-line bg-surface px-2.5 text-faint hover:border-edge sm:w-60"
      >
        <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" aria-hidden="true">
          <circle cx="6" cy="6" r="4.200" />
          <path d="m9.300 9.300 3.200 3.200" />
        </svg>
        <span className="sr-only grow text-left sm:not-sr-only">Search</span>
        <kbd aria-hidden="true" className="hidden font-sans text-[0.8rem] sm:inline">Ctrl K</kbd>
      </button>
      <LiveSwitch />
      <Account openSheet={openSheet} />
    </header>
  );
}

function Cluster() {
  const overview = useQuery(queries.overview());
  const o = overview.data;
  const tone: Tone = !o ? "idle" : o.healthy ? "ok" : o.causes.some((c) => c.severity === "critical") ? "bad" : "warn";
  const word = !o ? (overview.error ? "Unknown" : "Looking") : o.healthy ? "Healthy" : tone === "bad" ? "Needs help" : "Look here";
  return (
    <div className="flex min-w-0 items-center gap-2.5">
      <span className="hidden max-w-48 truncate font-medium md:inline" title={o ? `Cluster ${o.cluster}` : undefined}>
        {o?.cluster ?? "Cluster"}
      </span>
      <Link to="/" className="rounded-full" title={o?.sentence}>
        <Pill tone={tone}>{word}</Pill>
      </Link>
    </div>
  );
}

function LiveSwitch() {
  const { state, toggle } = useLive();
  const now = useNow(1000);
  const [tone, text, spoken]: [Tone, string, string] =
    state.kind === "live"
      ? ["ok", "Live", "Live: changes show by themselves"]
      : state.kind === "paused"
        ? ["idle", `Paused ${clock(new Date(state.since).toISOString())}`, "Paused: what is shown does not change"]
        : state.kind === "connecting"
          ? ["idle", "Connecting", "Connecting"]
          : now - state.since > 20_000
            ? ["bad", `Stale since ${clock(new Date(state.since).toISOString())}`, "The connection is lost: what is shown may be old"]
            : ["warn", `Reconnecting ${span(now - state.since)}`, "Reconnecting"];
  return (
    <>
      <button type="button" onClick={toggle} aria-pressed={state.kind !== "paused"} title={`${spoken}. Space pauses and resumes.`} className="btn btn-quiet gap-1.5 px-2">
        <Mark tone={tone} size={9} />
        <span className={state.kind === "live" ? "hidden sm:inline" : "max-w-28 truncate sm:max-w-none"}>{text}</span>
      </button>
      <span role={tone === "bad" ? "alert" : "status"} className="sr-only">
        {spoken}
      </span>
    </>
  );
}

const themes: [Theme, string][] = [
  ["system", "As the device"],
  ["light", "Light"],
  ["dark", "Dark"],
];

const item = "flex min-h-8 w-full cursor-default items-center justify-between gap-6 rounded-md px-2.5 outline-none select-none data-[highlighted]:bg-sunk";

function Account({ openSheet }: { openSheet: () => void }) {
  const session = useSession();
  const theme = useTheme();
  const client = useQueryClient();
  const navigate = useNavigate();
  const leave = async () => {
    await made(signOut()).catch(() => undefined); // an ended session is what is wanted
    client.clear();
    await navigate({ to: "/sign-in" });
  };
  const name = session.data?.account ?? "";
  return (
    <Menu.Root>
      <Menu.Trigger aria-label={`Account${name ? ` of ${name}` : ""}`} className="grid size-8 shrink-0 place-items-center rounded-full border border-line bg-accent-wash text-[0.9rem] font-semibold text-accent uppercase">
        {name.slice(0, 1) || "·"}
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner sideOffset={8} align="end" className="z-50">
          <Menu.Popup className="w-60 rounded-xl border border-line bg-raised p-1.5 shadow-[var(--float)] outline-none">
            {name ? (
              <div className="px-2.5 py-1.5">
                <p className="font-semibold">{name}</p>
                <p className="text-faint capitalize">{session.data?.role}</p>
              </div>
            ) : null}
            <Menu.RadioGroup value={theme} onValueChange={(value: Theme) => setTheme(value)} className="border-t border-line py-1.5">
              <p className="px-2.5 py-1 text-[0.86rem] text-faint">Appearance</p>
              {themes.map(([value, label]) => (
                <Menu.RadioItem key={value} value={value} className={item}>
                  {label}
                  <Menu.RadioItemIndicator>✓</Menu.RadioItemIndicator>
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            <div className="border-t border-line pt-1.5">
              <Menu.Item className={item} onClick={openSheet}>
                Keyboard <kbd className="font-sans text-faint">?</kbd>
              </Menu.Item>
              <Menu.Item className={item} onClick={() => void leave()}>
                Sign out
              </Menu.Item>
            </div>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
