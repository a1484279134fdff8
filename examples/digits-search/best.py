"""Takes the best settings of all that the search has found, trains with them on all rows, and saves the model."""

import argparse
import json
import os
from pathlib import Path

import fsspec
import joblib
from search import classifier, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files to train on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    options = parser.parse_args()
    shared, directory = fsspec.core.url_to_fs(os.environ["HOWDAH_CHECKPOINT_DIR"])
    files = [file for file in shared.ls(directory, detail=False) if "task-" in file]
    found = [entry for file in files for entry in json.loads(shared.cat_file(file))]
    best = max(found, key=lambda entry: entry["score"])
    print(f"{len(found)} settings from {len(files)} tasks; best {best['settings']}: {best['score']:.4f}", flush=True)
    Path(options.model).mkdir(parents=True, exist_ok=True)
    (Path(options.model) / "found.json").write_text(json.dumps(found, indent=1))
    joblib.dump(classifier(best["settings"]).fit(*read(options.data)), Path(options.model) / "model.joblib")
    print(f"model saved in {options.model}", flush=True)


if __name__ == "__main__":
    main()
