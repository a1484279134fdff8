import type { ReactNode } from "react";

/** A text in the place of content that does not exist or is not loaded yet. */
export function EmptyState({ text }: { text: string }): ReactNode {
  return (
    <p className="empty-state" role="status">
      {text}
    </p>
  );
}
