import type { Job } from "../api";
import { t } from "../language";

/** Returns where the task failed, and how it ended, as far as the heading has not said so. */
export function describeEnd(
  { node, exit }: Pick<NonNullable<Job["failure"]>, "node" | "exit">,
  heading: string,
): string {
  const rest = exit.endsWith(heading) ? exit.slice(0, exit.length - heading.length).replace(/[:：\s]+$/, "") : exit;
  return rest ? t("on {node}: {exit}", { node, exit: rest }) : t("on {node}", { node });
}
