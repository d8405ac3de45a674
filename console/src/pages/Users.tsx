import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answered, match } from "../api/call";
import * as sdk from "../api/generated";
import type { Token, User } from "../api/model";
import { queries } from "../api/queries";
import { useLacks } from "../api/session";
import { shortId } from "../format";
import { Age, Button, Card, Code, Command, Pill } from "../ui/kit";
import { ChangeFailure, Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";
import { Confirmed } from "./People";

/** The keys that may use the cluster. */
export function Users() {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const users = useQuery(queries.users());
  const after = { onSettled: () => client.invalidateQueries({ queryKey: ["users"] }) };
  const role = useMutation({ ...after, mutationFn: (u: User) => answered(sdk.setUserRole({ path: { name: u.name }, headers: { "If-Match": match(u.revision) }, body: { role: u.role === "user" ? "administrator" : "user" } })) });
  const revoke = useMutation({ ...after, mutationFn: (u: User) => answered(sdk.revokeUser({ path: { name: u.name }, headers: { "If-Match": match(u.revision) } })) });
  const error = role.error ?? revoke.error;
  const columns: Column<User>[] = [
    { id: "name", name: "User", value: (u) => u.name, cell: (u) => u.name },
    { id: "key", name: "Key", value: (u) => u.key, cell: (u) => <Code title={u.key}>{shortId(u.key)}</Code> },
    { id: "uid", name: "uid", figure: true, value: (u) => u.uid, cell: (u) => u.uid },
    { id: "gids", name: "Groups", cell: (u) => u.gids.join(", ") || <span className="text-faint">none</span> },
    { id: "host", name: "Trusted host", value: (u) => String(u.trusted_host), cell: (u) => (u.trusted_host ? <Pill tone="warn">acts as any uid</Pill> : <span className="text-faint">no</span>) },
    { id: "role", name: "Role", value: (u) => u.role, cell: (u) => u.role },
    {
      id: "do",
      name: "",
      cell: (u) => (
        <span className="flex justify-end gap-1">
          <Button kind="quiet" why={lacks} onClick={() => role.mutate(u)}>Make {u.role === "user" ? "administrator" : "user"}</Button>
          <Confirmed kind="Revoke" name={u.name} why={lacks} run={() => revoke.mutate(u)} />
        </span>
      ),
    },
  ];
  return (
    <>
      {error ? <ChangeFailure error={error} /> : null}
      <Card flush>
        <Shown query={users} what="the users">{(list) => (list.items.length === 0 ? <Empty title="No user yet" action={<Command>cartwheel user add NAME --key KEY --uid 1000 --gid 1000</Command>} /> : <Table label="Users" columns={columns} rows={list.items} rowKey={(u) => u.name} />)}</Shown>
        <NewUser lacks={lacks} />
      </Card>
    </>
  );
}

function NewUser({ lacks }: { lacks: string | undefined }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [key, setKey] = useState("");
  const [uid, setUid] = useState("1000");
  const [gids, setGids] = useState("1000");
  const add = useMutation({ mutationFn: () => answered(sdk.addUser({ body: { name, key: key.trim(), uid: Number(uid), gids: gids.match(/\d+/g)?.map(Number) ?? [], role: "user" } })), onSuccess: () => { setName(""); setKey(""); }, onSettled: () => client.invalidateQueries({ queryKey: ["users"] }) });
  const why = lacks ?? (!name ? "write a name" : !key ? "paste the key" : !/^\d+$/.test(uid) ? "the uid is a number" : !/^\d+(\s*[ ,]\s*\d+)*$/.test(gids) ? "the groups are numbers, as 1000, 100" : undefined);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (!why) add.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3">
      <input className="field" aria-label="Name of the new user" placeholder="New user…" maxLength={63} value={name} onChange={(e) => setName(e.target.value.trim())} />
      <input className="field min-w-64 grow" aria-label="The user's key" placeholder="Key, as `cartwheel key` prints it, or ssh-ed25519 AAAA…" maxLength={1024} value={key} onChange={(e) => setKey(e.target.value)} />
      <label className="flex items-center gap-1.5 text-soft">uid <input className="field w-20" inputMode="numeric" value={uid} onChange={(e) => setUid(e.target.value)} /></label>
      <label className="flex items-center gap-1.5 text-soft">groups <input className="field w-28" value={gids} onChange={(e) => setGids(e.target.value)} /></label>
      <Button type="submit" why={why} busy={add.isPending} onClick={() => undefined}>Add</Button>
      {add.error ? <ChangeFailure error={add.error} /> : null}
    </form>
  );
}

const lives: [string, number][] = [["1 hour", 3_600_000], ["1 day", 86_400_000], ["7 days", 604_800_000]];

/** Tokens by which nodes join. */
export function Tokens() {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const tokens = useQuery(queries.tokens());
  const sites = useQuery(queries.sites()).data?.items ?? [];
  const [site, setSite] = useState("");
  const [life, setLife] = useState(86_400_000);
  const after = { onSettled: () => client.invalidateQueries({ queryKey: ["tokens"] }) };
  const add = useMutation({ ...after, mutationFn: () => answered(sdk.addToken({ body: { site, expires_ms: life } })) });
  const revoke = useMutation({ ...after, mutationFn: (t: Token) => answered(sdk.revokeToken({ path: { name: t.name }, headers: { "If-Match": match(t.revision) } })) });
  const columns: Column<Token>[] = [
    { id: "name", name: "Token", value: (t) => t.name, cell: (t) => <Code>{t.name}</Code> },
    { id: "site", name: "For the site", value: (t) => t.site, cell: (t) => t.site },
    { id: "ends", name: "Ends", value: (t) => t.expires_at, cell: (t) => (t.expired ? <Pill tone="idle">ended</Pill> : <Age at={t.expires_at} />) },
    { id: "do", name: "", cell: (t) => <span className="flex justify-end"><Confirmed kind="Take back" name={t.name} why={lacks} run={() => revoke.mutate(t)} /></span> },
  ];
  const why = lacks ?? (site ? undefined : "choose a site");
  return (
    <>
      {add.error ?? revoke.error ? <ChangeFailure error={add.error ?? revoke.error} /> : null}
      {add.data ? (
        <Card title={`On the new machine of ${add.data.site}`} aside={<>shown once; ends <Age at={add.data.expires_at} /></>}>
          <Command>{`cartwheeld join ${add.data.token}`}</Command>
        </Card>
      ) : null}
      <Card flush>
        <Shown query={tokens} what="the tokens">{(list) => (list.items.length === 0 ? <Empty title="No token is out">Make one for each machine that is to join.</Empty> : <Table label="Tokens" columns={columns} rows={list.items} rowKey={(t) => t.name} />)}</Shown>
        <form className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3" onSubmit={(e) => { e.preventDefault(); if (!why) add.mutate(); }}>
          <select className="field" aria-label="Site of the token" value={site} onChange={(e) => setSite(e.target.value)}>
            <option value="">Site…</option>
            {sites.map((s) => <option key={s.name}>{s.name}</option>)}
          </select>
          <select className="field" aria-label="For how long it is good" value={life} onChange={(e) => setLife(Number(e.target.value))}>
            {lives.map(([text, ms]) => <option key={ms} value={ms}>{text}</option>)}
          </select>
          <Button type="submit" why={why} busy={add.isPending} onClick={() => undefined}>Make a token</Button>
        </form>
      </Card>
    </>
  );
}
