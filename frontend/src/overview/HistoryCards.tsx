// What a server of many jobs knows of a job beside its log: what it cost, and what people have added to it.

import { Button, Input, Select } from "antd";
import { type ReactNode, useState } from "react";
import type { Job, JobRow } from "../api";
import { DescriptionList } from "../components/DescriptionList";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { formatAmount, formatMoney } from "../format";
import { useJobAction } from "../job/useJobAction";
import { t } from "../language";
import { href } from "../router";
import { getActionToken } from "../tokens";
import { usePolling } from "../usePolling";
import { type Changes, changesOf, type Draft } from "./annotationChanges";

/** In characters as the server counts them: one may have a length of two here. */
const MAX_NOTE = 2000;
/** A job whose job file has more may keep as many. */
const MAX_TAGS = 20;

export default function HistoryCards({ job, currency }: { job: Job; currency: string }): ReactNode {
  const [saves, setSaves] = useState(0);
  const { data: row } = usePolling("jobs/{job}/row", { job: job.id }, {}, 10, false, saves);
  const [last, setLast] = useState(row);
  if (row && row !== last) setLast(row);
  const shown = row ?? last;
  if (!shown) return null;
  return (
    <>
      {shown.cost !== null && (
        <section className="card">
          <h2>{t("Cost")}</h2>
          <Cost row={shown} cost={shown.cost} currency={currency} />
        </section>
      )}
      <section className="card">
        <h2>{t("Note and tags")}</h2>
        <Annotation row={shown} onSave={() => setSaves(saves + 1)} />
      </section>
    </>
  );
}

function Cost({ row, cost, currency }: { row: JobRow; cost: number; currency: string }): ReactNode {
  return (
    <DescriptionList
      items={[
        [t("Attempts that have ended"), `${formatMoney(cost)} ${currency}`],
        [t("GPU hours"), row.gpu_hours > 0 && formatAmount(row.gpu_hours)],
        [t("CPU hours"), formatAmount(row.cpu_hours)],
        [t("Memory (GiB hours)"), formatAmount(row.memory_gib_hours)],
      ]}
    />
  );
}

function Annotation({ row, onSave }: { row: JobRow; onSave: () => void }): ReactNode {
  const [begun, setBegun] = useState<Draft>();
  const [draft, setDraft] = useState<Draft>();
  const { pending, run } = useJobAction(row.id, "annotate", t("Saved"));
  const edit = (): void => {
    const now = { note: row.note, tags: row.tags, archived: row.archived };
    setBegun(now);
    setDraft(now);
  };
  const save = async (changes: Changes): Promise<void> => {
    if (Object.keys(changes).length > 0) {
      if (!(await run(changes))) return;
      onSave();
    }
    setDraft(undefined);
  };
  if (begun && draft) {
    const changes = changesOf(begun, draft);
    return (
      <Editor
        draft={draft}
        setDraft={setDraft}
        maxTags={Math.max(MAX_TAGS, begun.tags.length)}
        saving={pending}
        save={() => void save(changes)}
      />
    );
  }
  return (
    <>
      {row.archived && <p className="muted">{t("Archived: lists leave this job out when it has ended.")}</p>}
      {row.note && <p style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>{row.note}</p>}
      {row.tags.length > 0 && (
        <p className="words">
          {row.tags.map((tag) => (
            <a key={tag} href={href(["jobs"], { tag })}>
              {tag}
            </a>
          ))}
        </p>
      )}
      {getActionToken() ? (
        <Button onClick={edit}>{t("Edit…")}</Button>
      ) : (
        <p className="muted">
          {t("To make changes, open the link that this command prints:")} <code>howdah page {row.id}</code>
        </p>
      )}
    </>
  );
}

interface EditorProps {
  draft: Draft;
  setDraft: (draft: Draft | undefined) => void;
  maxTags: number;
  saving: boolean;
  save: () => void;
}

function Editor({ draft, setDraft, maxTags, saving, save }: EditorProps): ReactNode {
  return (
    <div style={{ display: "grid", gap: 8 }}>
      <Input.TextArea
        aria-label={t("Note")}
        placeholder={t("Note")}
        autoFocus
        autoSize={{ minRows: 3, maxRows: 12 }}
        count={{
          max: MAX_NOTE,
          strategy: (text) => Array.from(text).length,
          exceedFormatter: (text, { max }) => Array.from(text).slice(0, max).join(""),
        }}
        value={draft.note}
        onChange={(event) => setDraft({ ...draft, note: event.target.value })}
      />
      <Select
        mode="tags"
        aria-label={t("Tags")}
        placeholder={t("Tags")}
        open={false}
        suffix={null}
        tokenSeparators={[","]}
        maxCount={maxTags}
        value={draft.tags}
        onChange={(tags: string[]) => setDraft({ ...draft, tags })}
      />
      <LabeledSwitch
        text={t("Archived")}
        on={draft.archived}
        onChange={(archived) => setDraft({ ...draft, archived })}
      />
      <div className="row">
        <Button type="primary" loading={saving} onClick={save}>
          {t("Save")}
        </Button>
        <Button onClick={() => setDraft(undefined)}>{t("Discard")}</Button>
      </div>
    </div>
  );
}
