import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answered, made, match } from "../api/call";
import * as sdk from "../api/generated";
import { peopleQueries } from "../api/queries";
import { type Role, roles, useLacks, useSession } from "../api/session";
import { Age, Button, Card, Command, Pill } from "../ui/kit";
import { ChangeFailure, Empty, Shown } from "../ui/states";
import { type Column, Table } from "../ui/Table";

/** The accounts of the console and their sessions. */
export function People() {
  const lacks = useLacks("administrator");
  const client = useQueryClient();
  const accounts = useQuery(peopleQueries.accounts());
  const [link, setLink] = useState<sdk.Link>();
  const after = { onSettled: () => client.invalidateQueries({ queryKey: ["accounts"] }) };
  const role = useMutation({ ...after, mutationFn: (x: { account: sdk.Account; role: Role }) => answered(sdk.changeAccount({ path: { name: x.account.name }, headers: { "If-Match": match(x.account.revision) }, body: { role: x.role } })) });
  const disable = useMutation({ ...after, mutationFn: (a: sdk.Account) => answered(sdk.changeAccount({ path: { name: a.name }, headers: { "If-Match": match(a.revision) }, body: { disabled: !a.disabled } })) });
  const remove = useMutation({ ...after, mutationFn: (a: sdk.Account) => made(sdk.removeAccount({ path: { name: a.name }, headers: { "If-Match": match(a.revision) } })) });
  const makeLink = useMutation({ mutationFn: (name: string) => answered(sdk.makeLink({ path: { name } })), onSuccess: setLink });
  const error = role.error ?? disable.error ?? remove.error ?? makeLink.error;
  const columns: Column<sdk.Account>[] = [
    { id: "name", name: "Name", value: (a) => a.name, cell: (a) => a.name },
    {
      id: "role",
      name: "Role",
      value: (a) => roles.indexOf(a.role),
      cell: (a) => (
        <select aria-label={`Role of ${a.name}`} className="field" value={a.role} disabled={lacks !== undefined || role.isPending} title={lacks} onChange={(e) => role.mutate({ account: a, role: e.target.value as Role })}>
          {roles.map((r) => (
            <option key={r}>{r}</option>
          ))}
        </select>
      ),
    },
    { id: "state", name: "State", value: (a) => String(a.disabled), cell: (a) => <Pill tone={a.disabled ? "idle" : "ok"}>{a.disabled ? "Disabled" : "May sign in"}</Pill> },
    { id: "by", name: "Signs in by", cell: (a) => (a.issuer ? a.issuer : a.has_password ? "password" : "one-time link") },
    { id: "created", name: "Since", value: (a) => a.created_at, cell: (a) => <Age at={a.created_at} /> },
    {
      id: "do",
      name: "",
      cell: (a) => (
        <span className="flex justify-end gap-1">
          <Button kind="quiet" why={lacks} onClick={() => makeLink.mutate(a.name)}>Make a link</Button>
          <Button kind="quiet" why={lacks} onClick={() => disable.mutate(a)}>{a.disabled ? "Enable" : "Disable"}</Button>
          <Confirmed kind="Remove" name={a.name} why={lacks} run={() => remove.mutate(a)} />
        </span>
      ),
    },
  ];
  return (
    <>
      {error ? <ChangeFailure error={error} /> : null}
      {link ? (
        <Card title={`A link that signs ${link.account} in, once`} aside={<>ends <Age at={link.expires_at} /></>}>
          <Command>{new URL(link.path, location.origin).href}</Command>
        </Card>
      ) : null}
      <Card title="Accounts" flush>
        <Shown query={accounts} what="the accounts">{(list) => (list.items.length === 0 ? <Empty title="No account yet" /> : <Table label="Accounts" columns={columns} rows={list.items} rowKey={(a) => a.name} />)}</Shown>
        <NewAccount lacks={lacks} />
      </Card>
      <div className="grid grid-cols-1 items-start gap-5 xl:grid-cols-[minmax(0,1fr)_24rem]">
        <Sessions />
        <Password />
      </div>
    </>
  );
}

