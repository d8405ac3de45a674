import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, Link, Outlet, redirect } from "@tanstack/react-router";
import { z } from "zod";
import { asProblem } from "./api/problem";
import { sessionQuery } from "./api/session";
import { draftSchema } from "./pages/draft";
import { Overview } from "./pages/Overview";
import { activitySchema } from "./pages/range";
import { SignIn } from "./pages/SignIn";
import { Page } from "./shell/Page";
import { Shell } from "./shell/Shell";
import { Card } from "./ui/kit";
import { Empty, Failure } from "./ui/states";

const text = z.string().max(128).optional().catch(undefined);
const flag = z.boolean().optional().catch(undefined);
const runNames = z
  .array(z.string().min(1).max(255))
  .max(5)
  .transform((list) => [...new Set(list)])
  .optional()
  .catch(undefined);
const sorted = z.object({ sort: text, descending: flag });

const root = createRootRouteWithContext<{ queries: QueryClient }>()({ component: Outlet });

/** Everything that a person sees who is signed in. */
const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  beforeLoad: async ({ context, location }) => {
    try {
      await context.queries.ensureQueryData(sessionQuery());
    } catch (error) {
      if (asProblem(error).status === 401) throw redirect({ to: "/sign-in", search: { to: location.href } });
      // Any other failure shows on the page itself, where it can be tried again.
    }
  },
});

const page = <P extends string>(path: P) => ({ getParentRoute: () => shell, path }) as const;

const routes = [
  createRoute({
    ...page("/"),
    validateSearch: z.object({ view: z.enum(["map", "table"]).default("map").catch("map"), site: text }),
    component: Overview,
  }),
  createRoute({ ...page("/what-if"), validateSearch: draftSchema, component: lazyRouteComponent(() => import("./pages/WhatIf"), "WhatIf") }),
  createRoute({
    ...page("/network"),
    validateSearch: z.object({
      tab: z.enum(["matrix", "coordinates"]).default("matrix").catch("matrix"),
      mode: z.enum(["measured", "predicted", "difference"]).default("measured").catch("measured"),
      by: z.enum(["site", "node"]).default("site").catch("site"),
    }),
    component: lazyRouteComponent(() => import("./pages/Network"), "Network"),
  }),
  createRoute({ ...page("/sites"), validateSearch: sorted, component: lazyRouteComponent(() => import("./pages/Sites"), "Sites") }),
  createRoute({ ...page("/sites/$name"), component: lazyRouteComponent(() => import("./pages/Sites"), "SiteDetail") }),
  createRoute({ ...page("/nodes"), validateSearch: sorted, component: lazyRouteComponent(() => import("./pages/Nodes"), "Nodes") }),
  createRoute({ ...page("/nodes/$id"), component: lazyRouteComponent(() => import("./pages/Nodes"), "NodeDetail") }),
  createRoute({
    ...page("/slices"),
    validateSearch: z.object({
      state: z.enum(["protected", "under_protected", "unavailable"]).optional().catch(undefined),
      site: text,
      home: text,
      node: text,
      q: z.coerce.string().regex(/^\d{1,8}$/).optional().catch(undefined),
      sort: z.enum(["id", "epoch", "revision", "level", "missing"]).optional().catch(undefined),
      descending: flag,
    }),
    component: lazyRouteComponent(() => import("./pages/Slices"), "Slices"),
  }),
  createRoute({ ...page("/slices/$id"), component: lazyRouteComponent(() => import("./pages/Slices"), "SliceDetail") }),
  createRoute({ ...page("/operations"), component: lazyRouteComponent(() => import("./pages/Operations"), "Operations") }),
  createRoute({ ...page("/activity"), validateSearch: activitySchema, component: lazyRouteComponent(() => import("./pages/Activity"), "Activity") }),
  createRoute({ ...page("/drills"), component: lazyRouteComponent(() => import("./pages/Drills"), "Drills") }),
  createRoute({ ...page("/snapshots"), component: lazyRouteComponent(() => import("./pages/Snapshots"), "Snapshots") }),
  createRoute({ ...page("/clients"), component: lazyRouteComponent(() => import("./pages/Clients"), "Clients") }),
  createRoute({ ...page("/tree"), validateSearch: z.object({ path: z.string().max(4096).default("/").catch("/"), show: z.string().max(4096).optional().catch(undefined), preview: z.string().max(4096).optional().catch(undefined) }), component: lazyRouteComponent(() => import("./pages/Files"), "Files") }),
  createRoute({ ...page("/experiments"), validateSearch: z.object({ q: text, runs: runNames, compare: flag, column: text }), component: lazyRouteComponent(() => import("./pages/Experiments"), "Experiments") }),
  createRoute({ ...page("/experiments/$run"), component: lazyRouteComponent(() => import("./pages/Experiments"), "ExperimentDetail") }),
  createRoute({ ...page("/database"), component: lazyRouteComponent(() => import("./pages/Database"), "Database") }),
  createRoute({ ...page("/settings"), validateSearch: z.object({ tab: z.enum(["people", "users", "tokens", "node"]).default("people").catch("people") }), component: lazyRouteComponent(() => import("./pages/Settings"), "Settings") }),
] as const;

const signIn = createRoute({ getParentRoute: () => root, path: "/sign-in", validateSearch: z.object({ to: z.string().max(2048).optional().catch(undefined), failed: text }), component: SignIn });

function NoPage() {
  return (
    <Page title="No such page">
      <Card>
        <Empty title="Nothing is at this address" action={<Link to="/" className="btn">Overview</Link>} />
      </Card>
    </Page>
  );
}

function Broken({ error, reset }: { error: unknown; reset: () => void }) {
  return (
    <Page title="This page failed">
      <Card>
        <Failure error={error} what="this page" retry={reset} />
      </Card>
    </Page>
  );
}

/** The router of one session of the console. */
export function makeRouter(queries: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([shell.addChildren(routes), signIn]),
    context: { queries },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    defaultNotFoundComponent: NoPage,
    defaultErrorComponent: Broken,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
