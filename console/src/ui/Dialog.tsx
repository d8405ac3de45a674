import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";

/** A dialog with a title. It keeps the focus, and Esc closes it. */
export function Dialog({ title, open, setOpen, children }: { title: ReactNode; open: boolean; setOpen: (open: boolean) => void; children: ReactNode }) {
  return (
    <Base.Root open={open} onOpenChange={setOpen}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-50 bg-black/40" />
        <Base.Popup className="fixed top-[12vh] left-1/2 z-50 max-h-[76vh] w-[min(34rem,calc(100vw-2rem))] -translate-x-1/2 overflow-y-auto rounded-xl border border-line bg-raised p-5 shadow-[var(--float)]">
          <Base.Title className="mb-3 text-[1.2rem] font-semibold wrap-anywhere">{title}</Base.Title>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
