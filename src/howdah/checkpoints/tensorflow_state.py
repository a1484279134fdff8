"""Makes TensorFlow's own search find the checkpoint that was fetched."""

from __future__ import annotations

import posixpath
from pathlib import Path

from howdah.checkpoints.file_validation import STATE, named_by


def point_tensorflow_to(path: str, prefix: str) -> None:
    """Name the checkpoint in the state file of the directory `path`, which may name one that is not whole.

    Raises:
        OSError: it can't be read or written.
    """
    state, index = Path(path, STATE), Path(path, f"{prefix}.index")
    if not state.exists() or not index.exists():
        return
    if posixpath.basename(named_by(state.read_bytes())) != prefix:
        state.write_text(f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n', "utf-8")
