import { Switch } from "antd";
import { type ReactNode, useId } from "react";

/** A switch with its label beside it. */
export function LabeledSwitch(props: { text: string; on: boolean; onChange: (on: boolean) => void }): ReactNode {
  const id = useId();
  return (
    <span className="row">
      <Switch id={id} size="small" checked={props.on} onChange={props.onChange} />
      <label htmlFor={id}>{props.text}</label>
    </span>
  );
}
