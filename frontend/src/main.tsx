import { createRoot } from "react-dom/client";
import { openSession, readTokensFromUrl } from "./tokens";
import "./style.css";
import "./charts/charts.css";
import "./history/history.css";
import "./job/overview.css";
import "./job/spec.css";
import "./job/timeline.css";
import "./logs/logs.css";
import "./trainingCurves/curves.css";
import { App } from "./app/App";

readTokensFromUrl();
void openSession().then(() => createRoot(document.getElementById("root") as HTMLElement).render(<App />));
