import type { ReactNode } from "react";

export type Fact = [name: string, value: ReactNode];

/** Names and values; those without a value are left out. */
export function Facts({ facts }: { facts: Fact[] }): ReactNode {
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === "" || value === null || value === undefined || value === false ? null : (
          <FactRow key={name} name={name} value={value} />
        ),
      )}
    </dl>
  );
}

function FactRow({ name, value }: { name: string; value: ReactNode }): ReactNode {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
