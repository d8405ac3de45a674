type NumberFieldProps = { label: string; unit: string; value: number | undefined; set: (v: number | undefined) => void; placeholder?: string };

/** A number with its unit; undefined where it is empty. */
export function NumberField({ label, unit, value, set, placeholder }: NumberFieldProps) {
  return (
    <label className="flex items-center justify-between gap-3 text-soft">
      {label}
      <span className="flex items-center gap-1.5">
        <input type="number" min="0" step="any" className="field w-24 text-right" placeholder={placeholder} value={value ?? ""} onChange={(e) => set(Number.isFinite(e.target.valueAsNumber) && e.target.value !== "" ? e.target.valueAsNumber : undefined)} />
        {unit ? <span className="w-13 text-[0.9rem] whitespace-nowrap text-faint">{unit}</span> : null}
      </span>
    </label>
  );
}
