"""howdah's figures, measured: `python -m bench [name ...]`. One file a benchmark; README.md has the last figures."""
