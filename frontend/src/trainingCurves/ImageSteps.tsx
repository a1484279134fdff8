// The images of event files: all of one step, which a slider chooses.

import { Segmented } from "antd";
import { type ReactNode, useState } from "react";
import { apiUrl } from "../apiClient";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { MAX_STEPS, StepCard } from "./StepCard";
import { type CurveProps, TagPicker, type TagProps } from "./TagPicker";

const MAX_IMAGES_PER_STEP = 64;
const SCALES = [1, 2, 4, 8];
/** Small images are enlarged to about this width at first. */
const GOOD_WIDTH_PX = 220;

export default function ImageSteps(props: CurveProps): ReactNode {
  return <TagPicker {...props} tagsOf={(each) => each.tags.image ?? []} nothing={t("No images yet.")} View={ImagesOfTag} />;
}

function ImagesOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const { data, error } = usePolling("jobs/{job}/curves/images", { job }, { run, tag, steps: MAX_STEPS }, seconds);
  const [chosenScale, setChosenScale] = useState<number>();
  return (
    <StepCard steps={data?.images} error={error}>
      {({ step, count, width }) => {
        const scale = chosenScale ?? Math.max(1, ...SCALES.filter((each) => each * width <= GOOD_WIDTH_PX));
        const shown = Math.min(count, MAX_IMAGES_PER_STEP);
        return (
          <>
            <div className="row" style={{ marginBottom: 8 }}>
              <Segmented
                aria-label={t("Scale")}
                size="small"
                value={scale}
                onChange={(value) => setChosenScale(value)}
                options={SCALES.map((value) => ({ value, label: `${value}×` }))}
              />
              {count > shown && <span className="muted">{t("and {count} more", { count: count - shown })}</span>}
            </div>
            <div className="image-list">
              {Array.from({ length: shown }, (_, number) => (
                <figure key={number}>
                  <img
                    src={apiUrl("jobs/{job}/curves/image", { job }, { run, tag, step, index: number })}
                    alt={t("{tag} at step {step}", { tag, step }) + (count > 1 ? ` (${number + 1}/${count})` : "")}
                    loading="lazy"
                    style={width ? { width: width * scale } : {}}
                  />
                  {count > 1 && <figcaption className="muted">{`${number + 1}/${count}`}</figcaption>}
                </figure>
              ))}
            </div>
          </>
        );
      }}
    </StepCard>
  );
}
