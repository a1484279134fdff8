"""The ResourceManager's protocols, and the meaning of its answers."""
