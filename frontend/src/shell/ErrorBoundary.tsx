// A screen that fails says so in its place; the rest of the page stays.

import { Component, type ReactNode } from "react";
import { Unreachable } from "../client";
import { say } from "../language";
import { Nothing } from "./Nothing";

/** What browsers say of a part of the page that cannot be loaded. */
const OF_LOADING = /dynamically imported module|module script failed|preload CSS/i;

interface Props {
  /** The reader's place: at another one it is tried again. */
  place: string;
  children: ReactNode;
}

export class ErrorBoundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override componentDidUpdate(last: Props): void {
    if (last.place !== this.props.place && this.state.error) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    const text = OF_LOADING.test(error.message)
      ? new Unreachable().message
      : say("This part cannot be shown: {error}", { error: error.message });
    return <Nothing text={text} />;
  }
}
