// Shows an error in the place of a component that fails; the rest of the page stays.

import { Component, type ReactNode } from "react";
import { ServerUnreachable } from "../apiClient";
import { t } from "../language";
import { EmptyState } from "./EmptyState";

/** Matches the messages of browsers about a script that cannot be loaded. */
const LOADING_ERROR = /dynamically imported module|module script failed|preload CSS/i;

interface Props {
  /** When this key changes, the children are rendered again. */
  resetKey: string;
  children: ReactNode;
}

export class ErrorBoundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override componentDidUpdate(previous: Props): void {
    if (previous.resetKey !== this.props.resetKey && this.state.error) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    const text = LOADING_ERROR.test(error.message)
      ? new ServerUnreachable().message
      : t("This part cannot be shown: {error}", { error: error.message });
    return <EmptyState text={text} />;
  }
}
