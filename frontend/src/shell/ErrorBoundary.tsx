// A screen that fails says so in its place; the rest of the page stays.

import { Component, type ReactNode } from "react";
import { say } from "../language";
import { Nothing } from "./Nothing";

export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    return error ? (
      <Nothing text={say("This part cannot be shown: {error}", { error: error.message })} />
    ) : (
      this.props.children
    );
  }
}
