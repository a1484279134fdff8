import type { ReactNode } from "react";
import { formatTime } from "../format";
import { t } from "../language";
import type { PollingResult } from "../usePolling";

/** Shows since when the data is out of date, and why. Shows nothing while the server answers. */
export function StaleNotice({ polled }: { polled: PollingResult<unknown> }): ReactNode {
  const { error, receivedAt } = polled;
  if (!error) return null;
  return (
    <div className="notice" role="status">
      {t("No answer since {time}: {error}", { time: formatTime(receivedAt), error: error.message })}
    </div>
  );
}
