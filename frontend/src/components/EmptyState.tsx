import type { ReactNode } from "react";

/** Said in the place of what there is not. */
export function EmptyState({ text }: { text: string }): ReactNode {
  return (
    <p className="nothing" role="status">
      {text}
    </p>
  );
}