/** A button that asks once more before it does what cannot be undone. */
export function Confirmed({ kind, name, why, run }: { kind: string; name: string; why: string | undefined; run: () => void }) {
  const [asked, setAsked] = useState(false);
  if (!asked) return <Button kind="quiet" className="btn-bad" why={why} onClick={() => setAsked(true)}>{kind}</Button>;
  return (
    <span className="flex gap-1">
      <Button kind="bad" autoFocus onClick={() => { setAsked(false); run(); }}>{kind} {name}</Button>
      <Button kind="quiet" onClick={() => setAsked(false)}>Keep</Button>
    </span>
  );
}

function NewAccount({ lacks }: { lacks: string | undefined }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const add = useMutation({ mutationFn: () => answered(sdk.addAccount({ body: { name, role } })), onSuccess: () => setName(""), onSettled: () => client.invalidateQueries({ queryKey: ["accounts"] }) });
  const why = lacks ?? (name ? undefined : "write a name");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (!why) add.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3">
      <input className="field" aria-label="Name of the new account" placeholder="New account…" value={name} maxLength={63} onChange={(e) => setName(e.target.value.trim().toLowerCase())} />
      <select className="field" aria-label="Its role" value={role} onChange={(e) => setRole(e.target.value as Role)}>
        {roles.map((r) => <option key={r}>{r}</option>)}
      </select>
      <Button type="submit" why={why} busy={add.isPending} onClick={() => undefined}>Add</Button>
      {add.error ? <ChangeFailure error={add.error} /> : null}
    </form>
  );
}

function Sessions() {
  const all = useLacks("administrator") === undefined;
  const client = useQueryClient();
  const sessions = useQuery(peopleQueries.sessions(all));
  const end = useMutation({ mutationFn: (id: string) => made(sdk.revokeSession({ path: { id } })), onSettled: () => client.invalidateQueries({ queryKey: ["sessions"] }) });
  const columns: Column<sdk.SessionItem>[] = [
    { id: "account", name: "Account", value: (s) => s.account, cell: (s) => <>{s.account} {s.current ? <Pill tone="ok">this one</Pill> : null}</> },
    { id: "from", name: "From", value: (s) => s.address, cell: (s) => <span title={s.agent}>{s.address || "not known"}</span> },
    { id: "seen", name: "Used", value: (s) => s.seen_at, cell: (s) => <Age at={s.seen_at} /> },
    { id: "ends", name: "Ends", value: (s) => s.expires_at, cell: (s) => <Age at={s.expires_at} /> },
    { id: "do", name: "", cell: (s) => (s.current ? null : <Button kind="quiet" onClick={() => end.mutate(s.id)}>End</Button>) },
  ];
  return (
    <Card title="Sessions" flush>
      {end.error ? <ChangeFailure error={end.error} /> : null}
      <Shown query={sessions} what="the sessions">{(list) => (list.items.length === 0 ? <Empty title="No session">Programs with a node&apos;s token have none.</Empty> : <Table label="Sessions" columns={columns} rows={list.items} rowKey={(s) => s.id} />)}</Shown>
    </Card>
  );
}

function Password() {
  const session = useSession().data;
  const client = useQueryClient();
  const [old, setOld] = useState("");
  const [next, setNext] = useState("");
  const set = useMutation({
    mutationFn: () => answered(sdk.changePassword({ body: { ...(session?.has_password ? { old } : {}), new: next } })),
    onSuccess: () => { setOld(""); setNext(""); },
    onSettled: () => client.invalidateQueries({ queryKey: ["session"] }),
  });
  const why = next.length < 12 ? "12 characters at least" : undefined;
  return (
    <Card title="Your password">
      <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (!why) set.mutate(); }}>
        <input hidden readOnly autoComplete="username" value={session?.account ?? ""} />
        {session?.has_password ? <label className="flex flex-col gap-1">Old one<input className="field" type="password" autoComplete="current-password" value={old} onChange={(e) => setOld(e.target.value)} /></label> : <p className="text-soft">You have none yet: you came by a one-time link.</p>}
        <label className="flex flex-col gap-1">New one<input className="field" type="password" autoComplete="new-password" value={next} onChange={(e) => setNext(e.target.value)} /></label>
        {set.error ? <ChangeFailure error={set.error} /> : set.isSuccess ? <p role="status" className="text-ok">Set. All other sessions have ended.</p> : null}
        <Button type="submit" why={why} busy={set.isPending} onClick={() => undefined}>Set it</Button>
      </form>
    </Card>
  );
}
