import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, base, setCsrf } from "./call";
import * as sdk from "./generated";

/** What an account may do; each role may do all that the ones before it may. */
export const roles = ["viewer", "operator", "administrator"] as const;
export type Role = (typeof roles)[number];

/** Keeps what each change of the session has to send, and passes the session on. */
function entered(session: sdk.SessionView): sdk.SessionView {
  setCsrf(session.csrf);
  return session;
}

/** How often, in milliseconds, a session is asked for that may only read until the configuration store answers again. */
const degradedEvery = 2_000;

/** Asks who is signed in; a 401 means nobody is. */
export const sessionQuery = () =>
  queryOptions({
    queryKey: ["session"],
    queryFn: ({ signal }) => answered(sdk.getSession({ signal })).then(entered),
    retry: false,
    staleTime: 60_000,
    refetchInterval: (query) => (query.state.data?.degraded ? degradedEvery : false),
  });

/** Signs in with a name and a password, or with the token of a one-time link. */
export function signIn(body: sdk.SignIn): Promise<sdk.SessionView> {
  return answered(sdk.signIn({ body })).then(entered);
}

/** Asks how people may sign in. */
export const waysQuery = () => queryOptions({ queryKey: ["ways"], queryFn: ({ signal }) => answered(sdk.getSignInWays({ signal })), staleTime: 60_000 });

/** The address that leads to the OIDC provider. */
export const oidcPath = `${base}/session/oidc`;

/** Who is signed in. */
export function useSession() {
  return useQuery(sessionQuery());
}

/** Why the person may not do what needs a role; undefined: they may. */
export function useLacks(needs: Role): string | undefined {
  const session = useSession();
  if (!session.data) return session.error ? "it is not known who you are" : undefined;
  if (session.data.degraded && needs !== "viewer") return "the configuration store does not answer: you may only read meanwhile";
  return roles.indexOf(session.data.role) >= roles.indexOf(needs) ? undefined : `needs the role ${needs}; you are ${session.data.role}`;
}
