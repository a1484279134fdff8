"""Measures howdah's speed and memory: `python -m bench [name ...]`. README.md describes each benchmark."""
