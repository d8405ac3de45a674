// What the pages ask for, with the keys that the stream of events marks as old.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answered } from "./call";
import * as sdk from "./generated";

/** The filters and the order of the list of slices. */
export type SliceFilter = Omit<NonNullable<sdk.ListSlicesData["query"]>, "cursor" | "limit">;

/** What is searched for in the activity. */
export type ActivityQuery = Omit<NonNullable<sdk.ListActivityData["query"]>, "cursor" | "limit">;

/** One page of the activity. */
export function activityPage(query: ActivityQuery, cursor: string, limit: number, signal: AbortSignal) {
  return answered(sdk.listActivity({ signal, query: { ...query, limit, ...(cursor ? { cursor: Number(cursor) } : {}) } }));
}

/** How often, in milliseconds, work under way at the nodes is asked for: no event tells of its progress. */
const workEvery = 2000;

/** Every question that a page asks. */
export const queries = {
  overview: () => queryOptions({ queryKey: ["overview"], queryFn: ({ signal }) => answered(sdk.getOverview({ signal })) }),
  sites: () => queryOptions({ queryKey: ["sites"], queryFn: ({ signal }) => answered(sdk.listSites({ signal })) }),
  nodes: () => queryOptions({ queryKey: ["nodes"], queryFn: ({ signal }) => answered(sdk.listNodes({ signal })) }),
  node: (id: string) => queryOptions({ queryKey: ["nodes", id], queryFn: ({ signal }) => answered(sdk.getNode({ signal, path: { id } })) }),
  slice: (id: number) => queryOptions({ queryKey: ["slices", id], queryFn: ({ signal }) => answered(sdk.getSlice({ signal, path: { id } })) }),
  slices: (filter: SliceFilter) =>
    infiniteQueryOptions({
      queryKey: ["slices", "list", filter],
      queryFn: ({ signal, pageParam }) => answered(sdk.listSlices({ signal, query: { ...filter, limit: 500, ...(pageParam ? { cursor: pageParam } : {}) } })),
      initialPageParam: "",
      getNextPageParam: (last) => last.next || undefined,
      placeholderData: keepPreviousData,
    }),
  network: () => queryOptions({ queryKey: ["network"], queryFn: ({ signal }) => answered(sdk.getNetwork({ signal })) }),
  operations: () => queryOptions({ queryKey: ["operations"], queryFn: ({ signal }) => answered(sdk.listOperations({ signal })) }),
  /** query makes the search of its filter when it is sent: some filters depend on the time. */
  activity: <F extends object>(filter: F, query: (filter: F) => ActivityQuery, limit = 100) =>
    infiniteQueryOptions({
      queryKey: ["activity", filter, limit],
      queryFn: ({ signal, pageParam }) => activityPage(query(filter), pageParam, limit, signal),
      initialPageParam: "",
      getNextPageParam: (last) => last.next || undefined,
      placeholderData: keepPreviousData,
    }),
  drills: () => queryOptions({ queryKey: ["drills"], queryFn: ({ signal }) => answered(sdk.listDrills({ signal })) }),
  snapshots: () => queryOptions({ queryKey: ["snapshots"], queryFn: ({ signal }) => answered(sdk.listSnapshots({ signal })) }),
  schedules: () => queryOptions({ queryKey: ["schedules"], queryFn: ({ signal }) => answered(sdk.listSchedules({ signal })) }),
  scrubs: () => queryOptions({ queryKey: ["scrub"], queryFn: ({ signal }) => answered(sdk.listScrubs({ signal })), refetchInterval: (q) => (q.state.data?.items.some((s) => s.report?.running) ? workEvery : false) }),
  space: () => queryOptions({ queryKey: ["space"], queryFn: ({ signal }) => answered(sdk.getSpace({ signal })), refetchInterval: (q) => (q.state.data?.counting ? workEvery : false) }),
  clients: () => queryOptions({ queryKey: ["clients"], queryFn: ({ signal }) => answered(sdk.listClients({ signal })) }),
  users: () => queryOptions({ queryKey: ["users"], queryFn: ({ signal }) => answered(sdk.listUsers({ signal })) }),
  tokens: () => queryOptions({ queryKey: ["tokens"], queryFn: ({ signal }) => answered(sdk.listTokens({ signal })) }),
  experiments: () => queryOptions({ queryKey: ["experiments"], queryFn: ({ signal }) => answered(sdk.listExperiments({ signal })) }),
  experiment: (run: string) => queryOptions({ queryKey: ["experiments", run], queryFn: ({ signal }) => answered(sdk.getExperiment({ signal, path: { run } })) }),
  database: () => queryOptions({ queryKey: ["database"], queryFn: ({ signal }) => answered(sdk.getDatabase({ signal })) }),
  settings: () => queryOptions({ queryKey: ["settings"], queryFn: ({ signal }) => answered(sdk.listSettings({ signal })) }),
};

/** Questions about people and their sessions. */
export const peopleQueries = {
  accounts: () => queryOptions({ queryKey: ["accounts"], queryFn: ({ signal }) => answered(sdk.listAccounts({ signal })) }),
  sessions: (all: boolean) => queryOptions({ queryKey: ["sessions", all], queryFn: ({ signal }) => answered(sdk.listSessions({ signal, query: { all } })) }),
};
