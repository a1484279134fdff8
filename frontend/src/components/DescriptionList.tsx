import type { ReactNode } from "react";

export type DescriptionItem = [name: string, value: ReactNode];

/** A list of names and values. Items without a value are left out. */
export function DescriptionList({ items }: { items: DescriptionItem[] }): ReactNode {
  return (
    <dl className="description-list">
      {items.map(([name, value]) =>
        value === "" || value === null || value === undefined || value === false ? null : (
          <DescriptionRow key={name} name={name} value={value} />
        ),
      )}
    </dl>
  );
}

function DescriptionRow({ name, value }: { name: string; value: ReactNode }): ReactNode {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
