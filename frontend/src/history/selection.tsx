// The jobs that are selected to be compared. The address holds their ids, also of jobs on other pages of the list.

import { Button, message } from "antd";
import { type ReactNode, useState } from "react";
import type { JobRow } from "../api";
import { apiPutAction } from "../apiClient";
import { t } from "../language";
import { navigate, updateQuery, useRoute } from "../router";
import { getActionToken } from "../tokens";

/** The most jobs of one comparison. */
const MAX_SELECTED = 10;

function useSelectedIds(): string[] {
  return (useRoute().query.get("selected") ?? "").split(",").filter(Boolean);
}

export function SelectionBox({ job }: { job: JobRow }): ReactNode {
  const selected = useSelectedIds();
  const checked = selected.includes(job.id);
  return (
    <input
      type="checkbox"
      aria-label={t("Select {job} to compare it", { job: job.name || job.id })}
      checked={checked}
      disabled={!checked && selected.length >= MAX_SELECTED}
      onChange={() => {
        const ids = checked ? selected.filter((id) => id !== job.id) : [...selected, job.id];
        updateQuery({ selected: ids.join(",") });
      }}
    />
  );
}

export function CompareButton(): ReactNode {
  const selected = useSelectedIds();
  return (
    <>
      <Button
        type="primary"
        disabled={selected.length < 2}
        title={t("Select 2 to {most} jobs by the boxes before their names", { most: MAX_SELECTED })}
        onClick={() => navigate(["compare"], { jobs: selected.join(",") })}
      >
        {selected.length ? t("Compare {count} jobs", { count: selected.length }) : t("Compare")}
      </Button>
      {selected.length > 0 && (
        <Button onClick={() => updateQuery({ selected: "" })}>{t("Clear the selection")}</Button>
      )}
      {selected.length > 0 && getActionToken() && <ArchiveButton selected={selected} />}
    </>
  );
}

/** Archives the selected jobs; where the list shows archived jobs alone, brings them back. */
function ArchiveButton({ selected }: { selected: string[] }): ReactNode {
  const [pending, setPending] = useState(false);
  const archived = useRoute().query.get("archived") !== "only";
  const run = async (): Promise<void> => {
    setPending(true);
    try {
      for (const id of selected) await apiPutAction(id, "annotate", { archived });
      void message.success(archived ? t("Archived") : t("The jobs are in lists again"));
      updateQuery({ selected: "", pages: "" });
    } catch (error) {
      void message.error(t("Refused: {error}", { error: (error as Error).message }), 8);
    } finally {
      setPending(false);
    }
  };
  return (
    <Button loading={pending} onClick={() => void run()}>
      {archived ? t("Archive") : t("Bring back")}
    </Button>
  );
}
