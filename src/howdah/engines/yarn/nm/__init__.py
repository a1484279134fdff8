"""The NodeManager's protocol, and what it starts."""
