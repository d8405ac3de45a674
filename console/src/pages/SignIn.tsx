import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { oidcPath, signIn, waysQuery } from "../api/session";
import { Wheel } from "../shell/Shell";
import { Button } from "../ui/kit";
import { ChangeFailure } from "../ui/states";

/** Takes the one-time secret out of the address, so that no history keeps it. */
function takeLink(): string | undefined {
  const link = new URLSearchParams(location.hash.slice(1)).get("link") ?? undefined;
  if (link) history.replaceState(null, "", location.pathname + location.search);
  return link;
}

/** The provider's name for people. */
function hostOf(issuer: string): string {
  return URL.canParse(issuer) ? new URL(issuer).host : issuer;
}

/** Sign-in with a one-time link, or with a name and a password. */
export function SignIn() {
  const { to, failed } = useSearch({ from: "/sign-in" });
  const client = useQueryClient();
  const navigate = useNavigate();
  const [link] = useState(takeLink);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const tried = useRef(false);
  const issuer = useQuery(waysQuery()).data?.issuer;
  const enter = async (body: Parameters<typeof signIn>[0]) => {
    setBusy(true);
    setError(undefined);
    try {
      client.setQueryData(["session"], await signIn(body));
      await client.invalidateQueries();
      await navigate({ to: to?.startsWith("/") && !to.startsWith("//") ? to : "/" });
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · Cartwheel";
    if (link && !tried.current) {
      tried.current = true; // it works once: never send it twice
      void enter({ link });
    }
  });
  return (
    <main className="grid min-h-dvh place-items-center px-4 py-10">
      <div className="w-full max-w-[23rem]">
        <div className="mb-6 flex items-center gap-3 text-[1.5rem] font-semibold tracking-tight">
          <Wheel size={34} />
          Cartwheel
        </div>
        <form
          className="card flex flex-col gap-4 p-6"
          onSubmit={(e) => {
            e.preventDefault();
            if (name && password) void enter({ name, password });
          }}
        >
          <h1 className="text-[1.2rem] font-semibold">Sign in</h1>
          {busy && link ? <p role="status" className="text-soft">Using the one-time link…</p> : null}
          {error ? <ChangeFailure error={error} /> : null}
          {failed === "oidc" && !error ? <p role="alert" className="rounded-lg bg-bad-wash px-3 py-2 text-bad">The provider signed nobody in whom this cluster knows. Ask an administrator to link your account to it.</p> : null}
          <label className="flex flex-col gap-1">
            Name
            <input className="field" autoComplete="username" autoFocus value={name} onChange={(e) => setName(e.target.value)} />
          </label>
          <label className="flex flex-col gap-1">
            Password
            <input className="field" type="password" autoComplete="current-password" value={password} onChange={(e) => setPassword(e.target.value)} />
          </label>
          <Button type="submit" kind="main" busy={busy} why={!name || !password ? "write a name and a password" : undefined} onClick={() => undefined}>
            Sign in
          </Button>
          {issuer ? <a className="btn justify-center" href={oidcPath}>Sign in with {hostOf(issuer)}</a> : null}
        </form>
        <p className="mt-4 px-1 text-[0.92rem] text-soft">No account yet? The one-time link that the cluster printed at its start opens this page signed in.</p>
      </div>
    </main>
  );
}
