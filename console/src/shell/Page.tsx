import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";

interface PageProps {
  title: string;
  /** One line that says what the page is for. */
  purpose?: ReactNode;
  /** The pages above this one. */
  trail?: { name: string; to: string }[];
  actions?: ReactNode;
  children: ReactNode;
}

/** The frame of every page: where it is, what it is for, what can be done. */
export function Page({ title, purpose, trail = [], actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Cartwheel`;
  }, [title]);
  return (
    <div className="mx-auto flex w-full max-w-[90rem] flex-col gap-5 px-4 pt-5 pb-12 sm:px-7">
      <header className="flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          {trail.length > 0 ? (
            <nav aria-label="Breadcrumb" className="mb-1">
              <ol className="flex gap-1.5 text-[0.9rem] text-faint">
                {trail.map((t, i) => (
                  <li key={t.to} className="flex gap-1.5">
                    <Link to={t.to} className="link">
                      {t.name}
                    </Link>
                    {i < trail.length - 1 ? <span aria-hidden="true">/</span> : null}
                  </li>
                ))}
              </ol>
            </nav>
          ) : null}
          <h1 className="text-[1.7rem] leading-tight font-semibold tracking-tight break-words">{title}</h1>
          {purpose ? <p className="mt-1 max-w-prose text-soft">{purpose}</p> : null}
        </div>
        {actions ? <div className="flex flex-wrap items-center gap-2">{actions}</div> : null}
      </header>
      {children}
    </div>
  );
}
